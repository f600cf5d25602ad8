"""Steps folded into `Progress`, and the pace at which they arrive."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from statistics import median, quantiles

from llmb_tui.plan import throughput
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.failure import Failure
from llmb_tui.watch.state import Progress
from llmb_tui.watch.step import Step

WARM_UP_STEPS = 5
"""The first steps compile kernels and fill caches; they do not count for the median."""

# A chart and a median need no more. The oldest are kept as well, for the recipes' windows lie among them.
_OLDEST_KEPT = 100
_NEWEST_KEPT = 4000

_PACE_STEPS = 10


def fold(progress: Progress, steps: Sequence[Step], plan: Plan) -> Progress:
    """What is known after further steps, oldest first.

    A step that is given again replaces the earlier one, and those that came after that: the job was started again.
    """
    if not steps:
        return progress
    again = [at for at in range(1, len(steps)) if steps[at].index <= steps[at - 1].index]
    steps = steps[again[-1] :] if again else steps
    times = tuple(known for known in progress.step_times_s if known[0] < steps[0].index)
    times += tuple((step.index, step.step_time_s) for step in steps if step.step_time_s is not None)
    if len(times) > _OLDEST_KEPT + _NEWEST_KEPT:
        times = times[:_OLDEST_KEPT] + times[-_NEWEST_KEPT:]
    last = steps[-1]
    measured = after_warm_up(times)
    seconds = median(measured) if measured else last.step_time_s
    return replace(
        progress,
        steps_done=last.index + 1,
        steps_total=last.total if last.total is not None else progress.steps_total,
        last=last,
        step_times_s=times,
        median_s=median(measured) if measured else None,
        spread=_spread(measured),
        tokens_per_s=_tokens_per_s(plan, seconds),
        mfu_pct=_mfu_pct(plan, seconds),
    )


def with_failure(progress: Progress, failure: Failure | None) -> Progress:
    """The same progress with the reason why the run failed, or without one."""
    if failure is None:
        return replace(progress, failure=None, failure_reason="", failure_fix="")
    return replace(progress, failure=failure.line, failure_reason=failure.reason, failure_fix=failure.fix)


def after_warm_up(times: Sequence[tuple[int, float]]) -> list[float]:
    """Seconds of the steps that count: a run that goes on from a checkpoint warms up as well."""
    return [seconds for index, seconds in times if index >= times[0][0] + WARM_UP_STEPS]


def _spread(seconds: list[float]) -> float | None:
    if len(seconds) < 4:
        return None
    low, middle, high = quantiles(seconds, n=4, method="inclusive")
    return (high - low) / 2 / middle


def _tokens_per_s(plan: Plan, seconds: float | None) -> float | None:
    if seconds is None:
        return None
    return throughput.tokens_per_s(plan.parallelism.gbs, plan.parallelism.seq_len, seconds)


def _mfu_pct(plan: Plan, seconds: float | None) -> float | None:
    """None without an estimate: it is the estimate that names the formula and the peak."""
    if seconds is None or plan.estimate is None:
        return None
    flops = plan.estimate.model_flops_per_sample
    tflops = throughput.tflops_per_gpu(plan.parallelism.gbs, flops, seconds, plan.selection.scale)
    return throughput.mfu_pct(tflops, plan.estimate.peak_tflops)


class Pace:
    """When the run will be done, by the clock on the wall: simulated runs have another clock of their own."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, float]] = deque(maxlen=_PACE_STEPS + 1)

    def note(self, steps_done: int, now: float) -> None:
        """Take in how far the run is at the monotonic time `now`. Fewer steps than before are a new start."""
        if self._seen and steps_done < self._seen[-1][0]:
            self._seen.clear()
        if not self._seen or steps_done > self._seen[-1][0]:
            self._seen.append((steps_done, now))

    def eta_s(self, steps_total: int | None, now: float) -> float | None:
        """Seconds until the last step; None before two arrivals were seen, and after the last step."""
        if len(self._seen) < 2 or steps_total is None or self._seen[-1][0] >= steps_total:
            return None
        (first, began), (done, latest) = self._seen[0], self._seen[-1]
        return max(0.0, (steps_total - done) * (latest - began) / (done - first) - (now - latest))
