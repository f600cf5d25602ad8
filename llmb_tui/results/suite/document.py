"""`plan_document`, `progress_document`: a suite as the JSON objects that other programs rely on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

from llmb_tui.plan.document import document
from llmb_tui.results.suite.outcome import outcome_of
from llmb_tui.results.suite.suite import Suite
from llmb_tui.results.suite.suite_plan import PlannedRow, SuitePlan
from llmb_tui.results.suite.suite_progress import RowProgress, Standing, SuiteProgress
from llmb_tui.watch.state import Result

_SUITE = ("name", "kind", "cluster", "at_most", "stop_after", "chain", "shuffle", "digest")


def plan_document(plan: SuitePlan) -> dict[str, Any]:
    """What a suite will be; `id` is null until it is kept."""
    return {
        "id": plan.suite.id or None,
        **_suite(plan.suite),
        "rows": [_planned(row) for row in plan.rows],
        "gpu_hours": plan.gpu_hours,
        "most_gpu_hours": plan.most_gpu_hours,
        "without_estimate": plan.without_estimate,
        "serial_s": plan.serial_s,
        "parallel_s": plan.parallel_s,
        "free_nodes": plan.free_nodes,
        "blockers": [{"row": row.row.key if row else None, **asdict(problem)} for row, problem in plan.blockers],
    }


def progress_document(progress: SuiteProgress) -> dict[str, Any]:
    """How a suite stands."""
    suite, outcome = progress.plan.suite, outcome_of(progress)
    return {
        "id": suite.id,
        **_suite(suite),
        "created_at": suite.created_at,
        "over": progress.over,
        "stopped": progress.stopped,
        "cancelled": suite.cancelled,
        "counts": {standing.replace(" ", "_"): progress.count(standing) for standing in get_args(Standing)},
        "verdicts": {
            **{result: progress.results(result) for result in get_args(Result)},
            "none": progress.results(None),
        },
        "gpu_hours": progress.plan.gpu_hours,
        "gpu_hours_left": progress.gpu_hours_left,
        "left_s": progress.left_s,
        "serial_left_s": progress.serial_left_s,
        "result": outcome.result,
        "lines": list(outcome.lines),
        "rows": [_standing(row) for row in progress.rows],
    }


def _suite(suite: Suite) -> dict[str, Any]:
    return {name: getattr(suite, name) for name in _SUITE}


def _planned(row: PlannedRow) -> dict[str, Any]:
    plan = document(row.plan)
    parts = ("selection", "nodes", "parallelism", "estimate", "gpu_hours")
    return {
        "key": row.row.key,
        "run": row.row.run_id or None,
        "procedure": row.row.procedure,
        **{name: plan[name] for name in parts},
        "steps": row.plan.steps,
        "most_gpu_hours": row.most_gpu_hours,
        "time_limit": row.plan.time_limit,
        "blockers": [asdict(problem) for problem in row.blockers],
        "notes": [asdict(problem) for problem in row.notes],
    }


def _standing(row: RowProgress) -> dict[str, Any]:
    verdict = row.record.state.verdict if row.record and row.result else None
    return {
        "key": row.planned.row.key,
        "run": row.planned.row.run_id or None,
        "standing": row.standing,
        "state": row.state,
        "step_time_s": row.step_time_s,
        "result": row.result,
        "ratio": verdict.ratio if verdict else None,
        "gpu_hours_left": row.gpu_hours_left,
    }
