"""Rendered batch scripts, run by a real Slurm to their end, with every option of `sbatch` and `srun`, and wrappers."""

from __future__ import annotations

import contextlib
import re
import stat
import time
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from llmb_tui.cluster.slurm.client import slurm_version
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.direct.render import render
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.naming import new_run_id
from llmb_tui.launch.run import Run
from llmb_tui.launch.secrets import put_secret
from llmb_tui.launch.submit import submit_once
from llmb_tui.plan.selection import RunOptions, Selection
from llmb_tui.preflight.secret import SecretValue
from llmb_tui.watch.network_lines import keep_network_lines
from tests.kit.runs import request_for
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.submit.intents import Laptop

NEMOTRON = Selection("nemotron4", "25.04", "15b", "h100", "fp8", 16)
GB200 = Selection("nemotron4-340b", "25.12", "340b", "gb200", "fp8", 128)
TOKEN = "hf_" + "t" * 20

IN_CONTAINER = "/llmb-tui/hugging-face-token"

WRITE_VARIABLES = 'env | grep "^NCCL_DEBUG" | sort >"/nemo_run/$SLURM_PROCID"'
"""Program of a task: writes its variables to a file for its rank."""


class RunToEnd(Protocol):
    """A function that runs a job to its end and returns the run's folder."""

    def __call__(
        self, session: SlurmCluster, profile: SlurmProfile, selection: Selection, training: tuple[str, ...] = ()
    ) -> Path: ...


@pytest.fixture
def run_to_end(rig: Rig, laptop: Laptop) -> RunToEnd:
    """A function that runs a successful job on two nodes as the selection says, and returns the run's folder.

    `training`: a program that each task runs instead of the entry script.
    """

    def run_it(
        session: SlurmCluster, profile: SlurmProfile, selection: Selection, training: tuple[str, ...] = ()
    ) -> Path:
        request = request_for(selection, profile)
        spec = replace(launch_spec(request, new_run_id(time.time()), slurm_version(session)), nodes=2)
        if training:
            spec = replace(spec, command=(*spec.command[: spec.command.index("python")], *training))
        for path, text in ((spec.container_image, "hsqs"), *((source, "pass") for source, _ in spec.copies)):
            line = 'mkdir -p "${1%/*}" && printf %s "$2" >"$1"'
            rig.as_operator(["sh", "-c", line, "sh", path, text], check=True)
        submit_once(session, laptop.runs, laptop.journal, Run.of(request, spec, 0.0), render(spec))
        task = Path(spec.task_dir)
        until(lambda: "job exited with code" in _text(task, "sbatch_*"), "the job has ended")
        assert "job exited with code 0" in _text(task, "sbatch_*"), _text(task, "log-*")
        return task

    return run_it


def _columns(line: str) -> list[str]:
    return line.split("|")


def _text(task: Path, pattern: str) -> str:
    return "".join(path.read_text() for path in task.glob(pattern))


