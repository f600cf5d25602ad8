"""Scaling: step time, throughput and efficiency over the number of GPUs, in tables and charts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llmb_tui.analysis.charts import efficiency_chart, scale_chart
from llmb_tui.analysis.document import curve_document
from llmb_tui.analysis.scaling import ScalingCurve
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Grid, Picture, compact_grid
from llmb_tui.answers.plan import scaling_word
from llmb_tui.answers.table import Column, Table, quantity
from llmb_tui.language.quantities import percent_digits, plain_number, step_time_digits, tokens_per_s, two_digits
from llmb_tui.plan.over_scale import AtScale

_POINT: tuple[Column, ...] = (
    Column("GPUs", "gpus"),
    Column("runs", lambda point: len(point.group.runs)),
    Column("step s", quantity("group.mean_s", step_time_digits)),
    Column("published s", quantity("published_s", plain_number)),
    Column("tokens/s", quantity("tokens_per_s", tokens_per_s)),
    Column("efficiency %", quantity("efficiency_pct", percent_digits)),
    Column("± %", quantity("efficiency_half_width_pct", two_digits)),
    Column("published %", quantity("published_efficiency_pct", percent_digits)),
)


def scaling(curves: Sequence[tuple[ScalingCurve, Sequence[AtScale]]]) -> Answer:
    """Scaling curves, each with the published or expected step times over its scales."""
    return Answer(
        f"Scaling: {curves[0][0].label}" if len(curves) == 1 else "Scaling",
        lambda: tuple(
            block for number, (curve, points) in enumerate(curves, 1) for block in curve_blocks(curve, points, number)
        ),
        lambda: [curve_document(curve) for curve, _ in curves],
    )


def curve_blocks(curve: ScalingCurve, points: Sequence[AtScale], number: int) -> Iterator[Block]:
    """A curve as a table and charts; `number`: its position among the curves of an answer.

    `points` are drawn up to twice the largest measured scale.
    """
    yield curve_grid(curve)
    near = [point for point in points if point.gpus <= 2 * curve.points[-1].gpus]
    for chart in (scale_chart(near, curve.runs), efficiency_chart(curve)):
        if chart is not None:
            yield Picture(f"{chart.name}-{number}", chart)


def curve_grid(curve: ScalingCurve) -> Grid:
    """The figures of a curve as a table."""
    return compact_grid(f"Scaling of {curve.label}, {scaling_word(curve.scaling)}.", Table.by(_POINT, curve.points))
