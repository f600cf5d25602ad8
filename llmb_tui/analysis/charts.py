"""Charts of finished runs: step time over steps, step time and efficiency over GPUs, runs over time. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median

from llmb_tui.analysis.changes import RULE, changes
from llmb_tui.analysis.chart import (
    Axis,
    Band,
    Chart,
    Point,
    ReferenceLine,
    Role,
    Series,
    scale_axis,
    shown_values,
    time_axis,
    value_axis,
)
from llmb_tui.analysis.result import RunResult
from llmb_tui.analysis.scaling import ScalePoint, ScalingCurve
from llmb_tui.language.quantities import (
    count,
    percent,
    percent_digits,
    step_time,
    step_time_digits,
    step_time_range,
    two_digits,
)
from llmb_tui.language.states import method_phrase, method_word
from llmb_tui.language.text import plural
from llmb_tui.plan.over_scale import AtScale
from llmb_tui.plan.plan import Estimate, Plan

_SECONDS = "step time, s"
_GPUS = "GPUs"
_MOST_STEPS = 400
_Times = Sequence[tuple[int, float]]


def step_chart(result: RunResult) -> Chart | None:
    """Step time over the steps of a run, with the expected step time; None if its log has no step time."""
    times = result.facts.step_times_s if result.facts else result.progress.step_times_s
    estimate = result.plan.estimate
    if not times:
        return None
    last = max(result.steps_total - 1, times[-1][0], 1)
    points = _thinned(times)
    expected = (estimate.low_s, estimate.high_s) if estimate else None
    y = value_axis(_SECONDS, shown_values([value for _, value in times], expected), step_time_digits)
    outside = [(index, value) for index, value in times if not y.low <= value <= y.high]
    notes = []
    if len(points) < len(times):
        together = -(-len(times) // _MOST_STEPS)
        notes.append(
            f"Each point is the median of up to {together} steps; its line spans all of them, or ends at the edge."
        )
    if outside:
        index, value = max(outside, key=lambda pair: pair[1])
        slowest = f": iteration {index}" if len(outside) == 1 else f"; the slowest is iteration {index}"
        are = "step is" if len(outside) == 1 else "steps are"
        notes.append(f"{count(len(outside))} {are} outside the chart{slowest} with {step_time(value)}.")
    return Chart(
        name="steps",
        title="Step time over the run",
        x=Axis("iteration, from 0 as the log counts", -0.01 * last, 1.01 * last),
        y=y,
        bands=_expected_band(estimate, -0.01 * last, 1.01 * last),
        rules=_expected_rule(result.plan),
        series=(Series("measured", "measured step", points, joined=True), *_counted(result)),
        summary=_step_summary(result, times),
        notes=tuple(notes),
    )


def scale_chart(
    points: Sequence[AtScale], measured: Sequence[RunResult], this: RunResult | None = None
) -> Chart | None:
    """Step time over the number of GPUs: published, expected with its band, measured here, and the run itself.

    `measured`: runs that differ only in their scale. Runs that cannot be compared are left out, and so is `this` if it
    is the only run of its scale. None if there is nothing to draw.
    """
    alone = [run.id for run in measured if this and run.plan.selection.scale == this.plan.selection.scale]
    groups = by_scale([run for run in measured if this is None or alone != [this.id] or run.id != this.id])
    own = (this.plan.selection.scale, this.step_time_s) if this and this.step_time_s is not None else None
    scales = [*(point.gpus for point in points), *groups, *([own[0]] if own else [])]
    values = [value for point in points for value in (point.estimate.low_s, point.estimate.high_s)]
    values += [value for times in groups.values() for value in times] + ([own[1]] if own else [])
    if not values or not (points or measured):
        return None
    published = [Point(point.gpus, point.estimate.step_time_s) for point in points if point.published]
    estimated = [Point(point.gpus, point.estimate.step_time_s) for point in points if not point.published]
    estimate_words = sorted({method_word(point.estimate.method) for point in points if not point.published})
    series = [
        Series("published", "published", tuple(published)),
        Series("estimated", " or ".join(estimate_words), tuple(estimated)),
        Series("measured", "measured here", tuple(_repeats(scale, times) for scale, times in sorted(groups.items()))),
    ]
    if own:
        series.append(Series("this", "this run", (Point(*own, step_time(own[1])),)))
    bands = [(at.gpus, at.estimate.low_s, at.estimate.high_s) for at in points]
    return Chart(
        name="scale",
        title="Step time over the number of GPUs",
        x=scale_axis(_GPUS, scales),
        y=value_axis(_SECONDS, values, step_time_digits),
        bands=(Band("expected", "band of the expected step time", tuple(bands)),) if len(bands) > 1 else (),
        series=tuple(entry for entry in series if entry.points),
        summary=_scale_summary(points, groups, own),
    )


def efficiency_chart(curve: ScalingCurve) -> Chart:
    """Tokens/s of each GPU over the number of GPUs, in per cent of the smallest measured scale."""
    base, largest = curve.points[0], curve.points[-1]
    measured = tuple(_efficiency(point) for point in curve.points)
    published = tuple(
        Point(point.gpus, point.published_efficiency_pct) for point in curve.points if point.published_efficiency_pct
    )
    values = [value for point in measured for value in (point.y, point.low, point.high) if value is not None]
    share = percent(largest.efficiency_pct)
    summary = f"On {count(largest.gpus)} GPUs each is {share} as fast as on {count(base.gpus)}"
    if largest.published_efficiency_pct is not None:
        summary += f"; by the published figures {percent(largest.published_efficiency_pct)}"
    return Chart(
        name="efficiency",
        title="Scaling efficiency",
        x=scale_axis(_GPUS, [point.gpus for point in curve.points]),
        y=value_axis(
            f"tokens/s of a GPU, % of that on {count(base.gpus)} GPUs",
            [100.0, *values, *(point.y for point in published)],
            percent_digits,
        ),
        rules=(ReferenceLine("ideal", "as fast on each GPU", 100.0),),
        series=(
            *((Series("published", "published", published, joined=True),) if len(published) > 1 else ()),
            Series("measured", "measured here", measured, joined=True),
        ),
        summary=f"{summary}.",
        notes=("The mean of repeats; bars are its 95 % interval.",) if any(point.low for point in measured) else (),
    )


def history_chart(results: Sequence[RunResult]) -> Chart | None:
    """Step time of the runs of one configuration over time, with its lasting changes.

    Runs that cannot be compared are left out; None if fewer than two remain.
    """
    runs = sorted(results, key=lambda run: (run.made_at, run.id))
    timed = [(run, run.step_time_s) for run in runs if run.comparable and run.step_time_s is not None]
    if len(timed) < 2:
        return None
    runs, values = [run for run, _ in timed], [value for _, value in timed]
    newest = runs[-1]
    estimate = newest.plan.estimate
    x = time_axis("submitted", [run.made_at for run in runs])
    marks, texts = [], []
    for change in changes(values):
        label = f"{two_digits(abs(change.percent))} % {'slower' if change.percent > 0 else 'faster'}"
        marks.append(
            ReferenceLine("change", label, (runs[change.at - 1].made_at + runs[change.at].made_at) / 2, upright=True)
        )
        times = f"{step_time(change.before)} before, {step_time(change.after)} since"
        texts.append(f"{label} from run {runs[change.at].id} on ({times})")
    points = [Point(run.made_at, value, name=run.id) for run, value in timed]
    points[-1] = replace(points[-1], label=step_time(values[-1]))
    return Chart(
        name="history",
        title="The same configuration over time",
        x=x,
        y=value_axis(_SECONDS, [*values, *((estimate.low_s, estimate.high_s) if estimate else ())], step_time_digits),
        bands=_expected_band(estimate, x.low, x.high),
        rules=(*_expected_rule(newest.plan), *marks),
        series=(Series("measured", "run", tuple(points), joined=True),),
        summary=f"{plural(len(runs), 'run')}, from {step_time(min(values))} to {step_time(max(values))}; "
        + f"{'; '.join(texts) or 'no change larger than their noise'}.",
        notes=(RULE,),
    )


def _thinned(times: _Times) -> tuple[Point, ...]:
    """At most `_MOST_STEPS` points: medians of neighbouring steps, with the fastest and the slowest of them."""
    if len(times) <= _MOST_STEPS:
        return tuple(Point(index, value) for index, value in times)
    size = -(-len(times) // _MOST_STEPS)
    parts = [times[index : index + size] for index in range(0, len(times), size)]
    return tuple(
        Point(part[len(part) // 2][0], median(v for _, v in part), "", min(v for _, v in part), max(v for _, v in part))
        for part in parts
    )


def _counted(result: RunResult) -> tuple[Series, ...]:
    """The result by the recipe's rule, drawn over the steps that it uses."""
    value, rule = result.step_time_s, result.rule
    if value is None:
        return ()
    last = result.progress.steps_done - 1
    first = last
    if rule.kind == "mean":
        first, last = rule.first or 0, last if rule.last is None else min(rule.last, last)
    ends = [*([Point(first, value)] if first < last else []), Point(last, value, step_time(value))]
    return (Series("this", f"result ({result.rule_words})", tuple(ends), joined=True),)


