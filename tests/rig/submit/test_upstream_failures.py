"""Launches by NVIDIA's scripts while Slurm fails or refuses, and while the user launches other jobs manually."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.launch.submission_status import probe
from tests.kit.runs import delivery_of, start_late
from tests.kit.waiting import until
from tests.rig.submit.test_slurm_failing import waiting_connections
from tests.rig.submit.trial import Trial
from tests.rig.submit.upstream_intents import WITH_ALL, LaunchHold, folder_of, group_of, kill, spec_of

NAME = "nemo_grok1"


def launch_manually(trial: Trial, name: str, folder: str) -> str:
    """Submit a job from that folder as the same user, without the program; returns its number."""
    words = ["/usr/bin/sbatch", "--parsable", "--hold", f"--job-name={name}", "--wrap=true"]
    return trial.rig.as_operator(words, cwd=folder, check=True).stdout.strip()


def test_the_controller_hangs_when_sbatch_submits(batch: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of three launches is killed while it waits, and the others time out."""
    monkeypatch.setattr("llmb_tui.launch.login_node.TAKEN_WITHIN_S", 40.0)
    for whom in (WITH_ALL, None):
        run = batch.new()
        with LaunchHold(batch.rig, "before") as hold:
            thread = batch.submit_in_background(run)
            hold.wait()
            with batch.rig.controller_hung():
                hold.release()
                until(lambda: waiting_connections(batch.rig), "sbatch has sent its job")
                if whom is not None:
                    kill(batch, run, whom)
                else:
                    until((folder_of(run) / "exit").exists, "sbatch has given up")
                    assert "Socket timed out" in (folder_of(run) / "output").read_text()
                thread.join()
                assert batch.remembered(run).submission == "unknown"
    batch.settle()
    assert batch.tally.ended == {"submitted": 2}


def test_a_launch_stops_when_slurm_cannot_list_the_jobs(batch: Trial) -> None:
    run = batch.new()
    with batch.rig.controller_hung(), batch.session() as session, pytest.raises(LlmbError) as caught:
        batch.submit(session, run)
    assert caught.value.what == "The job was not submitted: Slurm cannot list the jobs."
    assert "slurm_load_jobs error" in caught.value.why
    assert caught.value.exit_code == 2
    assert not (folder_of(run) / "began").exists()
    batch.settle()
    assert batch.tally.ended == {"refused": 1}


def test_slurms_refusal_is_quoted(batch: Trial, nemo_run: Trial) -> None:
    for trial in (batch, nemo_run):
        command = spec_of(trial.new()).command.replace("llmbench", "nobody")
        trial.runs.clear()
        run = trial.new(account="nobody", command=command)
        with trial.session() as session, pytest.raises(LlmbError) as caught:
            trial.submit(session, run)
        assert caught.value.what.startswith("Slurm rejected the job: account `nobody` is not one of yours")
        assert "Invalid account or account/partition combination specified" in caught.value.why
        assert caught.value.exit_code == 1
        trial.settle()
        assert trial.remembered(run).submission == "refused"


def test_a_launch_that_fails_before_sbatch_reports_its_reason(nemo_run: Trial) -> None:
    root = Path(spec_of(nemo_run.new()).root)
    nemo_run.runs.clear()
    (metadata,) = (root.parent.parent / "venvs").glob("*/lib/python3*/site-packages/pyarrow-*/METADATA")
    right = metadata.read_text()
    metadata.write_text(re.sub(r"^Version: .*", "Version: 23.0.0", right, flags=re.MULTILINE))
    try:
        with nemo_run.session() as session, pytest.raises(LlmbError) as caught:
            nemo_run.submit(session, nemo_run.new())
    finally:
        metadata.write_text(right)
    assert caught.value.what == (
        "The job was not submitted: the Python environment has a version of pyarrow that the recipe does not work with."
    )
    assert "this release does not work with pyarrow 23.0.0" in caught.value.why
    nemo_run.settle()
    assert nemo_run.tally.ended == {"refused": 1}


