"""State of a run whose submission ended without an answer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.launch.refusal import NEVER_TAKEN
from llmb_tui.launch.submission_status import probe
from tests.kit.waiting import until
from tests.launch.launch_cases import RUN_ID, replace_command
from tests.launch.submit_stage import Stage

# submit.sh and sbatch end at once, as when the login node stops: before Slurm has the job, and after.
KILLED = "kill -9 -$(ps -o pgid= -p $$ | tr -d ' ')"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb_tui.launch.login_node.ASK_AGAIN_AFTER_S", 0.0)


@pytest.fixture
def _late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time in which Slurm may still take a job has passed."""
    monkeypatch.setattr("llmb_tui.launch.login_node.TAKEN_WITHIN_S", -1.0)


def _forget_jobs(stage: Stage) -> None:
    """Remove the jobs from Slurm: accounting is missing, and the controller forgets jobs after minutes."""
    (stage.folder / "jobs").write_text("")


def _write_output(stage: Stage, job_id: str) -> None:
    (stage.task / f"sbatch_{stage.run.job_name}_{job_id}.out").write_text("")


@pytest.mark.usefixtures("_late")
def test_a_submission_that_was_killed_is_withdrawn_when_slurm_has_had_its_time(stage: Stage) -> None:
    stage.on_sbatch(KILLED)
    with pytest.raises(LlmbError, match="was not submitted"):
        stage.submit()
    run = stage.runs.load(RUN_ID)
    assert (run.submission, run.note) == ("withdrawn", NEVER_TAKEN.format("sbatch"))


def test_a_run_whose_sbatch_was_killed_stays_unknown(stage: Stage) -> None:
    stage.on_sbatch(KILLED)
    run = stage.submit()
    assert run.submission == "unknown"
    assert "ended without an answer" in run.note
    assert stage.reconcile().submission == "unknown"


@pytest.mark.usefixtures("_late")
def test_a_lost_conversation_is_withdrawn_when_slurm_has_had_its_time(stage: Stage) -> None:
    stage.on_sbatch("echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1")
    with pytest.raises(LlmbError, match="was not submitted"):
        stage.submit()
    run = stage.runs.load(RUN_ID)
    assert run.submission == "withdrawn"
    assert run.note == f"{NEVER_TAKEN.format('sbatch')} sbatch said: Socket timed out on send/recv operation"


@pytest.mark.usefixtures("_late")
def test_slurm_is_queried_twice_before_a_run_counts_as_not_submitted(stage: Stage) -> None:
    """A controller that hung may answer before it reads the earlier submission."""
    stage.before_the_answer(KILLED)
    squeue = (Path(stage.cluster.root) / "bin/squeue").read_text()
    replace_command(stage.cluster.root, "squeue", f'[ -e "$STAGE/asked" ] || exec touch "$STAGE/asked"\n{squeue}')
    assert stage.submit().job_ids == ("48123",)


def test_a_job_that_slurm_forgot_is_found_in_the_answer_of_sbatch(stage: Stage) -> None:
    stage.before_the_answer('echo "$id"; rm "$STAGE/jobs"; touch "$STAGE/jobs"; kill -9 $PPID; exit')
    assert stage.submit().job_ids == ("48123",)


@pytest.mark.usefixtures("_late")
def test_a_job_that_slurm_forgot_is_found_by_its_output(stage: Stage) -> None:
    stage.before_the_answer(KILLED)
    stage.submit()
    _forget_jobs(stage)
    stage.set_unknown()
    _write_output(stage, "48123")
    assert stage.reconcile().job_ids == ("48123",)


def test_a_run_stays_unknown_while_slurm_cannot_list_its_jobs(stage: Stage) -> None:
    stage.on_sbatch(KILLED)
    stage.submit()
    replace_command(stage.cluster.root, "squeue", "echo 'Socket timed out on send/recv operation' >&2; exit 1")
    with pytest.raises(LlmbError, match="squeue"):
        stage.reconcile()
    assert stage.runs.load(RUN_ID).submission == "unknown"


@pytest.mark.usefixtures("_late")
def test_processes_of_another_login_node_cannot_be_seen(stage: Stage) -> None:
    """The process number of the submission does not exist on this login node."""
    stage.set_unknown()
    stage.traces.mkdir(parents=True)
    os.symlink("operator@login2 99999999 1", stage.traces / "claim")
    result = probe(stage.session, stage.place)
    assert (result.owner, result.has_ended) == ("operator@login2", True)  # since 1970
    (stage.traces / "claim").unlink()
    os.symlink("operator@login2 99999999 4000000000", stage.traces / "claim")
    assert not probe(stage.session, stage.place).has_ended
    assert stage.reconcile().submission == "unknown"


@pytest.mark.usefixtures("_late")
def test_a_process_that_is_at_work_is_not_given_up(stage: Stage) -> None:
    stage.give_up_after(0.5)
    # submit.sh has ended, and sbatch is still running.
    stage.on_sbatch('kill -9 $PPID; touch "$STAGE/alone"; while [ ! -e "$STAGE/go" ]; do sleep 0.02; done')
    assert stage.submit().submission == "unknown"
    until((stage.folder / "alone").exists)
    assert stage.reconcile().submission == "unknown"
    (stage.folder / "go").touch()
    until((stage.traces / "answer").read_text)
    assert stage.reconcile().job_ids == ("48123",)


@pytest.mark.usefixtures("_late")
def test_a_run_whose_folder_is_not_mounted_stays_unknown(stage: Stage) -> None:
    """The file system is not mounted on this login node."""
    stage.set_unknown()
    assert stage.reconcile().submission == "unknown"
    assert not stage.task.parent.exists()