def _expected_band(estimate: Estimate | None, low: float, high: float) -> tuple[Band, ...]:
    if estimate is None:
        return ()
    label = f"expected {step_time_range(estimate.low_s, estimate.high_s)}"
    points = ((low, estimate.low_s, estimate.high_s), (high, estimate.low_s, estimate.high_s))
    return (Band("expected", label, points),)


def _expected_rule(plan: Plan) -> tuple[ReferenceLine, ...]:
    estimate = plan.estimate
    if estimate is None:
        return ()
    role: Role = "published" if estimate.method in ("published", "other_release") else "estimated"
    return (ReferenceLine(role, f"{method_word(estimate.method)} {estimate.step_time_text}", estimate.step_time_s),)


def by_scale(measured: Sequence[RunResult]) -> dict[int, list[float]]:
    """Step times, seconds, of comparable runs, by number of GPUs."""
    groups: dict[int, list[float]] = {}
    for run in measured:
        if run.comparable and run.step_time_s is not None:
            groups.setdefault(run.plan.selection.scale, []).append(run.step_time_s)
    return groups


def _repeats(scale: int, times: Sequence[float]) -> Point:
    """Mean of the runs at one scale, with the fastest and the slowest of them."""
    mean = fmean(times)
    return Point(scale, mean, step_time(mean), *((min(times), max(times)) if len(times) > 1 else ()))


