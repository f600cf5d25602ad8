"""`document`: what a report of one run or of several says, from its title to how its numbers were made. Pure."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from llmb_tui import __version__
from llmb_tui.results.charts import efficiency_chart, history_chart, scale_chart
from llmb_tui.results.compare import compare
from llmb_tui.results.comparison_tables import groups_table, nodes_table, scaling_table
from llmb_tui.results.report.blocks import Banner, Block, Bullets, Document, Grid, Picture, Section, Text, narrowed
from llmb_tui.results.report.reported_run import SIMULATED, SUMMARY, ReportedRun, banner, summary_row
from llmb_tui.results.report.run_sections import run_sections
from llmb_tui.results.report.suite_section import suite_banner, suite_section, suite_title
from llmb_tui.results.scaling import scaling_curves
from llmb_tui.results.slow_nodes import RULE as NODES_RULE
from llmb_tui.results.slow_nodes import slow_nodes
from llmb_tui.results.suite.suite_progress import SuiteProgress
from llmb_tui.results.table import Table
from llmb_tui.text import plural

_FOR_HISTORY = 3
"""Runs of one configuration from which on it is worth a look over time."""
_WORST_FIRST = ("FAIL", "WARN", "PASS")


def document(runs: Sequence[ReportedRun], now: float, suites: Sequence[SuiteProgress] = ()) -> Document:
    """The report of these runs, and of the suites that they are of; `now` is Unix time. One of both is needed."""
    made = f"Made by llmb-tui {__version__} on {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime(now))}."
    if len(runs) == 1 and not suites:
        (one,) = runs
        return Document(one.title, one.subtitle, (banner(one),), run_sections(one), made)
    clusters = dict.fromkeys([*(one.run.cluster for one in runs), *(suite.plan.suite.cluster for suite in suites)])
    simulated = any(one.simulated for one in runs)
    banners = tuple(filter(None, map(suite_banner, suites))) or (_banner_of_all(runs),)
    sections = [*map(suite_section, suites), *(_sections(runs) if runs else ())]
    return Document(
        " and ".join(map(suite_title, suites)) or f"{len(runs)} runs",
        f"{plural(len(runs), 'run')} on {', '.join(clusters)}{' (simulated)' if simulated else ''}",
        tuple(replace(one, words=one.words + SIMULATED) for one in banners) if simulated else banners,
        tuple(sections),
        made,
    )


def _banner_of_all(runs: Sequence[ReportedRun]) -> Banner:
    """The worst verdict of all that ended, and how many of each there are."""
    counts = Counter(one.result.verdict.result if one.result.verdict else "" for one in runs)
    worst = next((result for result in _WORST_FIRST if counts[result]), "")
    said = [f"{counts[result]} {result}" for result in ("PASS", "WARN", "FAIL") if counts[result]]
    without = [f"{plural(counts[''], 'run')} without a verdict"] if counts[""] else []
    return Banner(worst, f"Of {plural(len(runs), 'run')}: {', '.join([*said, *without]) or 'nothing yet'}.")


def _sections(runs: Sequence[ReportedRun]) -> Iterator[Section]:
    table = Table.of(SUMMARY, [summary_row(one) for one in runs])
    yield Section(
        "All runs", (narrowed("Step times by the recipe's rule; each run has a part of its own below.", table),)
    )
    together = tuple(_together(runs))
    if together:
        yield Section("Side by side", together)
    for one in runs:
        head: tuple[Block, ...] = (Text(one.subtitle + "."), banner(one))
        yield Section(f"Run {one.run.id}: {one.title}", head)
        yield from run_sections(one, level=3, prefix=f"{one.run.id}-")


def _together(runs: Sequence[ReportedRun]) -> Iterator[Block]:
    """Repeats with their noise, differences where the runs are alike, curves over scales, changes over time."""
    results = [one.result for one in runs]
    comparison = compare(results)
    if any(len(one.runs) > 1 for one in comparison.groups):
        yield narrowed("Runs of one configuration together, with their noise.", groups_table(comparison))
    if comparison.contrasts:
        names = {id(one): name for one, name in zip(comparison.groups, comparison.names, strict=True)}
        rows = [(names[id(one.other)], names[id(one.base)], one.words) for one in comparison.contrasts]
        caption = "Differences, by the time that a GPU takes for a token."
        yield Grid(caption, Table.of(("", "against", "is"), rows))
    likeness = comparison.likeness
    if likeness.comparable and likeness.warnings:
        yield Bullets(tuple(remark.words for remark in likeness.warnings))
    elif not likeness.comparable and len(comparison.groups) > 1:
        aspects = ", ".join(dict.fromkeys(remark.aspect for remark in likeness.refusals))
        yield Text(f"They are not held against each other, because they are not alike in: {aspects}.")
    if comparison.left_out:
        yield Bullets(
            tuple(f"Run {run_id} tells nothing about the others: {why}." for run_id, why in comparison.left_out)
        )
    nodes = slow_nodes(results)
    if nodes.suspected:
        yield Text(f"{nodes.words} To leave them out: {nodes.exclude}. {NODES_RULE}")
        yield Grid("Nodes, by how much slower the runs with them were.", nodes_table(nodes))
    for at, curve in enumerate(scaling_curves(results, comparison.measure), 1):
        members = [run for point in curve.points for run in point.group.runs]
        ids = {run.id for run in members}
        points = next((one.over_scale for one in runs if one.run.id in ids and one.over_scale), ())
        yield narrowed(f"Over scales: {curve.label}, {curve.scaling} scaling.", scaling_table(curve))
        for chart in (scale_chart(points, members), efficiency_chart(curve)):
            if chart is not None:
                yield Picture(f"{chart.name}-{at}", chart)
    for at, repeats in enumerate(comparison.groups, 1):
        chart = history_chart(repeats.runs) if len(repeats.runs) >= _FOR_HISTORY else None
        if chart is not None:
            yield Picture(f"{chart.name}-{at}", replace(chart, title=f"Over time: {repeats.label}"))
