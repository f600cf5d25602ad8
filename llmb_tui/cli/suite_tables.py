"""A suite as tables for a person: what it will be, and how it stands."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.cli.output import print_json, print_line, print_table
from llmb_tui.plan.plan import METHOD_NAMES
from llmb_tui.results.suite.document import progress_document
from llmb_tui.results.suite.outcome import outcome_of
from llmb_tui.results.suite.suite import SUITE_KINDS, Suite
from llmb_tui.results.suite.suite_plan import PlannedRow, SuitePlan
from llmb_tui.results.suite.suite_progress import RowProgress, SuiteProgress
from llmb_tui.text import plural

_PLAN = ("run", "nodes", "step s", "low", "high", "from", "GPU-hours", "time limit")
_PROGRESS = ("run", "id", "state", "step", "step s", "verdict")


def print_plan(plan: SuitePlan) -> None:
    """Each run, and the sums below."""
    suite = plan.suite
    print_line(f"{suite.name} on {suite.cluster}: {SUITE_KINDS[suite.kind]}")
    print_table(_PLAN, map(_plan_row, plan.rows))
    print_line(f"GPU-hours  {plan.gpu_hours:.1f} and start-up, at most {plan.most_gpu_hours:.1f} by the time limits")
    if plan.without_estimate:
        print_line(f"           {plural(plan.without_estimate, 'run')} without an estimate, by the time limit")
    parallel = "" if plan.parallel_s is None else f", {_duration(plan.parallel_s)} on {plan.free_nodes} free nodes"
    print_line(f"training   {_duration(plan.serial_s)} one after the other{parallel}; queue and start-up not in it")
    print_line("           " + ", ".join(_conduct(suite)))


def _conduct(suite: Suite) -> Iterator[str]:
    yield f"at most {suite.at_most} at a time" if suite.at_most else "all at a time"
    if suite.stop_after:
        yield f"until {plural(suite.stop_after, 'failure')}"
    if suite.chain:
        yield "each after the one before, by Slurm"
    if suite.shuffle is not None:
        yield f"shuffled by seed {suite.shuffle}"


def _plan_row(row: PlannedRow) -> tuple[str, ...]:
    estimate, hours = row.plan.estimate, row.plan.gpu_hours
    seconds = (estimate.step_time_s, estimate.low_s, estimate.high_s) if estimate else (None, None, None)
    return (
        row.row.key,
        str(row.plan.nodes),
        *("–" if one is None else f"{one:.4g}" for one in seconds),
        METHOD_NAMES[estimate.method] if estimate else "no number",
        "–" if hours is None else f"{hours:.1f}",
        row.plan.time_limit,
    )


def print_progress(progress: SuiteProgress, *, as_json: bool) -> None:
    """Each run, what the suite has answered, and what is left; or one JSON document."""
    if as_json:
        print_json(progress_document(progress))
        return
    print_table(_PROGRESS, map(_progress_row, progress.rows))
    for line in outcome_of(progress).lines:
        print_line(line)
    if not progress.over:
        print_line(f"left: {progress.gpu_hours_left:.1f} GPU-hours, {_duration(progress.serial_left_s)} of training")


def _progress_row(row: RowProgress) -> tuple[str, ...]:
    progress = row.record.state.progress if row.record else None
    step = f"{progress.steps_done}/{progress.steps_total or row.planned.plan.steps}" if progress else "–"
    seconds = "–" if row.step_time_s is None else f"{row.step_time_s:.4g}"
    run = row.planned.row.run_id if row.record else "–"
    return (row.planned.row.key, run, row.state, step, seconds, row.result or "–")


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"