def _efficiency(point: ScalePoint) -> Point:
    value, half = point.efficiency_pct, point.efficiency_half_width_pct
    ends = (None, None) if half is None else (value - half, value + half)
    return Point(point.gpus, value, percent(value), *ends)


def _step_summary(result: RunResult, times: _Times) -> str:
    steady, estimate = result.steady, result.plan.estimate
    text = plural(len(times), "step")
    if steady is not None:
        text += f"; steady steps take {step_time_range(steady.low, steady.high)}"
        text += f", median {step_time(steady.median)}"
    if result.step_time_s is not None:
        text += f"; the result ({result.rule_words}) is {step_time(result.step_time_s)}"
    if estimate is not None:
        text += (
            f"; the expected step time is {estimate.step_time_text}, {method_phrase(estimate.method)}, with a band of "
        )
        text += step_time_range(estimate.low_s, estimate.high_s)
    return f"{text}."


def _scale_summary(points: Sequence[AtScale], groups: dict[int, list[float]], own: tuple[int, float] | None) -> str:
    text = ""
    if points:
        first, last = points[0], points[-1]
        text = f"Expected: {first.estimate.step_time_text} on {count(first.gpus)} GPUs"
        text += f" to {last.estimate.step_time_text} on {count(last.gpus)}." if len(points) > 1 else "."
    if groups:
        means = ", ".join(f"{step_time(fmean(times))} on {count(scale)}" for scale, times in sorted(groups.items()))
        text += f" Measured here: {means}."
    if own:
        text += f" This run took {step_time(own[1])} on {count(own[0])}."
    return text.strip()
