"""`report`: the report of runs and suites. Each run has the sections of `run_sections`."""

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
    known_facts,
)
from llmb_tui.answers.comparison import difference_blocks, repeats_grid
from llmb_tui.answers.nodes import node_blocks
from llmb_tui.answers.plan import plan_title
from llmb_tui.answers.reported_run import SIMULATED, banner, subtitle
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
"""Minimum number of runs of one configuration for a chart over time."""


@dataclass(frozen=True, slots=True)
class Reports:
    """Reports of runs and suites that this machine knows."""

    runs: RunGatherer
    suites: Suites

    def report(self, names: Iterable[str], now: float) -> Answer:
        """The report of runs and suites, in order, each once; `now` is Unix time.

        Raises LlmbError (exit code 1) for a name that is neither a run nor a suite.
        """
        names = tuple(names)
        run_ids = dict.fromkeys(run_id for name in names for run_id in self.suites.run_ids(name))
        suites = [self.suites.load(name) for name in dict.fromkeys(names) if self.suites.has(name)]
        return report(self.runs.reported(run_ids), now, [self.suites.progress(suite) for suite in suites])


def report(runs: Sequence[ReportedRun], now: float, suites: Sequence[SuiteProgress] = ()) -> Answer:
    """The report of runs and suites, at least one of either; `now` is Unix time."""
    made = f"Made by llmb-tui {__version__} on {utc_time(now)}."
    blocks: tuple[Block, ...]
    if len(runs) == 1 and not suites:
        (run,) = runs
        name, about, blocks = plan_title(run.result.plan), subtitle(run), (banner(run), *run_sections(run))
    else:
        name, about = " and ".join(map(_suite_title, suites)) or f"{len(runs)} runs", _subtitle(runs, suites)
        blocks = (*_banners(runs, suites), *map(_suite, suites), *(_sections(runs) if runs else ()))
    answer = Answer(name, lambda: blocks, lambda: report_json(answer), subtitle=about, made=made)
    return answer


def _subtitle(runs: Sequence[ReportedRun], suites: Sequence[SuiteProgress]) -> str:
    clusters = dict.fromkeys([*(run.result.cluster for run in runs), *(suite.plan.suite.cluster for suite in suites)])
    return f"{plural(len(runs), 'run')} on {', '.join(clusters)}{' (simulated)' if _simulated(runs) else ''}"


def _banners(runs: Sequence[ReportedRun], suites: Sequence[SuiteProgress]) -> tuple[Banner, ...]:
    banners = tuple(filter(None, map(_suite_banner, suites))) or (_banner_of_all(runs),)
    return tuple(replace(each, words=each.words + SIMULATED) for each in banners) if _simulated(runs) else banners


def _simulated(runs: Sequence[ReportedRun]) -> bool:
    return any(run.result.simulated for run in runs)


def _banner_of_all(runs: Sequence[ReportedRun]) -> Banner:
    """The worst verdict, and the number of runs with each verdict; never PASS if a run failed or was cancelled."""
    judged = [run.result for run in runs if run.result.state not in BAD_ENDS]
    counts, bad = Counter(run.verdict.result if run.verdict else "" for run in judged), len(runs) - len(judged)
    verdicts: list[VerdictResult] = [result for result in get_args(VerdictResult) if counts[result]]
    parts = [f"{counts[result]} {result}" for result in verdicts]
    parts += [f"{counts['']} without a verdict"] if counts[""] else []
    parts += [f"{bad} failed or cancelled"] if bad else []
    worst = verdicts[-1] if verdicts and not (bad and verdicts[-1] == "PASS") else None
    return Banner(worst or "", f"{plural(len(runs), 'run')}: {', '.join(parts) or 'no verdict yet'}.")


def _suite_title(progress: SuiteProgress) -> str:
    """The name that the user gave the suite."""
    return f"Suite {progress.plan.suite.name}"


def _suite_banner(progress: SuiteProgress) -> Banner | None:
    """The verdict of a suite; None for a suite without a verdict, or before it has one."""
    outcome = outcome_of(progress)
    if outcome.result is None:
        return None
    return Banner(outcome.result, outcome.lines[0].removeprefix(f"{outcome.result}: "))


def _suite(progress: SuiteProgress) -> Section:
    """A suite's purpose, its outcome, and the state of each row."""
    suite = progress.plan.suite
    facts = known_facts(
        Fact("Purpose", SUITE_KINDS[suite.kind]),
        Fact("Suite", suite.id, exact=True),
        Fact("Cluster", suite.cluster),
        Fact("Created", utc_time(suite.created_at)),
        Fact("Progress", progress.words),
        Fact("Order", "" if suite.shuffle is None else f"shuffled, seed {suite.shuffle}"),
    )
    rows = compact_grid(
        "Runs in the order of submission.", Table.by(run_columns("suite"), map(row_from_progress, progress.rows))
    )
    return Section(_suite_title(progress), (facts, Bullets(outcome_of(progress).lines), rows))


def _sections(runs: Sequence[ReportedRun]) -> Iterator[Section]:
    table = Table.by(run_columns("report"), [row_from_result(run.result) for run in runs])
    caption = "Step times by the recipe's rule. Each run has its own section below."
    yield Section("All runs", (compact_grid(caption, table),))
    together = tuple(_together(runs))
    if together:
        yield Section("Side by side", together)
    for run in runs:
        head: tuple[Block, ...] = (Text(subtitle(run) + "."), banner(run))
        yield Section(f"Run {run.result.id}: {plan_title(run.result.plan)}", head)
        yield from run_sections(run, level=3, prefix=f"{run.result.id}-")


def _together(runs: Sequence[ReportedRun]) -> Iterator[Block]:
    """Repeats with their noise, differences of comparable runs, slow nodes, scaling curves and changes over time."""
    results = [run.result for run in runs]
    compared = compare(results)
    if any(len(repeats.runs) > 1 for repeats in compared.groups):
        yield repeats_grid(compared)
    yield from difference_blocks(compared)
    slow = slow_nodes(results)
    if slow.suspected:
        yield from node_blocks(slow)
    for number, curve in enumerate(scaling_curves(results, compared.measure), 1):
        ids = {result.id for result in curve.runs}
        points = next((run.over_scale for run in runs if run.result.id in ids and run.over_scale), ())
        yield from curve_blocks(curve, points, number)
    for number, repeats in enumerate(compared.groups, 1):
        chart = history_chart(repeats.runs) if len(repeats.runs) >= _FOR_HISTORY else None
        if chart is not None:
            yield Picture(f"{chart.name}-{number}", replace(chart, title=f"Over time: {repeats.label}"))
