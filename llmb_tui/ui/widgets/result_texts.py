"""`ResultList`: the rows of the results screen and the lines around them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from textual.content import Content

from llmb_tui.analysis.changes import ChangePoint
from llmb_tui.analysis.chart import Chart
from llmb_tui.analysis.charts import history_chart
from llmb_tui.analysis.compare import Group
from llmb_tui.analysis.groups import Grouping, NoteOf, ResultGroup, group_name, grouped, narrow, over
from llmb_tui.analysis.result import RunResult
from llmb_tui.answers.run_row import RunRow, row_from_result
from llmb_tui.answers.table import Cell, Column, Quantity, Toned
from llmb_tui.answers.writers.plot import terminal_glyphs
from llmb_tui.language.instants import local_day, local_time
from llmb_tui.language.quantities import (
    percent,
    short_age,
    step_time,
    step_time_digits,
    step_time_range_digits,
    two_digits,
)
from llmb_tui.language.states import Tone, method_phrase, verdict_label
from llmb_tui.language.text import plural
from llmb_tui.launch.note import NO_NOTE, Note
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.ui.text import MUTED, Part, line
from llmb_tui.ui.widgets.keyed_table import MARK, Key, Rows
from llmb_tui.ui.widgets.run_list import screen_columns
from llmb_tui.watch.validity import unknown_words

_ROOMY_FROM = 132
"""Width of a terminal from which a trend is drawn twice as wide."""
_DAY_S = 86_400.0
_SPANS = (("1 week", 7), ("4 weeks", 28), ("12 weeks", 84), ("1 year", 365), ("5 years", 5 * 365))
"""Possible spans of a trend, in days."""
_SPARK_CELLS = 10
# Minimum height of a trend, as a share of the mean: noise stays flat.
_LEAST_HEIGHT = 0.1
_HEADINGS: dict[Grouping, str] = {"release": "recipe release", "none": "workload"}
"""Column headings of groupings, if they differ from the name of the grouping."""


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """Results, and the user's choice of how to list them."""

    results: tuple[RunResult, ...]
    notes: NoteOf
    by: Grouping
    words: str
    """Filter: words that a run must contain."""
    within: ResultGroup | None
    """Group whose runs are listed; None: all groups are listed."""
    clock: Callable[[], float]
    """Returns Unix time."""
    width: int
    """Cells of the terminal."""
    shown: Rows
    """The rows so far."""

    @property
    def lists_runs(self) -> bool:
        """Whether a row is a single run."""
        return self.within is not None or self.by == "none"


class ListedResult(NamedTuple):
    """A row of the results screen."""

    group: ResultGroup
    """The group; for a run a group of this run alone."""
    run: RunRow | None
    """The run; None if the row is a group."""


@dataclass(frozen=True, slots=True)
class ResultList:
    """Rows, counts and chart of the results screen."""

    query: ResultQuery
    finished: int
    """Number of finished runs."""
    matching: int
    """Number of runs that match the filter."""
    clusters: frozenset[str]
    """Clusters of these runs."""
    rows: Rows
    """Rows of `ListedResult`s."""
    chart: Chart | None
    """Step times over time, if the listed runs are repeats."""

    @property
    def title_parts(self) -> Sequence[Part]:
        """Parts of the heading, from the left."""
        query = self.query
        parts: list[Part] = [("Results", "bold")]
        if not self.finished:
            return [*parts, ("   none yet: finished runs will appear here", MUTED)]
        if query.within:
            parts += ["   ", (group_name(query.within), "bold")]
        parts.append(f"   {plural(self.matching, 'run')} · {plural(len(self.clusters), 'cluster')}")
        if not query.within:
            parts.append(("   not grouped" if query.by == "none" else f"   by {query.by}", MUTED))
        return parts

    def about(self, row: ListedResult) -> list[Content]:
        """Details of a row."""
        if row.run is None:
            return about_group(row.group, self.query.clock())
        return about_run(row.group.first, row.run.note, self.query.clock())


def result_list(query: ResultQuery) -> ResultList:
    """Groups, or the runs of one group, as rows. Slow for a thousand runs."""
    notes, within = query.notes, query.within
    finished = over(query.results)
    matching = narrow(finished, query.words, notes)
    if within is not None:
        matching = next((list(g.runs) for g in grouped(matching, query.by, notes) if g.key == within.key), [])
    groups = grouped(matching, "none" if query.lists_runs else query.by, notes)
    clusters = frozenset(result.cluster for result in matching)
    if query.lists_runs:
        columns = result_columns(query.clock, several_clusters=len(clusters) > 1)
        known = query.shown.things
        things: dict[Key, ListedResult] = {
            run.key: _listed_run(run, notes.get(run.first.id, NO_NOTE), known.get(run.key)) for run in groups
        }
    else:
        span = Span.since(min((run.made_at for run in matching), default=query.clock()), query.clock())
        columns = group_columns(groups, span, query, several_clusters=len(clusters) > 1)
        things = {group.key: ListedResult(group, None) for group in groups}
    chart = history_chart(matching) if within and within.repeats else None
    return ResultList(query, len(finished), len(matching), clusters, query.shown.with_things(columns, things), chart)


