"""`fold`: adds steps to a `Progress`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median, quantiles

from llmb_tui.plan import throughput
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.state import BatchSize, Progress, Step

WARM_UP_STEPS = 5
"""The first steps compile kernels and fill caches, so they do not count for the median."""

# Limits of what a chart and a median need. The oldest are kept as well, because they include the recipes' windows.
_OLDEST_KEPT = 100
_NEWEST_KEPT = 4000
_UNTRAINED_KEPT = 100
_BATCHES_KEPT = 50


def fold(progress: Progress, steps: Sequence[Step], plan: Plan) -> Progress:
    """Progress after further steps, oldest first.

    The first step of a further start replaces the step of the same index, and all steps after that one.
    """
    if not steps:
        return progress
    begins = [0, *(i for i in range(1, len(steps)) if _starts(steps[i], steps[i - 1].index)), len(steps)]
    times, again_at, done = progress.step_times_s, progress.again_at, progress.steps_done
    starts, first_index = progress.starts, progress.first_index
    untrained, batches, before = progress.untrained, progress.batches, progress.last
    for begin, end in pairwise(begins):
        first = steps[begin].index
        if not done:
            starts, first_index = starts + (not 0 <= progress.last_before < first), first
        elif _starts(steps[begin], done - 1):
            times = tuple(pair for pair in times if pair[0] < first)
            again_at = (*(step for step in again_at if step < first), first)
            untrained = tuple(step for step in untrained if step.index < first)
            batches = tuple(entry for entry in batches if entry.index < first)
            starts, first_index, before = starts + 1, first, None
        run = steps[begin:end]
        times += tuple((step.index, step.step_time_s) for step in run if step.step_time_s is not None)
        untrained += tuple(step for step in run if not step.trained)
        batches = _batches(batches, run, before)
        done, before = run[-1].index + 1, run[-1]
    if len(untrained) > 2 * _UNTRAINED_KEPT:
        untrained = untrained[:_UNTRAINED_KEPT] + untrained[-_UNTRAINED_KEPT:]
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
        starts=starts,
        first_index=first_index,
        untrained=untrained,
        batches=batches,
        median_s=median(steady) if steady else None,
        spread=_spread(steady),
        tokens_per_s=None if seconds is None else throughput.tokens_per_s(runs.gbs, runs.seq_len, seconds),
        mfu_pct=_mfu_pct(plan, seconds),
    )


def _starts(step: Step, before: int) -> bool:
    """Whether a step is the first of a further start; `before`: index of the step before it."""
    return step.starts_again or step.index <= before


def _batches(batches: tuple[BatchSize, ...], steps: Sequence[Step], before: Step | None) -> tuple[BatchSize, ...]:
    """Global batch sizes, extended by further steps of one start; `before`: the step before them, if any."""
    kept = list(batches)
    batch, samples = (kept[-1].batch, kept[-1].samples) if kept else (None, None)
    for step in steps:
        between = None
        if before is not None and step.consumed_samples is not None and before.consumed_samples is not None:
            between = (step.consumed_samples - before.consumed_samples) / max(1, step.index - before.index)
        if not kept or step.batch != batch or (between is not None and between != samples):
            line = step.line or (kept[-1].line if kept and step.batch == batch else "")
            batch, samples = step.batch, between
            kept.append(BatchSize(step.index, batch, samples, line))
        before = step
    return tuple(kept[:_BATCHES_KEPT])


def after_warm_up(times: Sequence[tuple[int, float]]) -> list[float]:
    """Seconds of the steps that count. A run that continues from a checkpoint warms up as well."""
    return [seconds for index, seconds in times if index >= times[0][0] + WARM_UP_STEPS]


def _spread(seconds: list[float]) -> float | None:
    if len(seconds) < 4:
        return None
    low, middle, high = quantiles(seconds, n=4, method="inclusive")
    return (high - low) / 2 / middle


def _mfu_pct(plan: Plan, seconds: float | None) -> float | None:
    """MFU, percent; None without an estimate, which has the formula and the peak."""
    if seconds is None or plan.estimate is None:
        return None
    flops = plan.estimate.model_flops_per_sample
    tflops = throughput.tflops_per_gpu(plan.parallelism.gbs, flops, seconds, plan.selection.scale)
    return throughput.mfu_pct(tflops, plan.estimate.peak_tflops)
