"""What the views of results show, worked out in a thread from the logs and scripts that this machine holds."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from llmb_tui.catalog.catalog import Unknown
from llmb_tui.errors import Trouble
from llmb_tui.plan.over_scale import AtScale, over_scale
from llmb_tui.results.chart import Chart
from llmb_tui.results.charts import efficiency_chart, scale_chart
from llmb_tui.results.compare import compare
from llmb_tui.results.difference import Ran, difference
from llmb_tui.results.groups import ResultGroup
from llmb_tui.results.result import RunResult
from llmb_tui.results.scaling import ScalingCurve, scaling_curves
from llmb_tui.results.slow_nodes import slow_nodes
from llmb_tui.results.suite.suite import Suite
from llmb_tui.services import Services
from llmb_tui.ui.screens.export import ExportTarget
from llmb_tui.ui.widgets.answers import Answer, by_nodes, compared, exported, over_scales


def compare_marked(services: Services, marked: Sequence[ResultGroup]) -> Answer:
    """Each marked group, or run, beside the others, and held against the first. Raises Trouble."""
    newest = [services.history.result(_telling(one).id) for one in marked]
    comparisons = [compare(one.runs, marked[0].runs) for one in marked[1:]]
    first, *others = (Ran.of(services.runs, one) for one in newest)
    differences = [difference(first, one) for one in others]
    return compared(marked, newest, comparisons, differences)


def scaling_of(services: Services, results: Sequence[RunResult], chosen: ResultGroup | None) -> Answer:
    """The scaling curves among results; where a group is chosen those on which a run of it lies. Raises Trouble."""
    wanted = {run.id for run in chosen.runs} if chosen else {run.id for run in results}
    curves = [curve for curve in scaling_curves(results) if wanted & {run.id for run in curve.runs}]
    if not curves:
        raise Trouble(
            "There is no scaling curve for this.",
            "It takes runs that count on two numbers of GPUs or more, of one configuration but for its scale, on one "
            "cluster and by one procedure.",
            "Run another scale, or mark other rows.",
            exit_code=1,
        )
    return over_scales([(curve, _charts(services, curve)) for curve in curves])


def nodes_of(results: Sequence[RunResult]) -> Answer:
    """Which nodes their runs were slow with."""
    return by_nodes(slow_nodes(results), sorted({run.cluster for run in results}))


def export_runs(
    services: Services, run_ids: Sequence[str], target: ExportTarget, suites: Sequence[Suite] = ()
) -> Answer:
    """Write an archive of runs that are over, and of suites; what became of it.

    Raises Trouble: then there is no file.
    """
    manifest = services.exporter.export(run_ids, target.file, suites, anonymous=target.anonymous)
    return exported(target.file, target.file.stat().st_size, manifest)


def _telling(group: ResultGroup) -> RunResult:
    """The newest run that counts, or else the newest."""
    counted = [run for one in group.sets for run in one.runs]
    return max(counted, key=lambda run: run.made_at, default=group.first)


def _charts(services: Services, curve: ScalingCurve) -> list[Chart]:
    """Step time and efficiency, as far as twice the largest scale that was measured."""
    measured = curve.runs
    selection = replace(measured[0].plan.selection, scale=curve.points[0].gpus)
    points: tuple[AtScale, ...] = ()
    with contextlib.suppress(Unknown):  # a recipe that is here no more
        points = over_scale(services.catalog, selection)
    near = [point for point in points if point.gpus <= 2 * curve.points[-1].gpus]
    drawn = (scale_chart(near, measured), efficiency_chart(curve))
    return [chart for chart in drawn if chart is not None]