def _listed_run(run: ResultGroup, note: Note, before: ListedResult | None) -> ListedResult:
    """Row of a run: the object `before` if run and note are unchanged."""
    if before is None or before.run is None or before.group.first is not run.first or before.run.note != note:
        return ListedResult(run, row_from_result(run.first, note))
    return before


@dataclass(frozen=True, slots=True)
class Span:
    """Time span of the trends."""

    name: str
    begin: float
    """Unix time."""
    end: float

    @classmethod
    def since(cls, oldest: float, now: float) -> Span:
        """The shortest span from `oldest` to `now`; Unix times."""
        name, days = next((span for span in _SPANS if now - oldest <= span[1] * _DAY_S), _SPANS[-1])
        return cls(name, now - days * _DAY_S, now)


def group_columns(
    groups: Sequence[ResultGroup], span: Span, query: ResultQuery, *, several_clusters: bool
) -> list[Column]:
    """Columns of groups; the trend covers the span."""
    cells = 2 * _SPARK_CELLS if query.width >= _ROOMY_FROM else _SPARK_CELLS

    def last(group: ResultGroup) -> Cell:
        return Quantity(query.clock() - group.first.made_at, short_age, "quiet")

    columns = [
        Column(_HEADINGS.get(query.by, query.by), _title, "title", 19),
        Column("scale", _scale, "scale", 10),
        *([Column("where", _cluster, "where", 6)] if several_clusters and query.by != "cluster" else ()),
        Column("runs", _count, "runs", 5, figures=True),
        Column("step s", _step, "step", 6, figures=True),
        Column("low–high", _range, "range", 11, figures=True, drop=3),
        Column("± %", _noise, "noise", 4, figures=True),
        Column("speed", _ratio, "ratio", 7, figures=True),
        Column("result", _verdicts, "result", 6),
        Column("last", last, "last", 4, figures=True),
        Column(f"over {span.name}", lambda group: _trend(group, span, cells), "trend", cells, drop=2),
    ]
    if any(group.changed for group in groups):
        columns.append(Column("change", lambda group: _change(group, span.end), "change", 18, drop=1))
    return [MARK, *(_column_of("group", column) for column in columns)]


@lru_cache(maxsize=4)
def result_columns(clock: Callable[[], float], *, several_clusters: bool) -> list[Column]:
    """Columns of runs. Without room the note is dropped after id, procedure and noise; `clock` returns Unix time."""
    columns = [each for each in screen_columns("results screen", clock) if several_clusters or each.key != "cluster"]
    return [MARK, *(_column_of("run", replace(each, drop=1) if each.key == "note" else each) for each in columns)]


def _column_of(field: str, column: Column) -> Column:
    """The column for one field of a `ListedResult`."""
    return replace(column, value=lambda row: column.cell(getattr(row, field)))


def _title(group: ResultGroup) -> Cell:
    return f"{group.title} · {group.distinction}" if group.distinction else group.title


def _scale(group: ResultGroup) -> Cell:
    gpus = {run.configuration.gpu.upper() for run in group.runs}
    kind, scales = f"×{gpus.pop()}" if len(gpus) == 1 else "", group.scales
    return f"{scales[0]}{kind}" if len(scales) == 1 else f"{scales[0]}–{scales[-1]}"


def _cluster(group: ResultGroup) -> Cell:
    first, *others = group.clusters
    return first + (f" +{len(others)}" if others else "")


def _step(group: ResultGroup) -> Cell:
    return Quantity(group.repeats.mean_s, step_time_digits) if group.repeats else None


def _noise(group: ResultGroup) -> Cell:
    noise = group.repeats.noise_pct if group.repeats else None
    return None if noise is None else Quantity(noise, two_digits)


def _ratio(group: ResultGroup) -> Cell:
    return None if group.ratio is None else Quantity(100 * group.ratio, percent)


def about_group(group: ResultGroup, now: float) -> list[Content]:
    """Details of a group: name, basis of the figures, and changes up to `now`, Unix time."""
    newest = group.first
    name: list[Part] = [(group_name(group), "bold")]
    if group.is_one_configuration:
        release = f"{newest.configuration.workload}@{newest.configuration.release}"
        name.append((f"   {release} · {PROCEDURES[newest.procedure].title}", MUTED))
    name.append((f"   {group.distinction}" if group.distinction else "", MUTED))
    rows = [line(*name), line(*_basis(group))]
    if group.changed:
        texts = (change_words(*change, now, named=len(group.sets) > 1) for change in group.changed)
        rows.append(line(("! ", "$text-warning"), "; ".join(texts)))
    elif group.repeats and group.counted > 1:
        rows.append(line(("no change over time beyond the noise", MUTED)))
    return rows


