"""Finished runs as their results, with step times that are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from llmb_tui.cluster.job import Job
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import RunOptions, Selection
from llmb_tui.results.result import RunResult
from llmb_tui.watch.progress import fold
from llmb_tui.watch.state import Progress, Step
from llmb_tui.watch.verdict import benchmark_s, judge, rule_s
from tests.kit.runs import CATALOG, CREATED_AT, NEMOTRON


def make_result(
    run_id: str,
    seconds: float | Sequence[float] = 1.98,
    selection: Selection = NEMOTRON,
    *,
    nodes: str = "",
    **changes: Any,
) -> RunResult:
    """A run that ended well: all steps took that long, or each as long as is said; `nodes` as Slurm has them."""
    made = _plan(selection)
    times = [seconds] * made.steps if isinstance(seconds, (int, float)) else list(seconds)
    steps = [Step(index, len(times), float(time)) for index, time in enumerate(times)]
    progress = fold(Progress(), steps, made)
    rule = CATALOG.recipe(selection.workload, selection.release).rule
    verdict, no_verdict = judge(made, rule, progress, finished=True)
    result = RunResult(
        id=run_id,
        plan=made,
        procedure="direct",
        cluster="eos",
        state="done",
        submitted_at=CREATED_AT,
        ended_at=CREATED_AT + 600,
        rule=rule,
        step_time_s=rule_s(made, rule, progress),
        comparable=benchmark_s(made, rule, progress) is not None,
        step_times_s=progress.step_times_s,
        steps_done=progress.steps_done,
        steps_total=made.steps,
        verdict=verdict,
        no_verdict=no_verdict,
        job=Job("7", "run", "COMPLETED", nodes=made.nodes, node_list=nodes) if nodes else None,
        restarts=0,
    )
    return replace(result, **changes)


def profiled(selection: Selection = NEMOTRON) -> Selection:
    """The same with an Nsight profile."""
    return replace(selection, options=RunOptions(profile=True))


@lru_cache
def _plan(selection: Selection) -> Plan:
    return plan(CATALOG, selection)
