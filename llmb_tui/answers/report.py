"""`report`: the report of one run or of several and of suites, from its title to how its numbers were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from llmb_tui import __version__
from llmb_tui.analysis.charts import history_chart
from llmb_tui.analysis.compare import compare
from llmb_tui.analysis.scaling import scaling_curves
from llmb_tui.analysis.slow_nodes import slow_nodes
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import (
    Banner,
    Block,
    Bullets,
    Fact,
    Picture,
    Section,
    Text,
    compact_grid,
    known,
)
from llmb_tui.answers.comparison import difference_blocks, repeats_grid
from llmb_tui.answers.nodes import node_blocks
from llmb_tui.answers.reported_run import SIMULATED, banner, subtitle, title
from llmb_tui.answers.run_columns import run_columns
from llmb_tui.answers.run_row import row_from_progress, row_from_result
from llmb_tui.answers.run_sections import run_sections
from llmb_tui.answers.scaling import curve_blocks
from llmb_tui.answers.table import Table
from llmb_tui.answers.writers.json import report_json
from llmb_tui.evidence.reported_run import ReportedRun, RunGatherer
from llmb_tui.language.instants import utc_time
from llmb_tui.language.states import VerdictResult
from llmb_tui.language.text import plural
from llmb_tui.suites.outcome import outcome_of
from llmb_tui.suites.suite import SUITE_KINDS
from llmb_tui.suites.suite_progress import SuiteProgress
from llmb_tui.suites.suites import Suites
from llmb_tui.watch.state import BAD_ENDS

_FOR_HISTORY = 3
"""Runs of one configuration from which on it is worth a look over time."""


@dataclass(frozen=True, slots=True)
class Reports:
    """Reports of remembered runs and suites."""

    runs: RunGatherer
    suites: Suites

    def report(self, names: Iterable[str], now: float) -> Answer:
        """The report of these runs and suites, in order, each once; `now` is Unix time.

        Raises LlmbError (exit code 1) for a name of neither.
        """
        names = tuple(names)
        run_ids = dict.fromkeys(run_id for name in names for run_id in self.suites.run_ids(name))
        suites = [self.suites.load(name) for name in dict.fromkeys(names) if self.suites.has(name)]
        return report(self.runs.reported(run_ids), now, [self.suites.progress(suite) for suite in suites])


def report(runs: Sequence[ReportedRun], now: float, suites: Sequence[SuiteProgress] = ()) -> Answer:
    """The report of these runs and suites, of which one is needed; `now` is Unix time."""
    made = f"Made by llmb-tui {__version__} on {utc_time(now)}."
    blocks: tuple[Block, ...]
    if len(runs) == 1 and not suites:
        (one,) = runs
        name, about, blocks = title(one), subtitle(one), (banner(one), *run_sections(one))
    else:
        name, about = " and ".join(map(_suite_title, suites)) or f"{len(runs)} runs", _subtitle(runs, suites)
        blocks = (*_banners(runs, suites), *map(_suite, suites), *(_sections(runs) if runs else ()))
    answer = Answer(name, lambda: blocks, lambda: report_json(answer), subtitle=about, made=made)
    return answer


def _subtitle(runs: Sequence[ReportedRun], suites: Sequence[SuiteProgress]) -> str:
    clusters = dict.fromkeys([*(one.result.cluster for one in runs), *(suite.plan.suite.cluster for suite in suites)])
    return f"{plural(len(runs), 'run')} on {', '.join(clusters)}{' (simulated)' if _simulated(runs) else ''}"


def _banners(runs: Sequence[ReportedRun], suites: Sequence[SuiteProgress]) -> tuple[Banner, ...]:
    banners = tuple(filter(None, map(_suite_banner, suites))) or (_banner_of_all(runs),)
    return tuple(replace(one, words=one.words + SIMULATED) for one in banners) if _simulated(runs) else banners


def _simulated(runs: Sequence[ReportedRun]) -> bool:
    return any(one.result.simulated for one in runs)


def _banner_of_all(runs: Sequence[ReportedRun]) -> Banner:
    """The worst verdict of all that ended, and how many of each there are; no PASS where one did not end well."""
    well = [one.result for one in runs if one.result.state not in BAD_ENDS]
    counts, bad = Counter(one.verdict.result if one.verdict else "" for one in well), len(runs) - len(well)
    given: list[VerdictResult] = [result for result in get_args(VerdictResult) if counts[result]]
    said = [f"{counts[result]} {result}" for result in given]
    said += [f"{plural(counts[''], 'run')} without a verdict"] if counts[""] else []
    said += [f"{bad} did not end well"] if bad else []
    worst = given[-1] if given and not (bad and given[-1] == "PASS") else None
    return Banner(worst or "", f"Of {plural(len(runs), 'run')}: {', '.join(said) or 'nothing yet'}.")


def _suite_title(progress: SuiteProgress) -> str:
    """As the operator calls it."""
    return f"Suite {progress.plan.suite.name}"


def _suite_banner(progress: SuiteProgress) -> Banner | None:
    """Its one verdict; None for a suite that gives none, or none yet."""
    outcome = outcome_of(progress)
    if outcome.result is None:
        return None
    return Banner(outcome.result, outcome.lines[0].removeprefix(f"{outcome.result}: "))


def _suite(progress: SuiteProgress) -> Section:
    """What it was to answer, what it has answered, and how each of its rows stands."""
    suite = progress.plan.suite
    facts = known(
        Fact("What it answers", SUITE_KINDS[suite.kind]),
        Fact("Suite", suite.id, exact=True),
        Fact("Cluster", suite.cluster),
        Fact("Kept", utc_time(suite.created_at)),
        Fact("Stands", progress.words),
        Fact("Order", "" if suite.shuffle is None else f"shuffled, seed {suite.shuffle}"),
    )
    rows = compact_grid(
        "Its runs, in the order of submission.", Table.by(run_columns("suite"), map(row_from_progress, progress.rows))
    )
    return Section(_suite_title(progress), (facts, Bullets(outcome_of(progress).lines), rows))


def _sections(runs: Sequence[ReportedRun]) -> Iterator[Section]:
    table = Table.by(run_columns("report"), [row_from_result(one.result) for one in runs])
    caption = "Step times by the recipe's rule; each run has a part of its own below."
    yield Section("All runs", (compact_grid(caption, table),))
    together = tuple(_together(runs))
    if together:
        yield Section("Side by side", together)
    for one in runs:
        head: tuple[Block, ...] = (Text(subtitle(one) + "."), banner(one))
        yield Section(f"Run {one.result.id}: {title(one)}", head)
        yield from run_sections(one, level=3, prefix=f"{one.result.id}-")


def _together(runs: Sequence[ReportedRun]) -> Iterator[Block]:
    """Repeats with their noise, differences where the runs are alike, curves over scales, changes over time."""
    results = [one.result for one in runs]
    compared = compare(results)
    if any(len(one.runs) > 1 for one in compared.groups):
        yield repeats_grid(compared)
    yield from difference_blocks(compared)
    found = slow_nodes(results)
    if found.suspected:
        yield from node_blocks(found)
    for at, curve in enumerate(scaling_curves(results, compared.measure), 1):
        ids = {run.id for run in curve.runs}
        points = next((one.over_scale for one in runs if one.result.id in ids and one.over_scale), ())
        yield from curve_blocks(curve, points, at)
    for at, repeats in enumerate(compared.groups, 1):
        chart = history_chart(repeats.runs) if len(repeats.runs) >= _FOR_HISTORY else None
        if chart is not None:
            yield Picture(f"{chart.name}-{at}", replace(chart, title=f"Over time: {repeats.label}"))
