"""Answers about a suite before and after it is submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Bullets, Facts, Grid, Remarks
from llmb_tui.answers.suite import planned_suite, submitted_suite, suites
from llmb_tui.answers.table import cell_text
from llmb_tui.plan.plan import error
from llmb_tui.services import Services
from llmb_tui.suites.document import plan_document, progress_document
from llmb_tui.suites.suite_progress import SuiteProgress
from tests.baseline.answers import SUITE, UNFINISHED


@pytest.fixture
def unfinished(services: Services) -> SuiteProgress:
    """Two of its four runs are done, and two are not submitted."""
    return services.suites.progress(services.suites.load(UNFINISHED))


def cells(answer: Answer, *headings: str) -> list[tuple[str, ...]]:
    (grid,) = (block for block in answer.make_blocks() if isinstance(block, Grid))
    indexes = [grid.table.headings.index(heading) for heading in headings]
    return [tuple(cell_text(row[index]) for index in indexes) for row in grid.table.rows]


def facts(answer: Answer) -> dict[str, str]:
    blocks = (block for block in answer.make_blocks() if isinstance(block, Facts))
    return {fact.label: fact.value for block in blocks for fact in block.facts}


def remarks(answer: Answer) -> Sequence[str]:
    blocks = (block for block in answer.make_blocks() if isinstance(block, Remarks))
    return [remark.text for block in blocks for remark in block.items]


def test_a_run_that_is_not_submitted_has_only_an_expected_step_time(unfinished: SuiteProgress) -> None:
    shown = submitted_suite(unfinished)
    assert cells(shown, "state", "steps", "step s", "expected s", "verdict")[1:3] == [
        ("done", "50/50", "1.981", "1.98", "PASS"),
        ("not submitted", "–", "–", "1.98", "–"),
    ]
    assert [run for (run,) in cells(shown, "run")][2:] == ["–", "–"]
    assert facts(shown) == {"remaining": "1.8 GPU-hours, 3 min of training"}
    assert shown.make_document() == progress_document(unfinished)


def test_a_finished_suite_has_its_outcome_and_no_remaining_work(services: Services) -> None:
    progress = services.suites.progress(services.suites.load(SUITE))
    shown = submitted_suite(progress)
    assert facts(shown) == {}
    assert [block.items for block in shown.make_blocks() if isinstance(block, Bullets)] == [(progress.words,)]


def test_a_run_that_cannot_be_read_is_unknown_and_its_file_is_named(services: Services, home: Path) -> None:
    suite = services.suites.load(SUITE)
    (home / "state" / "runs" / suite.run_ids[0] / "run.json").write_text("{")
    progress = services.suites.progress(suite)
    shown = submitted_suite(progress)
    assert cells(shown, "run", "state", "step s")[0] == ("–", "unknown", "–")
    (remark,) = remarks(shown)
    assert remark.startswith(f"{progress.rows[0].planned.row.key}: ")
    assert f"{suite.run_ids[0]}/run.json" in remark
    assert "\n" not in remark


def test_a_plan_has_the_cost_of_its_runs_and_its_problems(unfinished: SuiteProgress) -> None:
    problem = error("account", "The account is closed.", "Choose another account.")
    plan = replace(unfinished.plan, suite_blockers=(problem,))
    shown = planned_suite(plan)
    assert cells(shown, "nodes", "expected s", "low s", "high s", "source", "GPU-hours")[0] == (
        "2", "1.98", "1.901", "2.059", "published", "0.4",
    )  # fmt: skip
    assert list(facts(shown)) == ["cost", "training", "submission"]
    assert remarks(shown) == ["unfinished: The account is closed. Choose another account."]
    assert shown.make_document() == plan_document(plan)


def test_the_list_of_suites_has_the_progress_of_each(services: Services) -> None:
    listed = [services.suites.progress(suite) for suite in services.suites.all()]
    assert cells(suites(listed), "suite", "runs") == [
        (UNFINISHED, "2 of 4 runs done: 2 PASS · 2 not submitted"),
        (SUITE, "3 of 3 runs done: 3 PASS"),
    ]
    assert [document["id"] for document in suites(listed).make_document()] == [UNFINISHED, SUITE]
