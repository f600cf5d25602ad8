"""What a report says of a suite: what it was to answer, what it has answered, and how each of its rows stands. Pure."""

from __future__ import annotations

from llmb_tui.results.report.blocks import Banner, Bullets, Fact, Facts, Section, narrowed
from llmb_tui.results.report.reported_run import moment
from llmb_tui.results.suite.outcome import outcome_of
from llmb_tui.results.suite.suite import SUITE_KINDS
from llmb_tui.results.suite.suite_progress import RowProgress, SuiteProgress
from llmb_tui.results.table import Cell, Table

_HEADINGS = ("row", "run", "state", "verdict", "step s", "expected s", "GPU-hours")


def suite_title(progress: SuiteProgress) -> str:
    """As the operator calls it."""
    return f"Suite {progress.plan.suite.name}"


def suite_banner(progress: SuiteProgress) -> Banner | None:
    """Its one verdict; None for a suite that gives none, or none yet."""
    outcome = outcome_of(progress)
    if outcome.result is None:
        return None
    return Banner(outcome.result, outcome.lines[0].removeprefix(f"{outcome.result}: "))


def suite_section(progress: SuiteProgress) -> Section:
    """All that is said of it beside its runs."""
    suite = progress.plan.suite
    facts = [
        Fact("What it answers", SUITE_KINDS[suite.kind]),
        Fact("Suite", suite.id, exact=True),
        Fact("Cluster", suite.cluster),
        Fact("Kept", moment(suite.created_at)),
        Fact("Stands", progress.words),
    ]
    if suite.shuffle is not None:
        facts.append(Fact("Order", f"shuffled, seed {suite.shuffle}"))
    rows = Table.of(_HEADINGS, [_row(row) for row in progress.rows])
    blocks = (
        Facts(tuple(facts)),
        Bullets(outcome_of(progress).lines),
        narrowed("Its runs, in the order of submission.", rows),
    )
    return Section(suite_title(progress), blocks)


def _row(row: RowProgress) -> tuple[Cell, ...]:
    plan, estimate = row.planned.plan, row.planned.estimate
    expected = estimate.step_time_s if estimate else None
    run_id = row.record.run.id if row.record else None
    return row.planned.row.key, run_id, row.state, row.result, row.step_time_s, expected, plan.gpu_hours
