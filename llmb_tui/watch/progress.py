"""Steps folded into `Progress`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median, quantiles

from llmb_tui.plan import throughput
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.state import Progress, Step

WARM_UP_STEPS = 5
"""The first steps compile kernels and fill caches; they do not count for the median."""

# A chart and a median need no more. The oldest are kept as well, for the recipes' windows lie among them.
_OLDEST_KEPT = 100
_NEWEST_KEPT = 4000


def fold(progress: Progress, steps: Sequence[Step], plan: Plan) -> Progress:
    """What is known after further steps, oldest first.

    A step that is given again replaces the earlier one, and those that came after that: the job was started again.
    """
    if not steps:
        return progress
    begins = [0, *(at for at in range(1, len(steps)) if steps[at].index <= steps[at - 1].index), len(steps)]
    times, again_at, done = progress.step_times_s, progress.again_at, progress.steps_done
    for begin, end in pairwise(begins):
        first = steps[begin].index
        if first < done:
            times = tuple(pair for pair in times if pair[0] < first)
            again_at = (*(at for at in again_at if at < first), first)
        times += tuple((step.index, step.step_time_s) for step in steps[begin:end] if step.step_time_s is not None)
        done = steps[end - 1].index + 1
    if len(times) > _OLDEST_KEPT + _NEWEST_KEPT:
        times = times[:_OLDEST_KEPT] + times[-_NEWEST_KEPT:]
    last, runs = steps[-1], plan.parallelism
    steady = after_warm_up(times)
    seconds = median(steady) if steady else last.step_time_s
    return replace(
        progress,
        steps_done=last.index + 1,
        steps_total=last.total if last.total is not None else progress.steps_total,
        last=last,
        step_times_s=times,
        again_at=again_at,
        median_s=median(steady) if steady else None,
        spread=_spread(steady),
        tokens_per_s=None if seconds is None else throughput.tokens_per_s(runs.gbs, runs.seq_len, seconds),
        mfu_pct=_mfu_pct(plan, seconds),
    )


def after_warm_up(times: Sequence[tuple[int, float]]) -> list[float]:
    """Seconds of the steps that count: a run that goes on from a checkpoint warms up as well."""
    return [seconds for index, seconds in times if index >= times[0][0] + WARM_UP_STEPS]


def _spread(seconds: list[float]) -> float | None:
    if len(seconds) < 4:
        return None
    low, middle, high = quantiles(seconds, n=4, method="inclusive")
    return (high - low) / 2 / middle


def _mfu_pct(plan: Plan, seconds: float | None) -> float | None:
    """None without an estimate: it is the estimate that names the formula and the peak."""
    if seconds is None or plan.estimate is None:
        return None
    flops = plan.estimate.model_flops_per_sample
    tflops = throughput.tflops_per_gpu(plan.parallelism.gbs, flops, seconds, plan.selection.scale)
    return throughput.mfu_pct(tflops, plan.estimate.peak_tflops)
