"""Comparisons as tables: runs, groups of repeats, differences, changes, scaling, nodes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from llmb_tui.results.compare import Comparison
from llmb_tui.results.difference import RunDifference
from llmb_tui.results.likeness import distinctions
from llmb_tui.results.node_list import compress
from llmb_tui.results.result import RunResult
from llmb_tui.results.scaling import ScalingCurve
from llmb_tui.results.slow_nodes import SlowNodes
from llmb_tui.results.table import Cell, Table

_RUN_HEADINGS = (
    "run", "configuration", "release", "cluster", "procedure", "state", "step s", "rule", "mean s", "median s",
    "deviation s", "tokens/s", "TFLOPS/GPU", "MFU %", "days/1T", "of published %", "verdict",
)  # fmt: skip
_SHORT_HEADINGS = (
    "run", "", "step s", "mean s", "median s", "deviation s", "tokens/s", "TFLOPS/GPU", "MFU %", "days/1T",
    "of published %", "verdict",
)  # fmt: skip
_GROUP_HEADINGS = ("", "runs", "mean s", "noise %", "± mean %", "± own steps %", "published s", "of published %")
_CONTRAST_HEADINGS = ("base", "other", "difference %", "± %", "outcome", "")
_SCALING_HEADINGS = (
    "GPUs", "runs", "step s", "tokens/s", "efficiency %", "± %", "published s", "published efficiency %"
)  # fmt: skip
_NODE_HEADINGS = ("node", "runs with", "without", "difference %", "noise %", "chance", "")


def runs_table(runs: Sequence[RunResult]) -> Table:
    """The figures of each run; step times by the recipe's rule, and of the steps that count."""
    return Table.of(_RUN_HEADINGS, [_run_row(run) for run in runs])


def comparison_table(comparison: Comparison) -> Table:
    """The same on a terminal: what all runs have in common is left out."""
    names = distinctions(comparison.runs)
    rows = [(run.id, name, run.step_time_s, *_figures(run)) for run, name in zip(comparison.runs, names, strict=True)]
    return Table.of(_SHORT_HEADINGS, rows)


def groups_table(comparison: Comparison) -> Table:
    """Repeats with their noise: between runs, of their mean, and for a single run by its own steps."""
    rows = [
        (
            name,
            len(one.runs),
            one.mean_s,
            one.noise_pct,
            one.half_width_pct,
            one.within_pct,
            one.published_s,
            one.of_published_pct,
        )
        for one, name in zip(comparison.groups, comparison.names, strict=True)
    ]
    return Table.of(_GROUP_HEADINGS, rows)


def contrasts_table(comparison: Comparison) -> Table:
    """What differs, and whether that is more than the noise."""
    names = {id(one): name for one, name in zip(comparison.groups, comparison.names, strict=True)}
    rows = [
        (names[id(one.base)], names[id(one.other)], one.difference_pct, one.half_width_pct, one.outcome, one.words)
        for one in comparison.contrasts
    ]
    return Table.of(_CONTRAST_HEADINGS, rows)


def scaling_table(curve: ScalingCurve) -> Table:
    """A curve, point by point."""
    rows = [
        (
            point.gpus,
            len(point.group.runs),
            point.group.mean_s,
            point.tokens_per_s,
            point.efficiency_pct,
            point.efficiency_half_pct,
            point.published_s,
            point.published_efficiency_pct,
        )
        for point in curve.points
    ]
    return Table.of(_SCALING_HEADINGS, rows)


def nodes_table(nodes: SlowNodes) -> Table:
    """Every node with its evidence; `chance`: how likely noise alone lets any node come out as far."""
    rows = [
        (
            compress(found.nodes),
            found.runs_with,
            found.runs_without,
            _hundredths(found.difference_pct),
            _hundredths(found.noise_pct),
            found.chance,
            found.words,
        )
        for found in nodes.findings
    ]
    return Table.of(_NODE_HEADINGS, rows)


def _hundredths(percent: float | None) -> float | None:
    return None if percent is None else round(percent, 2)


def of_published_pct(run: RunResult) -> float | None:
    """How fast a run was, in per cent of its own printed row; None where there is no such, or no step time."""
    published = run.plan.published
    return 100 * published.step_time_s / run.step_time_s if published and run.step_time_s else None


def changes_table(changed: RunDifference) -> Table:
    """What else differs between two runs."""
    rows = [(one.part, one.name, one.before or "", one.after or "") for one in changed.changes]
    return Table.of(("", "name", "before", "after"), rows)


def _run_row(run: RunResult) -> tuple[Cell, ...]:
    what = run.configuration
    where = (what.label, what.release, run.cluster, run.procedure, run.state)
    return (run.id, *where, run.step_time_s, run.rule_words, *_figures(run))


def _figures(run: RunResult) -> tuple[Cell, ...]:
    steady, figures = run.steady, run.figures
    return (
        steady.mean if steady else None,
        steady.median if steady else None,
        steady.stdev if steady else None,
        figures.tokens_per_s if figures else None,
        figures.tflops_per_gpu if figures else None,
        figures.mfu_pct if figures else None,
        figures.days_per_1t_tokens if figures else None,
        of_published_pct(run),
        run.verdict.result if run.verdict else None,
    )
