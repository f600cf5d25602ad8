"""A run may have several jobs: the program watches the last job, and the run is active while any job is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.run_records import RunRecords

MakeRun = Callable[..., Run]


@pytest.fixture
def run(make_run: MakeRun) -> Run:
    return make_run(job_ids=("41", "42"))


def test_each_job_has_its_state(run: Run) -> None:
    updated = (
        run.with_state("41", "RUNNING")
        .with_state("42", "PENDING")
        .with_state("41", "COMPLETED")
        .with_state("7", "FAILED")
    )
    assert (updated.job_state, updated.other_states) == ("PENDING", (("41", "COMPLETED"),))
    assert (updated.state_of("41"), updated.state_of("42")) == ("COMPLETED", "PENDING")


@pytest.mark.parametrize(
    ("first", "last", "going"),
    [
        (None, None, True),
        ("RUNNING", "COMPLETED", True),
        (None, "COMPLETED", True),
        ("COMPLETED", "RUNNING", True),
        ("CANCELLED", "TIMEOUT", False),
    ],
)
def test_a_run_is_active_while_any_of_its_jobs_is_active(
    run: Run, first: str | None, last: str | None, going: bool
) -> None:
    updated = run.with_state("41", first) if first else run
    assert replace(updated, job_state=last).is_active is going


def test_without_the_cluster_the_others_are_as_they_were_seen_last(run: Run, tmp_path: Path) -> None:
    runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
    runs.save(run.with_state("41", "RUNNING").with_state("42", "COMPLETED"))
    state = RunRecords(runs).record(runs.load(run.id)).state
    assert [(job.id, job.state) for job in state.others] == [("41", "RUNNING")]


def test_a_run_with_an_unknown_log_has_a_reason(run: Run, tmp_path: Path) -> None:
    runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
    runs.save(run)
    state = RunRecords(runs).record(replace(run, spec=None).with_state("42", "COMPLETED")).state
    assert (state.stage, state.verdict) == ("done", None)
    assert state.no_verdict == "No verdict: the path of the job's log is not known."
