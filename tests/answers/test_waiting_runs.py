"""The reason of a queued run in the tables of runs and in its JSON object."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.answers.run_row import row_from_record
from llmb_tui.answers.runs import runs
from llmb_tui.answers.writers.rows import rows
from llmb_tui.cluster.job import Job
from llmb_tui.launch.run import Run
from llmb_tui.watch.report import document, waits
from llmb_tui.watch.state import RunRecord, RunState
from tests.kit.runs import make_run

WORDS = "It asks for fewer nodes than its QOS demands of a job, and waits until that changes. Cancel it and submit it"


def queued(reason: str = "QOSMinNode") -> Run:
    return make_run().seen(Job("48123", "x", "PENDING", reason, starts_at=9.0), 1.0)


def test_a_queued_run_has_its_reason_in_the_list_and_in_json() -> None:
    run, state = queued(), RunState("k3f9a2")
    row, json = row_from_record(RunRecord(run, state)), document(run, state)
    table = "\n".join(map(str, rows(runs([row], [json]).make_blocks())))
    assert "queued (QOSMinNode)" in table
    assert WORDS in table
    assert json["state"] == "queued"
    (reason,) = json["verdict"]["reasons"]
    assert reason.startswith(WORDS)
    assert reason.endswith("(QOSMinNode)")


def test_the_newest_reason_counts() -> None:
    state = RunState("k3f9a2", "queued", Job("48123", "x", "PENDING", "Priority"))
    assert waits(queued(), state) == "Other jobs have a higher priority. (Priority)"


@pytest.mark.parametrize("job", [Job("48123", "x", "RUNNING", "Priority"), Job("48123", "x", "COMPLETED", "Priority")])
def test_a_run_that_does_not_wait_has_no_reason(job: Job) -> None:
    run = queued().seen(job, 2.0)
    assert waits(run, RunState(run.id)) == ""
    assert waits(replace(run, job=None, job_state="PENDING"), RunState(run.id)) == ""
