"""`plan_document`, `progress_document`: JSON objects of a suite for other programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

from llmb_tui.language.states import RowStanding, VerdictResult
from llmb_tui.plan.document import document
from llmb_tui.suites.outcome import outcome_of
from llmb_tui.suites.suite_plan import PlannedRow, SuitePlan
from llmb_tui.suites.suite_progress import RowProgress, SuiteProgress

_SUITE = "name kind cluster at_most stop_after chain shuffle digest"


def plan_document(plan: SuitePlan) -> dict[str, Any]:
    """JSON object of a planned suite; `id` is null until the suite is stored."""
    return {
        "id": plan.suite.id or None,
        **_values(plan.suite, _SUITE),
        "rows": [_planned(row) for row in plan.rows],
        **_values(plan, "gpu_hours most_gpu_hours without_estimate serial_s parallel_s free_nodes"),
        "blockers": [{"row": row.row.key if row else None, **asdict(problem)} for row, problem in plan.blockers],
    }


def progress_document(progress: SuiteProgress) -> dict[str, Any]:
    """JSON object of a suite's progress."""
    suite, outcome = progress.plan.suite, outcome_of(progress)
    return {
        "id": suite.id,
        **_values(suite, f"{_SUITE} created_at cancelled"),
        **_values(progress, "over stopped gpu_hours_left left_s serial_left_s"),
        "counts": {standing.replace(" ", "_"): progress.count(standing) for standing in get_args(RowStanding)},
        "verdicts": {
            **{result: progress.results(result) for result in get_args(VerdictResult)},
            "none": progress.results(None),
        },
        "gpu_hours": progress.plan.gpu_hours,
        "result": outcome.result,
        "lines": list(outcome.lines),
        "rows": [_standing(row) for row in progress.rows],
    }


def _values(value: object, names: str) -> dict[str, Any]:
    """Attributes whose names are also keys of the document."""
    return {name: getattr(value, name) for name in names.split()}


def _planned(row: PlannedRow) -> dict[str, Any]:
    plan = document(row.plan)
    parts = ("selection", "nodes", "parallelism", "estimate", "gpu_hours")
    return {
        "key": row.row.key,
        "run": row.row.run_id or None,
        "procedure": row.row.procedure,
        **{name: plan[name] for name in parts},
        **_values(row.plan, "steps time_limit"),
        "most_gpu_hours": row.most_gpu_hours,
        "blockers": [asdict(problem) for problem in row.blockers],
        "notes": [asdict(problem) for problem in row.notes],
    }


def _standing(row: RowProgress) -> dict[str, Any]:
    verdict = row.record.state.verdict if row.record and row.result else None
    return {
        "key": row.planned.row.key,
        "run": row.planned.row.run_id or None,
        **_values(row, "standing state step_time_s result gpu_hours_left"),
        "ratio": verdict.ratio if verdict else None,
        "trouble": row.error.what if row.error else None,
    }
