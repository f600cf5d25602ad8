"""Install, render and submit on the embedded cluster."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.slurm.client import find_jobs
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.errors import LlmbError
from llmb_tui.launch.direct.install import direct_install
from llmb_tui.launch.direct.render import render
from llmb_tui.launch.install import Installer
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.submit import submit_once
from llmb_tui.request import RunRequest
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths
from tests.kit.demo import drop_connections, end_jobs, fault
from tests.kit.runs import delivery_of, direct_spec
from tests.kit.waiting import until
from tests.launch.launch_cases import PROFILE, ROWS, MakePlan, MakeRun, MakeSpec


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DemoCluster]:
    with DemoCluster(tmp_path / "cluster", speed=1000.0) as demo:
        yield demo
        end_jobs(demo)


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb_tui.launch.install.LOOK_EVERY_S", 0.2)


@pytest.fixture
def session(cluster: DemoCluster) -> Iterator[SlurmCluster]:
    made = SlurmCluster(cluster.profile)
    yield made
    made.close()


@pytest.fixture
def installed(session: SlurmCluster, catalog: Catalog, make_plan: MakePlan) -> SlurmCluster:
    row = ROWS["nemotron4-25.04"]
    wanted = direct_install(RunRequest(catalog.recipe(row[0]), make_plan(*row), session.profile))
    states = Installer(session, session.profile, wanted).run(lambda _: None, threading.Event())
    assert [state.status for state in states] == ["done"] * 3
    assert states[1].size == "19.3 GB"
    return session


class Desk:
    """Records of runs on this machine."""

    def __init__(self, folder: Path) -> None:
        self.runs = Runs(UserPaths(folder / "config", folder / "state"))
        self.journal = Journal(folder / "journal.jsonl")

    def submit(self, session: SlurmCluster, run: Run) -> Run:
        return submit_once(session, self.runs, self.journal, run, render(direct_spec(run)))


@pytest.fixture(scope="module")
def script(make_spec: MakeSpec) -> str:
    """A rendered script for the demo's account and partition."""
    profile = replace(PROFILE, account="demo", partition="batch", install_dir="/tmp/llmb")
    return render(make_spec("nemotron4@25.04", "15b", "h100", "fp8", 64, profile=profile))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_rendered_script_runs_the_training_to_its_end(
    installed: SlurmCluster, desk: Desk, make_run: MakeRun
) -> None:
    run = desk.submit(installed, make_run(installed.profile))
    (job_id,) = run.job_ids
    log = Path(direct_spec(run).log.path(job_id))
    until(lambda: log.exists() and "iteration 49/49" in log.read_text())
    batch_log = Path(direct_spec(run).task_dir) / f"sbatch_{run.job_name}_{job_id}.out"
    until(lambda: "job exited with code 0" in batch_log.read_text())
    assert [job.id for job in find_jobs(installed, run.job_name)] == [job_id]


def test_a_connection_lost_during_sbatchs_answer_creates_one_known_job(
    cluster: DemoCluster, installed: SlurmCluster, desk: Desk, make_run: MakeRun
) -> None:
    fault(cluster, "answer-delay", "1")
    run = make_run(cluster.profile)
    claim = Path(delivery_of(run).place.folder) / "claim"

    def drop() -> None:
        until(claim.is_symlink)
        drop_connections(cluster)

    dropper = threading.Thread(target=drop)
    dropper.start()
    known = desk.submit(installed, run)
    dropper.join()
    assert known.submission == "submitted"
    assert [job.id for job in find_jobs(installed, run.job_name)] == list(known.job_ids)
    assert len(known.job_ids) == 1


# Option of the script, and words of the fix.
REFUSED = {
    "--account=absent": "account",
    "--partition=nowhere": "partition",
    "--time=99:00:00": "time limit",
    "--nodes=4000": "smaller scale",
    "--gpus-per-node=16": "GPUs",
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_rejections_quote_slurm_and_have_a_fix(
    session: SlurmCluster, desk: Desk, make_run: MakeRun, script: str, wrong: str
) -> None:
    run = make_run(session.profile)
    option = wrong.partition("=")[0]
    wrong_script = re.sub(rf"(?m)^#SBATCH {option}=.*$", f"#SBATCH {wrong}", script)
    for path in (direct_spec(run).container_image, direct_spec(run).copies[0][0]):
        session.run(["mkdir", "-p", path.rpartition("/")[0]])
        session.write_file(path, b"hsqs")
    with pytest.raises(LlmbError) as caught:
        submit_once(session, desk.runs, desk.journal, run, wrong_script)
    assert caught.value.what.startswith("Slurm rejected the job: ")
    assert REFUSED[wrong] in caught.value.fix
    remembered = desk.runs.load(run.id)
    assert (remembered.submission, remembered.job_ids) == ("refused", ())
    # Accounting may keep a row of a refused submission, which does not count as a job.
    assert all(job.finished and not job.elapsed_s for job in find_jobs(session, run.job_name))


def test_a_controller_that_is_down_is_reported_and_nothing_is_queued(
    cluster: DemoCluster, installed: SlurmCluster, desk: Desk, make_run: MakeRun
) -> None:
    fault(cluster, "controller-down")
    with pytest.raises(LlmbError) as caught:
        desk.submit(installed, make_run(cluster.profile))
    assert "controller" in caught.value.fix
    fault(cluster, "controller-down", None)
    assert find_jobs(installed, make_run(cluster.profile).job_name) == []


def test_an_import_without_space_fails_with_enroots_words(
    cluster: DemoCluster, session: SlurmCluster, catalog: Catalog, make_plan: MakePlan
) -> None:
    fault(cluster, "no-space")
    row = ROWS["nemotron4-25.04"]
    wanted = direct_install(RunRequest(catalog.recipe(row[0]), make_plan(*row), session.profile))
    states = Installer(session, session.profile, wanted).run(lambda _: None, threading.Event())
    assert [state.status for state in states] == ["done", "failed", "missing"]
    assert states[1].detail == "Write failed because No space left on device"
    assert states[1].fix
