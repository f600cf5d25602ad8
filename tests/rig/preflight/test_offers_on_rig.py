"""Values that a real Slurm offers, also on the login node itself; and the effect of a profile on a real job."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.errors import SlurmError
from llmb_tui.cluster.slurm.inventory import read_inventory
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.direct.render import render
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.naming import new_run_id
from llmb_tui.plan.plan import Plan
from llmb_tui.request import RunRequest
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.rig.cluster import Rig
from tests.rig.machine import REPOSITORY


def test_accounts_partitions_and_gpus_are_offered(rig: Rig, session: SlurmCluster) -> None:
    with rig.reservation():
        offers = read_inventory(session)
    assert (offers.accounts, offers.default_account) == (("llmbench", "llmb_other"), "llmbench")
    assert [partition.name for partition in offers.partitions] == ["batch", "debug", "small", "cpu"]
    assert [gpus.model.is_type("gb200") for gpus in offers.partitions[2].gpus] == [True]
    assert offers.cpu_partitions == ("cpu",)
    assert offers.qos == ("normal", "short")
    assert offers.reservations == ("bench",)
    assert offers.gpu_request == "gpus-per-node"
    assert (offers.user, offers.home) == ("operator", "/home/operator")
    assert offers.directories[-1].path == "/home/operator/llmb"
    assert offers.directories[-1].free_gb


def test_the_directory_of_the_recipes_variable_is_offered_first(rig: Rig, session: SlurmCluster) -> None:
    place = rig.new_dir()
    bashrc = rig.home / ".bashrc"
    before = bashrc.read_text() if bashrc.exists() else ""
    bashrc.write_text(f"export LLMB_INSTALL={place}/not/yet SCRATCH={place}\n{before}")
    try:
        offered = [directory.path for directory in read_inventory(session).directories]
    finally:
        bashrc.write_text(before)
    assert offered == [f"{place}/not/yet", f"{place}/llmb", "/home/operator/llmb"]


def test_a_cluster_without_accounts_offers_the_rest(rig_without_accounting: Rig, services: Services) -> None:
    offers = services.clusters.inventory(rig_without_accounting.profile())
    assert (offers.accounts, offers.default_account, offers.qos) == ((), None, ())
    assert len(offers.partitions) == 4
    assert offers.with_defaults(bare(rig_without_accounting.profile())).account == "operator"


def test_a_hung_controller_is_reported_as_a_slurm_failure(rig: Rig, session: SlurmCluster) -> None:
    with rig.controller_hung(), pytest.raises(SlurmError, match="DOWN"):
        read_inventory(session)


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    yield services
    services.clusters.close()


def bare(profile: SlurmProfile) -> SlurmProfile:
    """The profile of a form before the cluster has answered."""
    return replace(profile, account="", partition="", install_dir="")


class _CountingPrompter:
    """A prompter that answers the questions of a login, and counts them."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.questions = 0

    def accept_host_key(self, *_: str) -> bool:
        return True

    def answer(self, prompt: str, echo: bool) -> str | None:  # noqa: ARG002  (a prompter's signature)
        self.questions += 1
        return self.rig.password


def test_a_login_for_the_offers_serves_the_saved_profile_too(rig: Rig, services: Services) -> None:
    prompter = _CountingPrompter(rig)
    unsaved = bare(rig.profile("password"))
    offers = services.clusters.inventory(unsaved, prompter)
    assert prompter.questions == 1
    profile = offers.with_defaults(unsaved)
    services.clusters.save(profile)
    services.clusters.save(replace(profile, partition="small"))
    assert services.clusters.login_node(profile.name).run(["id", "-un"]).stdout == "operator\n"
    assert prompter.questions == 1


def test_a_profile_that_goes_elsewhere_ends_its_old_connection(rig: Rig, services: Services) -> None:
    profile = rig.profile()
    services.clusters.save(profile)
    before = services.clusters.login_node(profile.name)
    before.run(["true"])
    services.clusters.save(replace(profile, ssh_config=profile.ssh_config, user="somebody"))
    assert before.state == "closed"
    assert services.clusters.login_node(profile.name) is not before


def local(rig: Rig, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run llmb-tui on the login node itself, as root: the operator cannot read this Python."""
    state = rig.new_dir()
    variables = {
        "PYTHONPATH": str(REPOSITORY),
        "LLMB_TUI_CONFIG_DIR": str(state / "config"),
        "LLMB_TUI_STATE_DIR": str(state / "state"),
        "LLMB_INSTALL": str(state / "llmb"),
        "https_proxy": "http://127.0.0.1:9",  # no request leaves this machine
        **environment,
    }
    return rig.as_root([sys.executable, "-m", "llmb_tui", *arguments], env=variables)


def test_doctor_on_the_login_node_makes_a_profile_from_the_cluster(rig: Rig) -> None:
    selection = "-w nemotron4@25.04 -s 15b --gpu h100 -d fp8 --scale 32".split()
    done = local(rig, "doctor", "local", *selection, "--json")
    checks = {check["id"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 2  # no registry is reached, and root has no account
    assert checks["scheduler"]["found"] == "Slurm 22.05.8"
    assert checks["partition"]["found"] == "batch, up"
    assert checks["gpu-request"]["status"] == "ok"
    assert checks["install-dir"]["needed"].endswith("/llmb, writable")
    assert checks["registry"]["status"] == "failed"


def test_a_machine_without_slurm_is_no_login_node(rig: Rig) -> None:
    done = local(rig, "doctor", "local", PATH="/nowhere")
    assert done.returncode == 1
    assert "`sbatch` is not on the PATH" in done.stderr


def test_settings_of_a_profile_reach_a_real_job(rig: Rig, catalog: Catalog, job: Plan) -> None:
    """NeMo-Run quotes values in #SBATCH lines; sbatch removes the quotes."""
    wishes: dict[str, Any] = {
        "exclude": "cn[001,003]",
        "slurm_params": "comment=mine & yours;nice=7;hold",
        "qos": "short",
    }
    with rig.reservation(nodes="cn[002,004]"):
        profile = rig.profile(install_dir=str(rig.new_dir()), reservation="bench", **wishes)
        spec = launch_spec(
            RunRequest(catalog.recipe("nemotron4", "25.04"), replace(job, nodes=1, time_limit="00:10:00"), profile),
            new_run_id(0.0),
        )
        number = rig.as_operator(["sbatch", "--parsable"], stdin=render(spec), check=True).stdout.strip()
        job_text = rig.as_operator(f"scontrol show job {number}").stdout
        rig.as_operator(f"scancel {number}")
    for words in (
        "Comment=mine & yours",
        "ExcNodeList=cn[001,003]",
        "QOS=short",
        "Reservation=bench",
        "Nice=7",
        "Reason=JobHeldUser",
        "Requeue=0",
    ):
        assert words in job_text, job_text
