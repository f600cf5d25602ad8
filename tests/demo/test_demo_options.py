"""The demo's Slurm accepts exactly the options that the program sends."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.load import load_presets
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.slurm.client import find_jobs, own_jobs, partitions, slurm_version
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.inventory import read_inventory
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.demo.command import ACCOUNTING, CLIENTS
from llmb_tui.demo.slurm import accounting, queue, sbatch, site, srun
from llmb_tui.launch.direct.install import direct_install
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.install import Installer
from llmb_tui.preflight.kinds import cluster_checks
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.run import run_preflight
from llmb_tui.request import RunRequest
from tests.cluster.examples import PLAN
from tests.kit.demo import fault

GOLDEN = Path(__file__).parents[1] / "launch" / "golden"
"""Batch scripts as the program renders them."""

# Records the arguments and the stderr of each call.
RECORDER = """#!/bin/sh
"{real}" "$@" 2>"{log}.$$"; code=$?
{{ printf '%s ' "{name}" "$@"; echo; cat "{log}.$$"; }} >>"{log}"
cat "{log}.$$" >&2
exit $code
"""


@pytest.fixture
def record(cluster: DemoCluster) -> Path:
    """Record of all calls of Slurm's commands, with their error output."""
    log = cluster.root / "record"
    for name in (*ACCOUNTING, *CLIENTS):
        command = cluster.root / "bin" / name
        real = command.rename(command.with_suffix(".real"))
        command.write_text(RECORDER.format(real=real, log=log, name=name))
        command.chmod(0o700)
    return log


@pytest.fixture
def session(cluster: DemoCluster) -> Iterator[SlurmCluster]:
    session = SlurmCluster(cluster.profile)
    yield session
    session.close()


def test_all_that_is_sent_is_offered_and_all_that_is_offered_is_sent(
    cluster: DemoCluster, session: SlurmCluster, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb_tui.launch.install.LOOK_EVERY_S", 0.4)  # each check starts programs
    monkeypatch.setattr("llmb_tui.launch.install.ASK_SLURM_EVERY_S", 0.0)
    ask_everything(cluster, session)
    sent = record.read_text()
    assert "does not offer" not in sent
    for program in (*ACCOUNTING, *CLIENTS):
        assert f"\n{program} " in sent
    for name in queue.FIELDS:
        assert re.search(rf"(?m)^squeue .*\b{name}:", sent)
    for program, letters in (("squeue", queue.LETTERS), ("sinfo", site.LETTERS)):
        for letter in letters:
            assert re.search(rf"(?m)^{program} .*%{letter}", sent)
    tables = (accounting.ASSOCIATION, accounting.USER, accounting.QOS)
    for name in (*accounting.FIELDS, *(column for table in tables for column in table)):
        assert re.search(rf"(?m)^sacct.*\b{name}\b", sent)

    scripts = "".join(path.read_text() for path in GOLDEN.glob("*.sh")).replace("'", " ")
    scripts += "".join(f"\n#SBATCH  --{name}=" for name, _ in launch_spec(chained(cluster), "run1").options)
    for parser in (
        accounting.sacct_options(),
        sbatch.options(),
        site.sinfo_options(),
        queue.squeue_options("me"),
        srun.options(),
    ):
        for option in re.findall(r"(?<=[\[ |(])--?[A-Za-z][\w-]*", parser.format_usage()):
            assert re.search(rf"(?m)^(?:.*\b{parser.prog}\b|#SBATCH).* {option}(?![\w-])", sent + scripts), option


def chained(cluster: DemoCluster) -> RunRequest:
    """A run of a suite whose jobs run one after the other."""
    recipe = load_presets().recipe("nemotron4@25.04")
    return RunRequest(recipe, PLAN, cluster.profile, dependency="afterok:1")


def ask_everything(cluster: DemoCluster, session: SlurmCluster) -> None:
    """Commands that the program sends to Slurm before, during and after a run."""
    profile = cluster.profile
    assert read_inventory(session).accounts == ("demo",)
    assert run_preflight(session, cluster_checks(Needs(profile, PLAN))).passed
    required = replace(profile, partition="", gpu_type="h100", mpi="none", slurm_params='comment={"a": 1};')
    report = run_preflight(session, cluster_checks(Needs(required, PLAN)))
    assert {check.status for check in report.checks if check.id in ("partition", "gpus", "trial", "pmix")} == {"ok"}
    asking = replace(profile, reservation="none", exclude="demo[003,007]")
    run_preflight(session, cluster_checks(Needs(asking)))
    assert slurm_version(session) == (22, 5)
    assert [partition.name for partition in partitions(session)] == ["batch", "debug"]
    began = time.time() - 1
    import_in_a_job(cluster, session)
    (job,) = own_jobs(session, began)
    assert session.query_jobs([job.id])[job.id].exit_code == "0:0"
    assert [found.id for found in find_jobs(session, job.name)] == [job.id]
    assert session.bad_nodes("demo[001-002]") == ()
    session.cancel(job.id)
    snapshot = re.search(r"queue (--me .*) >", remote_text("launch.sh"))
    assert snapshot
    assert session.run_script(f"{remote_text('lock.sh')}queue {snapshot[1]}").stdout == f"{job.id}\n"
    assert f"\n{job.id}|" in session.accounting([job.id])
    assert session.run_script("scontrol show hostnames 'demo[001-002]'").stdout == "demo001\ndemo002\n"


def import_in_a_job(cluster: DemoCluster, session: SlurmCluster) -> None:
    """Install on a cluster where only the compute nodes have enroot."""
    fault(cluster, "queue-wait", "900")  # long enough for the queue to be checked
    (cluster.root / "bin" / "enroot").rename(cluster.root / "node-bin" / "enroot")
    request = RunRequest(load_presets().recipe("nemotron4@25.04"), PLAN, cluster.profile)
    installer = Installer(session, cluster.profile, direct_install(request))
    states = installer.run(lambda _: None, threading.Event())
    assert {state.status for state in states} == {"done"}
