"""An installation of NVIDIA's own tools on a real login node: detected, offered, its real jobs opened and watched."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.catalog.load import load_presets
from llmb_tui.cli import main
from llmb_tui.cluster.llmb.install import LlmbInventory, find_installs, settings_of
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.state import RunState
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.llmb.installation import CONFIG_2, SECRET, TASK, WORKLOAD, Installation

Verb = Callable[..., Any]
PLAN = plan(load_presets(), Selection("nemotron4-340b", "25.12", "340b", "gb200", "fp8", 128))


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserPaths:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LLMB_TUI_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("LLMB_TUI_STATE_DIR", str(tmp_path / "state"))
    return UserPaths.of_user()


@pytest.fixture
def services(places: UserPaths) -> Iterator[Services]:
    services = Services(places)
    yield services
    services.clusters.close()


@pytest.fixture
def installation(rig: Rig) -> Installation:
    return Installation(rig)


@pytest.fixture
def profile(rig: Rig, services: Services, installation: Installation) -> SlurmProfile:
    """A saved cluster whose install directory is the installation."""
    profile = replace(rig.profile(), name="rig", install_dir=str(installation.root))
    services.clusters.save(profile)
    return profile


@pytest.fixture
def verb(profile: SlurmProfile, capsys: pytest.CaptureFixture[str]) -> Verb:  # noqa: ARG001 - it is saved
    """A function that runs a verb and returns its JSON."""

    def run(*arguments: str, code: int = 0) -> Any:
        assert main([*arguments, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return run


def find_on(services: Services, profile: SlurmProfile) -> LlmbInventory:
    return find_installs(services.clusters.login_node(profile), profile.install_dir)


def test_the_directory_of_the_profile_is_recognised(services: Services, profile: SlurmProfile) -> None:
    inventory = find_on(services, profile)
    install = inventory.installs[0]
    assert (inventory.errors, install.path) == ((), profile.install_dir)
    assert (install.release, install.images, install.venvs) == ("25.12", ("nvidia+nemo+25.07.01.sqsh",), ("venv_1",))
    assert SECRET not in repr(inventory)


def test_installs_of_the_login_shell_and_folders_of_that_name_are_recognised(rig: Rig, services: Services) -> None:
    first, site = Installation(rig), rig.new_dir()
    second = Installation(rig, site / "LLMB-26.06", CONFIG_2, "26.06.01")
    inside = Installation(rig, site / "llmb" / "old", release="25.12")
    rig.as_operator(["mkdir", f"{site}/llmb-empty"], check=True)
    bashrc = rig.home / ".bashrc"
    before = bashrc.read_text() if bashrc.exists() else ""
    bashrc.write_text(f"export LLMB_INSTALL={first.root} SCRATCH={site}\n{before}")
    try:
        inventory = find_on(services, replace(rig.profile(), install_dir=""))
    finally:
        bashrc.write_text(before)
    assert inventory.errors == ()
    assert [install.path for install in inventory.installs] == [
        str(installation.root) for installation in (first, second, inside)
    ]
    assert inventory.installs[1].release == "26.06.01"


def test_a_result_that_is_found_twice_counts_once(rig: Rig, services: Services, installation: Installation) -> None:
    link = rig.new_dir() / "llmb"
    rig.as_operator(["ln", "-s", str(installation.root), str(link)], check=True)
    inventory = find_on(services, replace(rig.profile(), install_dir=f"{link}/"))
    assert [install.path for install in inventory.installs] == [str(link)]


def test_a_cluster_without_an_installation_lists_none(rig: Rig, services: Services) -> None:
    inventory = find_on(services, rig.profile(install_dir=str(rig.new_dir())))
    assert (inventory.installs, inventory.errors) == ((), ())


def test_an_unusable_value_is_reported_and_changes_no_file(
    services: Services, profile: SlurmProfile, installation: Installation, verb: Verb
) -> None:
    installation.write("cluster_config.yaml", f"schema_version: 3\nenvironment: {{HF_TOKEN: {SECRET}}}\n")
    before = installation.sh(f"find {installation.root} -printf '%p %T@\\n' | sort")
    (error,) = find_on(services, profile).errors
    assert "knows versions 1 and 2" in error.why
    report = verb("doctor", "rig")
    (check,) = [check for check in report["checks"] if check["id"] == "llmb-run"]
    assert (check["status"], SECRET in json.dumps(report)) == ("warning", False)
    assert "knows versions 1 and 2" in check["found"]
    installation.sh(f"chmod 000 {installation.root}/cluster_config.yaml")
    assert find_on(services, profile).errors[0].why == "You do not have the permission to read it."
    installation.sh(f"chmod 644 {installation.root}/cluster_config.yaml")
    assert installation.sh(f"find {installation.root} -printf '%p %T@\\n' | sort") == before


def test_the_verb_prints_settings_and_workloads_of_an_installation(
    verb: Verb, installation: Installation, profile: SlurmProfile
) -> None:
    output = verb("llmb", "rig")
    (listed,) = output["installations"]
    assert listed["settings"] == {
        "account": "llmb_other",
        "partition": "small",
        "cpu_partition": "cpu",
        "install_dir": str(installation.root),
        "gpu_request": "gpus-per-node",
    }
    assert (listed["gpus_per_node"], listed["environment"], listed["release"]) == ("4", ["HF_TOKEN"], "25.12")
    assert (listed["version"], listed["architecture"], listed["cluster_name"]) == (1, "aarch64", None)
    own_workload, other_workload = listed["workloads"]
    assert (own_workload["name"], own_workload["recipes"], own_workload["sizes"]) == (
        WORKLOAD,
        ["nemotron4-340b@25.12"],
        ["340b"],
    )
    assert (own_workload["same_release"], own_workload["image"], own_workload["venv_missing"]) == (
        True,
        "nvidia+nemo+25.07.01.sqsh",
        False,
    )
    assert (other_workload["name"], other_workload["same_release"], other_workload["venv_missing"]) == (
        "pretrain_llama3.1",
        False,
        True,
    )
    assert SECRET not in json.dumps(output)
    assert Services(UserPaths.of_user()).clusters.profile("rig") == profile


def test_the_text_output_has_the_same_values(
    profile: SlurmProfile, installation: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    launched = installation.launch(release="25.08")
    assert main(["llmb", profile.name]) == 0
    output = capsys.readouterr().out
    assert output.startswith(f"llmb-run 25.12 installation at {installation.root}: pretrain_nemotron4-340b,")
    assert "gpu_request    gpus-per-node, 4 per node" in output
    row = next(line for line in output.splitlines() if line.lstrip().startswith(f"{launched.job} "))
    assert "nemotron4-340b fp8" in row
    assert "No preset has nemotron4-340b of release 25.08" in row


def test_the_preflight_lists_the_installed_workloads(verb: Verb, installation: Installation) -> None:
    (check,) = [check for check in verb("doctor", "rig")["checks"] if check["id"] == "llmb-run"]
    words = "pretrain_nemotron4-340b, pretrain_llama3.1 (environment missing) installed"
    assert check["found"] == f"llmb-run 25.12 installation at {installation.root}: {words}"
    assert check["status"] == "ok"


def test_an_image_that_llmb_install_fetched_counts_as_installed(services: Services, profile: SlurmProfile) -> None:
    states = {state.id: state for state in services.launcher.installer(services.request(profile.name, PLAN)).probe()}
    assert states["image-nvidia+nemo+25.07.01"].status == "done"


def test_the_second_forms_common_settings_are_offered(rig: Rig, services: Services) -> None:
    installation = Installation(rig, config=CONFIG_2)
    (install,) = find_on(services, rig.profile(install_dir=str(installation.root))).installs
    assert settings_of(install) == {
        "account": "llmbench",
        "qos": "short",
        "partition": "debug",
        "cpu_partition": "cpu",
        "install_dir": str(installation.root),
    }


def test_runs_of_an_installation_are_listed_newest_first(verb: Verb, installation: Installation) -> None:
    old, new = installation.launch(release="25.08"), installation.launch()
    newest, other = verb("llmb", "rig")["runs"]
    assert (newest["job_id"], newest["why_not"], newest["id"]) == (new.job, None, None)
    assert (newest["workload"], newest["scale"], newest["changed"]) == (WORKLOAD, 128, ["HF_TOKEN"])
    assert other["job_id"] == old.job
    assert "No preset has nemotron4-340b of release 25.08" in other["why_not"]
    assert main(["llmb", "rig", "--open", old.job]) == 1
    assert main(["llmb", "rig", "--open", "999999"]) == 1
    assert Services(UserPaths.of_user()).runs.all() == ()


def test_a_run_is_opened_once_and_watched_over_its_restart_to_the_verdict(
    verb: Verb, installation: Installation, services: Services, capsys: pytest.CaptureFixture[str]
) -> None:
    assert PLAN.estimate is not None
    launched = installation.launch(step_s=PLAN.estimate.step_time_s * 1.01)
    answer = verb("llmb", "rig", "--open", launched.job)
    assert (answer["procedure"], answer["job_ids"], answer["state"]) == ("llmb", [launched.job], answer["state"])
    assert verb("llmb", "rig", "--open", launched.job)["id"] == answer["id"]
    assert [run["id"] for run in verb("llmb", "rig")["runs"]] == [answer["id"]]
    states: list[RunState] = []
    monitor = services.feed.monitor(answer["id"])
    watching = threading.Thread(target=monitor.watch, args=(states.append, threading.Event()), daemon=True)
    watching.start()
    until(lambda: states and states[-1].progress.steps_done == 3, "the first log")
    launched.requeue()
    services.clusters.poller("rig").poll_soon()
    until(lambda: states[-1].log_name == "log.1" and states[-1].progress.steps_done == 50, "the second log")
    launched.finish()
    watching.join(180)
    assert not watching.is_alive()
    last = states[-1]
    assert last.job is not None
    assert (last.stage, last.job.state, last.job.restarts) == ("done", "COMPLETED", 1)
    folder = services.runs.folder(answer["id"])
    for restart, name in enumerate(("log", "log.1")):
        assert (folder / name).read_bytes() == launched.log(restart).read_bytes()
    (result,) = verb("results", answer["id"])
    # The expected step time in FP8 was published with another scaling than this release uses.
    assert (result["verdict"]["result"], result["rule"]) == ("WARN", "mean of iterations 35–44")
    assert "FP8 with delayed scaling" in " ".join(result["verdict"]["reasons"])
    assert result["verdict"]["ratio"] == pytest.approx(1 / 1.01, rel=1e-3)
    (job,) = verb("jobs")
    assert (job["id"], job["state"], job["procedure"]) == (answer["id"], "done", "llmb")
    (log_result,) = verb("results", f"rig:{installation.root}/workloads")  # read without opening the run
    assert log_result["verdict"] == result["verdict"]
    assert log_result["result"] == {
        **result["result"],
        "earlier_logs": log_result["result"]["earlier_logs"],
        "nodes": None,
    }
    assert (log_result["step_time_s"], len(log_result["result"]["earlier_logs"])) == (
        result["step_time_s"],
        1,
    )
    by_llmb, same = (verb("results", name, "--rule", "llmb-run") for name in (log_result["id"], answer["id"]))
    assert by_llmb[0]["result"]["upstream"]["status"] == "success"
    assert by_llmb[0]["result"]["upstream"] == same[0]["result"]["upstream"]
    assert main(["logs", answer["id"]]) == 0
    assert "[NeMo I] start 1" in capsys.readouterr().out


def test_an_opened_run_is_cancelled_like_other_runs_and_never_submitted(
    verb: Verb, installation: Installation, services: Services
) -> None:
    launched = installation.launch()
    jobs_before = installation.rig.squeue()
    run_id = verb("llmb", "rig", "--open", launched.job)["id"]
    assert services.feed.settle(run_id).job_ids == (launched.job,)
    assert installation.rig.squeue() == jobs_before
    assert not (services.places.state / "journal.jsonl").exists()
    assert verb("cancel", run_id, "--yes")["cancelled"] == [launched.job]
    until(lambda: launched.state() in ("", "CANCELLED"), "the job is cancelled")


def test_a_run_that_ended_long_ago_is_read_from_its_log(verb: Verb, installation: Installation) -> None:
    launched = installation.launch(step_s=5.0)
    launched.finish()
    until(lambda: launched.state() == "", "the job has ended")
    run_id = verb("llmb", "rig", "--open", launched.job)["id"]
    answer = verb("watch", run_id, "--once")
    # The step time alone would be FAIL; but the expected value is from another scaling of FP8.
    assert (answer["state"], answer["steps_done"], answer["verdict"]["result"]) == ("done", 50, "WARN")


def test_only_the_newest_runs_are_listed(verb: Verb, installation: Installation) -> None:
    folder = f"{installation.root}/workloads/{WORKLOAD}/experiments/{TASK}"
    installation.sh(
        f"for n in $(seq 100 160); do mkdir -p {folder}/{TASK}_$n/{TASK}; "
        f"echo 'a: 1' > {folder}/{TASK}_$n/{TASK}/llmb-config_$n.yaml; done"
    )
    runs = verb("llmb", "rig")["runs"]
    assert len(runs) == 40
    assert {run["job_id"] for run in runs} == {str(number) for number in range(121, 161)}
