"""Results of finished runs with given step times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from llmb_tui.analysis.result import RunResult
from llmb_tui.cluster.job import Job
from llmb_tui.launch.run import Run
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import RunOptions, Selection
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.watch.progress import fold
from llmb_tui.watch.state import Progress, RunRecord, RunState, Step
from llmb_tui.watch.verdict import judge
from tests.kit.runs import CATALOG, CREATED_AT, NEMOTRON, make_run


def make_result(
    run_id: str,
    seconds: float | Sequence[float] = 1.98,
    selection: Selection = NEMOTRON,
    *,
    nodes: str = "",
    **changes: Any,
) -> RunResult:
    """Result of a successful run: one time for all steps, or one for each, in seconds; `nodes` as Slurm writes them."""
    run_plan = _plan(selection)
    times = [seconds] * run_plan.steps if isinstance(seconds, (int, float)) else list(seconds)
    steps = [Step(index, len(times), float(time)) for index, time in enumerate(times)]
    progress = fold(Progress(), steps, run_plan)
    rule = CATALOG.recipe(selection.workload, selection.release).rule
    verdict, no_verdict = judge(run_plan, rule, progress, finished=True, threshold=THRESHOLD)
    job = Job("7", "run", "COMPLETED", nodes=run_plan.nodes, node_list=nodes) if nodes else None
    run = make_run(run_id, plan=run_plan, rule=rule, submitted_at=CREATED_AT, job_state="COMPLETED")
    state = RunState(run_id, "done", job, progress, verdict=verdict, no_verdict=no_verdict)
    return with_changes(RunResult(RunRecord(run, state, CREATED_AT + 600)), **changes)


def with_changes(result: RunResult, **changes: Any) -> RunResult:
    """The result with other fields of its run, its state, its progress or its record."""
    record, run, state = result.record, result.run, result.record.state
    parts: dict[object, dict[str, Any]] = {}
    for name, value in changes.items():
        owner = next(part for part in (state, state.progress, run, record) if name in part.__dataclass_fields__)
        parts.setdefault(owner.__class__, {})[name] = value
    state = replace(state, **parts.get(RunState, {}))
    state = replace(state, progress=replace(state.progress, **parts.get(Progress, {})))
    run = replace(run, **parts.get(Run, {}))
    return replace(result, record=replace(record, run=run, state=state, **parts.get(RunRecord, {})))


def profiled(selection: Selection = NEMOTRON) -> Selection:
    """The selection with an Nsight profile."""
    return replace(selection, options=RunOptions(profile=True))


@lru_cache
def _plan(selection: Selection) -> Plan:
    return plan(CATALOG, selection)
