"""A suite as tables for a person: what it will be, and how it stands."""

from __future__ import annotations

from llmb_tui.cli.output import print_as, print_json, print_line
from llmb_tui.plan.plan import METHOD_NAMES
from llmb_tui.results.suite.document import progress_document
from llmb_tui.results.suite.outcome import outcome_of
from llmb_tui.results.suite.suite import SUITE_KINDS
from llmb_tui.results.suite.suite_plan import SuitePlan
from llmb_tui.results.suite.suite_progress import RowProgress, SuiteProgress
from llmb_tui.results.table import Column, Table
from llmb_tui.text import plural


def _steps(row: RowProgress) -> str | None:
    progress = row.record.state.progress if row.record else None
    return f"{progress.steps_done}/{progress.steps_total or row.planned.plan.steps}" if progress else None


_PLAN: tuple[Column, ...] = (
    ("run", "row.key"),
    ("nodes", "plan.nodes"),
    ("step s", "plan.estimate.step_time_s"),
    ("low", "plan.estimate.low_s"),
    ("high", "plan.estimate.high_s"),
    ("from", lambda row: METHOD_NAMES[row.plan.estimate.method] if row.plan.estimate else "no number"),
    ("GPU-hours", "plan.gpu_hours"),
    ("time limit", "plan.time_limit"),
)
_PROGRESS: tuple[Column, ...] = (
    ("run", "planned.row.key"),
    ("id", "record.run.id"),
    ("state", "state"),
    ("step", _steps),
    ("step s", "step_time_s"),
    ("verdict", "result"),
)


def print_plan(plan: SuitePlan) -> None:
    """Each run, and the sums below."""
    suite = plan.suite
    print_line(f"{suite.name} on {suite.cluster}: {SUITE_KINDS[suite.kind]}")
    print_as("table", Table.by(_PLAN, plan.rows))
    print_line(f"GPU-hours  {plan.gpu_hours:.1f} and start-up, at most {plan.most_gpu_hours:.1f} by the time limits")
    if plan.without_estimate:
        print_line(f"           {plural(plan.without_estimate, 'run')} without an estimate, by the time limit")
    parallel = "" if plan.parallel_s is None else f", {_duration(plan.parallel_s)} on {plan.free_nodes} free nodes"
    print_line(f"training   {_duration(plan.serial_s)} one after the other{parallel}; queue and start-up not in it")
    print_line(f"           {suite.conduct}")


def print_progress(progress: SuiteProgress, *, as_json: bool) -> None:
    """Each run, what the suite has answered, and what is left; or one JSON document."""
    if as_json:
        print_json(progress_document(progress))
        return
    print_as("table", Table.by(_PROGRESS, progress.rows))
    for line in outcome_of(progress).lines:
        print_line(line)
    if not progress.over:
        print_line(f"left: {progress.gpu_hours_left:.1f} GPU-hours, {_duration(progress.serial_left_s)} of training")


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"