def test_a_profiled_run_with_numa_binding_has_one_process_on_each_gpu(rig: Rig, run_to_end: RunToEnd) -> None:
    profile = rig.profile(install_dir=str(rig.new_dir()), partition="small", vboost=True)
    options = RunOptions(profile=True, profile_start=45, profile_stop=50)
    with contextlib.closing(SlurmCluster(profile)) as session:
        task = run_to_end(session, profile, replace(GB200, options=options))
    assert "iteration 49/49" in _text(task, "log-*")
    assert "not bound" not in _text(task, "log-*")
    names = [path.name for path in (task / "nsys_profile").glob("*.nsys-rep")]
    ranks = [re.fullmatch(r"profile_\d+_\d+_node(\d)_rank(\d)\.nsys-rep", name) for name in names]
    assert sorted(match.groups() for match in ranks if match) == [(str(rank // 4), str(rank)) for rank in range(8)]
    assert (task.parent / "vboost.err").read_text()  # sudo refuses, or does not exist


def test_srun_accepts_the_options_of_cpu_pinning_and_sbatch_the_memory(rig: Rig, run_to_end: RunToEnd) -> None:
    profile = rig.profile(install_dir=str(rig.new_dir()), cpus_per_task=7, memory="100G")
    with contextlib.closing(SlurmCluster(profile)) as session:
        task = run_to_end(session, profile, NEMOTRON)
    assert "iteration 49/49" in _text(task, "log-*")
    (log,) = task.glob("log-*")
    job_id = log.stem.split("_")[-2]
    query = f"sacct -n -P -j {job_id},{job_id}.1 -o JobID,ReqMem,NTasks,NCPUS"  # step 0 asks for a host name

    def rows() -> dict[str, list[str]]:
        return {row[0]: row[1:] for row in map(_columns, rig.as_operator(query).stdout.splitlines())}

    # slurmdbd receives the job and its steps in separate messages, in any order.
    until(lambda: rows().get(job_id, [""])[0] == "200G", "accounting has the memory of both nodes")
    until(lambda: f"{job_id}.1" in rows(), "accounting has the step")
    assert rows()[f"{job_id}.1"][1:] == ["16", str(16 * 7)]


def test_a_token_in_the_operators_home_is_read_in_the_container(rig: Rig, run_to_end: RunToEnd) -> None:
    """Only the container reads it: scripts, logs and the run's folder do not contain the token."""
    profile = rig.profile(install_dir=str(rig.new_dir()))
    selection = Selection("llama3.1", "25.04", "8b", "h100", "bf16", 16)
    with contextlib.closing(SlurmCluster(profile)) as session:
        file = rig.home / Path(put_secret(session, SecretValue("hugging-face", TOKEN))).relative_to("/home/operator")
        task = run_to_end(session, profile, replace(selection, options=RunOptions(hub_tokenizer=True)))
        image = f"--container-image={profile.install_dir}/images/nvidia+nemo+25.02.01.sqsh"
        mounts = f"--container-mounts={task}/hugging-face-token:{IN_CONTAINER}:ro"
        look = 'cat "$1"; echo changed >"$1"'
        shown_token = rig.as_operator(["srun", image, mounts, "sh", "-c", look, "sh", IN_CONTAINER])
    assert shown_token.stdout.strip() == TOKEN
    assert "Read-only file system" in shown_token.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    paths = [path for path in task.parent.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in paths if TOKEN in path.read_text(errors="replace")]


def test_only_the_first_rank_of_each_node_lets_nccl_write_its_network_lines(rig: Rig, run_to_end: RunToEnd) -> None:
    profile = rig.profile(install_dir=str(rig.new_dir()))
    with contextlib.closing(SlurmCluster(profile)) as session:
        task = run_to_end(session, profile, NEMOTRON, ("sh", "-c", WRITE_VARIABLES))
    variables = {rank: (task / str(rank)).read_text().splitlines() for rank in range(16)}
    expected = ["NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=/nemo_run/nccl/%h.%p", "NCCL_DEBUG_SUBSYS=INIT,NET"]
    assert variables == {rank: expected if rank in (0, 8) else [] for rank in range(16)}


def test_the_network_lines_of_a_run_are_copied_from_its_folder(rig: Rig, run_to_end: RunToEnd, laptop: Laptop) -> None:
    profile = rig.profile(install_dir=str(rig.new_dir()))
    with contextlib.closing(SlurmCluster(profile)) as session:
        task = run_to_end(session, profile, NEMOTRON)
        (run,) = laptop.runs.all()
        keep_network_lines(session, laptop.runs, run)
    nodes = sorted(path.name.partition(".")[0] for path in (task / "nccl").glob("cn*"))
    lines = (laptop.runs.folder(run.id) / "network.txt").read_text().splitlines()
    assert len(nodes) == 2
    assert [line for line in lines if line.startswith("==")] == [f"== {node}" for node in nodes]
    assert sum("via NET/IB/0/GDRDMA" in line for line in lines) == 4