def _basis(group: ResultGroup) -> list[Part]:
    """Basis of the figures, or the reasons why there are none."""
    excluded = "; ".join(f"{plural(number, 'run')}: {reason}" for reason, number in group.left_out.items())
    repeats = group.repeats
    if not group.counted:
        return [("no valid runs: ", "$text-warning"), excluded]
    if repeats is None:
        parts: list[Part] = [f"{plural(group.counted, 'valid run')} of {len(group.sets)} configurations"]
        if group.ratio is not None:
            parts.append(f", on average {percent(100 * group.ratio)} of the expected speed")
    else:
        parts = [repeats.noise_words]
        estimate = group.first.plan.estimate
        if estimate is not None and group.ratio is not None:
            expected = f"{method_phrase(estimate.method)} {estimate.step_time_text}"
            parts.append(f"; {percent(100 * group.ratio)} of {expected}")
    return [*parts, (f"; excluded: {excluded}" if excluded else "", MUTED)]


def about_run(result: RunResult, note: Note, now: float) -> list[Content]:
    """Details of a run: name, result and note. `now` is Unix time."""
    head: list[Part] = [(result.configuration.label, "bold"), f" on {result.cluster}   run {result.id}"]
    head.append((f"   {PROCEDURES[result.procedure].title}, {local_time(result.made_at, now)}", MUTED))
    verdict = result.verdict
    if result.state != "done" or verdict is None:
        reason = result.record.state.no_verdict or "The run was not judged."
        text = reason.removeprefix("No verdict: ")
        outcome = line(("No verdict: ", MUTED), text) if result.state == "done" else line(reason)
    else:
        outcome = line(f"{step_time(verdict.measured_s)} against {verdict.against}. {' '.join(verdict.reasons)}")
    unknown = unknown_words(result.validity)
    more = [line((unknown, MUTED))] if unknown else []
    return [line(*head), outcome, *more, *([line((note.words, "$text-accent"))] if note else [])]


def change_words(repeats: Group, change: ChangePoint, now: float, *, named: bool) -> str:
    """Text such as `8.2 % slower since 12 Nov, run k3f9a2 (2.012 s → 2.177 s)`.

    `named`: with the label of the repeats. `now` is Unix time.
    """
    first = repeats.runs[change.at]
    word = "slower" if change.percent > 0 else "faster"
    figures = f"{step_time(change.before)} → {step_time(change.after)}"
    label = f"{repeats.label}: " if named else ""
    percentage, day = two_digits(abs(change.percent)), local_day(first.made_at, now)
    return f"{label}{percentage} % {word} since {day}, run {first.id} ({figures})"


def _trend(group: ResultGroup, span: Span, cells: int) -> Cell:
    """Chart of the step times over the span."""
    return Toned(spark(group.relative, span, cells), _change_tone(group))


def _change(group: ResultGroup, now: float) -> Cell:
    """Direction and date of the last change; `now` is Unix time."""
    if not group.changed:
        return ""
    repeats, change = group.changed[-1]
    word = "slower" if change.percent > 0 else "faster"
    return Toned(f"{word} since {local_day(repeats.runs[change.at].made_at, now)}", _change_tone(group))


def _change_tone(group: ResultGroup) -> Tone:
    """A warning if the step time became longer."""
    return "warning" if group.changed and group.changed[-1][1].percent > 0 else "plain"


def spark(values: Sequence[tuple[float, float]], span: Span, cells: int) -> str:
    """A sparkline of `cells` characters from pairs (Unix time, step time ÷ mean).

    A character shows the mean of the runs in its part of the span; it is blank without a run.
    """
    parts: list[list[float]] = [[] for _ in range(cells)]
    for time, value in values:
        if time >= span.begin:
            parts[min(int((time - span.begin) / (span.end - span.begin) * cells), cells - 1)].append(value)
    means = [sum(part) / len(part) if part else None for part in parts]
    known = [mean for mean in means if mean is not None]
    if not known:
        return " " * cells
    low = min(known)
    height = max(max(known) - low, _LEAST_HEIGHT)
    levels = terminal_glyphs().levels
    tops = (None if mean is None else round((mean - low) / height * (len(levels) - 1)) for mean in means)
    return "".join(" " if top is None else levels[top] for top in tops)


def _count(group: ResultGroup) -> Cell:
    """`9`, or `7/9` if not all runs are valid."""
    return f"{len(group.runs)}" if group.counted == len(group.runs) else f"{group.counted}/{len(group.runs)}"


def _range(group: ResultGroup) -> Cell:
    repeats = group.repeats
    if repeats is None or len(repeats.runs) == 1:
        return None
    return Toned(step_time_range_digits(min(repeats.values_s), max(repeats.values_s)), "quiet")


def _verdicts(group: ResultGroup) -> Cell:
    """The worst verdict, with its number if not all runs have it."""
    worst, total = group.worst, sum(group.verdicts.values())
    if worst is None:
        return None
    label, count = verdict_label(worst), group.verdicts[worst]
    return Toned(label.text if count == total else f"{label.text} {count}/{total}", label.tone)