def test_an_unsupported_scale_is_reported(nemo_run: Trial) -> None:
    command = spec_of(nemo_run.new()).command.replace("MODEL_SIZE=15b", "MODEL_SIZE=8b")
    nemo_run.runs.clear()
    with nemo_run.session() as session, pytest.raises(LlmbError, match="has no TP"):
        nemo_run.submit(session, nemo_run.new(command=command))
    nemo_run.settle()


def test_manual_jobs_are_not_taken_for_the_launchs(batch: Trial) -> None:
    """Manual jobs with another name, from another folder, and an earlier job of the same kind."""
    root = spec_of(batch.new()).root
    batch.runs.clear()
    launch_manually(batch, NAME, root)
    for moment, state in (("before", "withdrawn"), ("after", "submitted")):
        run = batch.new()
        with LaunchHold(batch.rig, moment) as hold:
            thread = batch.submit_in_background(run)
            hold.wait()
            launch_manually(batch, f"{NAME}_too", root)
            launch_manually(batch, NAME, str(batch.rig.new_dir()))
            kill(batch, run, WITH_ALL)
        thread.join()
        batch.settle()
        assert batch.remembered(run).submission == state
        batch.runs.clear()


def test_a_manual_job_that_cannot_be_distinguished_leaves_the_run_unknown(batch: Trial) -> None:
    run = batch.new()
    with LaunchHold(batch.rig, "after") as hold:
        thread = batch.submit_in_background(run)
        hold.wait()
        text = launch_manually(batch, NAME, spec_of(run).root)
        kill(batch, run, WITH_ALL)
    thread.join()
    (job,) = batch.intents.jobs([run])[run.id]
    with batch.session() as session:
        stored = batch.reconcile(session, run)
        assert stored.submission == "unknown"
        assert f"Jobs {job} and {text} appeared while launch.sh was active" in stored.note
        # The user can cancel and wait, or ask again; nothing is ever launched again.
        assert batch.submit(session, run).submission == "unknown"
    assert len(batch.intents.jobs([run])[run.id]) == 1


def test_a_manual_job_does_not_matter_to_a_launch_that_names_its_jobs(batch: Trial, nemo_run: Trial) -> None:
    for trial in (batch, nemo_run):
        run = trial.new()
        with LaunchHold(trial.rig, "after") as hold:
            thread = trial.submit_in_background(run)
            hold.wait()
            launch_manually(trial, spec_of(run).job_name, spec_of(run).directory)
        thread.join()
        assert trial.remembered(run).note == ""
        trial.settle()


def test_the_experiment_name_distinguishes_a_lost_launch_from_a_manual_launch(nemo_run: Trial) -> None:
    """The same manual command a moment later: the experiment's name has a time after the end of the launch."""
    run = nemo_run.new()
    with LaunchHold(nemo_run.rig, "before") as hold:
        thread = nemo_run.submit_in_background(run)
        hold.wait()
        kill(nemo_run, run, WITH_ALL)
    thread.join()
    last_seen = int((folder_of(run) / "beat").read_text())
    until(lambda: _now(nemo_run) > last_seen + 11, "the launch ended some seconds ago")
    done = nemo_run.rig.as_operator(["sh", "-c", spec_of(run).command], timeout_s=60)
    assert "- Job id: " in done.stdout, done.stdout + done.stderr
    nemo_run.settle()
    assert nemo_run.tally.ended == {"withdrawn": 1}


def _now(trial: Trial) -> int:
    return int(trial.rig.as_operator("date +%s").stdout)


def test_a_launch_that_was_withdrawn_cannot_begin_later(batch: Trial) -> None:
    run = batch.new()
    place = delivery_of(run).place
    with batch.session() as session:
        session.run(["mkdir", "-p", place.folder])
        for path, text in delivery_of(run).preparation("echo never").files:
            session.write_file(path, text.encode())
        assert probe(session, place, "withdraw").withdrawn
        assert probe(session, place, "start").withdrawn
        start_late(session, place)
    assert group_of(run) == "-"
    assert not (folder_of(run) / "output").exists()
