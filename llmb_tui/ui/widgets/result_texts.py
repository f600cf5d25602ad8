"""`ResultList`: all that the list of results says at one moment: its rows and the lines around. Pure."""

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
"""Cells of a terminal in which a trend is drawn twice as wide."""
_DAY_S = 86_400.0
_SPANS = (("1 week", 7), ("4 weeks", 28), ("12 weeks", 84), ("1 year", 365), ("5 years", 5 * 365))
"""How long a trend may be, in days."""
_SPARK_CELLS = 10
# Values within so much of the fastest one are drawn in the lower half: noise is no mountain.
_LEAST_HEIGHT = 0.1
_HEADINGS: dict[Grouping, str] = {"release": "recipe release", "none": "workload"}
"""Where it is another word than that of the grouping."""


@dataclass(frozen=True, slots=True)
class ResultQuery:
    """What a person wants to see of which results."""

    results: tuple[RunResult, ...]
    notes: NoteOf
    by: Grouping
    words: str
    """That a run must have."""
    within: ResultGroup | None
    """Whose runs are listed; None: all groups are."""
    clock: Callable[[], float]
    """Returns Unix time."""
    width: int
    """Cells of the terminal."""
    shown: Rows
    """The rows so far."""

    @property
    def lists_runs(self) -> bool:
        """A row is a run, and no group of some."""
        return self.within is not None or self.by == "none"


class ListedResult(NamedTuple):
    """A row."""

    group: ResultGroup
    """A run is a group of its own."""
    run: RunRow | None
    """None for a group of several."""


@dataclass(frozen=True, slots=True)
class ResultList:
    """What is shown."""

    asked: ResultQuery
    ended: int
    """How many runs are over, of all."""
    found: int
    """Number of those that match the filter."""
    clusters: frozenset[str]
    """Clusters of these runs."""
    rows: Rows
    """Rows of `ListedResult`s."""
    chart: Chart | None
    """Of the repeats whose runs are listed, over time."""

    @property
    def title_parts(self) -> Sequence[Part]:
        """Start of the heading."""
        asked = self.asked
        parts: list[Part] = [("Results", "bold")]
        if not self.ended:
            return [*parts, ("   none yet: a run is here once it is over", MUTED)]
        if asked.within:
            parts += ["   ", (group_name(asked.within), "bold")]
        parts.append(f"   {plural(self.found, 'run')} · {plural(len(self.clusters), 'cluster')}")
        if not asked.within:
            words = "each run by itself" if asked.by == "none" else f"by {asked.by}"
            parts.append((f"   {words}", MUTED))
        return parts

    def about(self, one: ListedResult) -> list[Content]:
        """What a row has no room for."""
        if one.run is None:
            return about_group(one.group, self.asked.clock())
        return about_run(one.group.first, one.run.note, self.asked.clock())


def result_list(asked: ResultQuery) -> ResultList:
    """Groups, or the runs of one, in rows. Of a thousand runs it takes a while."""
    notes, within = asked.notes, asked.within
    ended = over(asked.results)
    found = narrow(ended, asked.words, notes)
    if within is not None:
        found = next((list(one.runs) for one in grouped(found, asked.by, notes) if one.key == within.key), [])
    groups = grouped(found, "none" if asked.lists_runs else asked.by, notes)
    clusters = frozenset(result.cluster for result in found)
    if asked.lists_runs:
        columns = result_columns(asked.clock, several_clusters=len(clusters) > 1)
        known = asked.shown.things
        things: dict[Key, ListedResult] = {
            one.key: _listed_run(one, notes.get(one.first.id, NO_NOTE), known.get(one.key)) for one in groups
        }
    else:
        span = Span.since(min((run.made_at for run in found), default=asked.clock()), asked.clock())
        columns = group_columns(groups, span, asked, several_clusters=len(clusters) > 1)
        things = {one.key: ListedResult(one, None) for one in groups}
    chart = history_chart(found) if within and within.repeats else None
    return ResultList(asked, len(ended), len(found), clusters, asked.shown.updated(columns, things), chart)


def _listed_run(run: ResultGroup, note: Note, before: ListedResult | None) -> ListedResult:
    """The row of a run: the object `before` if the run and its note are the same."""
    if before is None or before.run is None or before.group.first is not run.first or before.run.note != note:
        return ListedResult(run, row_from_result(run.first, note))
    return before


@dataclass(frozen=True, slots=True)
class Span:
    """The time that trends show."""

    name: str
    begin: float
    """Unix time."""
    end: float

    @classmethod
    def since(cls, oldest: float, now: float) -> Span:
        """The shortest that holds all since then; Unix times."""
        name, days = next((one for one in _SPANS if now - oldest <= one[1] * _DAY_S), _SPANS[-1])
        return cls(name, now - days * _DAY_S, now)


def group_columns(
    groups: Sequence[ResultGroup], span: Span, asked: ResultQuery, *, several_clusters: bool
) -> list[Column]:
    """Columns of groups; the trend covers the span."""
    cells = 2 * _SPARK_CELLS if asked.width >= _ROOMY_FROM else _SPARK_CELLS

    def last(group: ResultGroup) -> Cell:
        return Quantity(asked.clock() - group.first.made_at, short_age, "quiet")

    columns = [
        Column(_HEADINGS.get(asked.by, asked.by), _title, "title", 19),
        Column("scale", _scale, "scale", 10),
        *([Column("where", _where, "where", 6)] if several_clusters and asked.by != "cluster" else ()),
        Column("runs", _count, "runs", 5, figures=True),
        Column("step s", _step, "step", 6, figures=True),
        Column("low–high", _range, "range", 11, figures=True, drop=3),
        Column("± %", _noise, "noise", 4, figures=True),
        Column("of exp.", _ratio, "ratio", 7, figures=True),
        Column("result", _verdicts, "result", 6),
        Column("last", last, "last", 4, figures=True),
        Column(f"over {span.name}", lambda one: _trend(one, span, cells), "trend", cells, drop=2),
    ]
    if any(one.changed for one in groups):
        columns.append(Column("change", lambda one: _change(one, span.end), "change", 18, drop=1))
    return [MARK, *(_of("group", column) for column in columns)]


@lru_cache(maxsize=4)
def result_columns(clock: Callable[[], float], *, several_clusters: bool) -> list[Column]:
    """Columns of runs. The note is dropped after the run's id, procedure and noise; `clock` returns Unix time."""
    columns = [one for one in screen_columns("results screen", clock) if several_clusters or one.key != "cluster"]
    return [MARK, *(_of("run", replace(one, drop=1) if one.key == "note" else one) for one in columns)]


def _of(part: str, column: Column) -> Column:
    """A column of `ListedResult`s that shows this part of them."""
    return replace(column, value=lambda one: column.cell(getattr(one, part)))


def _title(group: ResultGroup) -> Cell:
    return f"{group.title} · {group.apart}" if group.apart else group.title


def _scale(group: ResultGroup) -> Cell:
    gpus = {run.configuration.gpu.upper() for run in group.runs}
    kind, scales = f"×{gpus.pop()}" if len(gpus) == 1 else "", group.scales
    return f"{scales[0]}{kind}" if len(scales) == 1 else f"{scales[0]}–{scales[-1]}"


def _where(group: ResultGroup) -> Cell:
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
    """What a row has no room for: what exactly these are, what the figures rest on, and what changed by `now`."""
    newest = group.first
    what: list[Part] = [(group_name(group), "bold")]
    if group.is_one_configuration:
        release = f"{newest.configuration.workload}@{newest.configuration.release}"
        what.append((f"   {release} · {PROCEDURES[newest.procedure].title}", MUTED))
    what.append((f"   {group.apart}" if group.apart else "", MUTED))
    rows = [line(*what), line(*_basis(group))]
    if group.changed:
        words = "; ".join(change_words(*one, now, named=len(group.sets) > 1) for one in group.changed)
        rows.append(line(("! ", "$text-warning"), words))
    elif group.repeats and group.counted > 1:
        rows.append(line(("no change over time that is larger than the noise", MUTED)))
    return rows


def _basis(group: ResultGroup) -> list[Part]:
    """What the figures rest on, or why there are none."""
    repeats, without = group.repeats, "; ".join(f"{plural(n, 'run')}: {why}" for why, n in group.left_out.items())
    if not group.counted:
        return [("no run counts: ", "$text-warning"), without]
    if repeats is None:
        parts: list[Part] = [f"{plural(group.counted, 'run')} of {len(group.sets)} configurations count"]
        if group.ratio is not None:
            parts.append(f", at {percent(100 * group.ratio)} of what was expected on average")
    else:
        parts = [repeats.noise_words]
        estimate = group.first.plan.estimate
        if estimate is not None and group.ratio is not None:
            against = f"{method_phrase(estimate.method)} {estimate.step_time_text}"
            parts.append(f"; {percent(100 * group.ratio)} of {against}")
    return [*parts, (f"; without {without}" if without else "", MUTED)]


def about_run(result: RunResult, note: Note, now: float) -> list[Content]:
    """What a row has no room for: which run it is, how it came out, and what is said of it. `now` is Unix time."""
    head: list[Part] = [(result.configuration.label, "bold"), f" on {result.cluster}   run {result.id}"]
    head.append((f"   {PROCEDURES[result.procedure].title}, {local_time(result.made_at, now)}", MUTED))
    verdict = result.verdict
    if result.state != "done" or verdict is None:
        why = result.record.state.no_verdict or "It was not judged."
        says = line(("No verdict: ", MUTED), why.removeprefix("No verdict: ")) if result.state == "done" else line(why)
    else:
        says = line(f"{step_time(verdict.measured_s)} against {verdict.against}. {' '.join(verdict.reasons)}")
    unknown = unknown_words(result.validity)
    more = [line((unknown, MUTED))] if unknown else []
    return [line(*head), says, *more, *([line((note.words, "$text-accent"))] if note else [])]


def change_words(repeats: Group, change: ChangePoint, now: float, *, named: bool) -> str:
    """`8.2 % slower since 12 Nov, run k3f9a2 (2.012 s → 2.177 s)`; `named`: with what it is. `now` is Unix time."""
    first = repeats.runs[change.at]
    word = "slower" if change.percent > 0 else "faster"
    figures = f"{step_time(change.before)} → {step_time(change.after)}"
    label = f"{repeats.label}: " if named else ""
    percentage, day = two_digits(abs(change.percent)), local_day(first.made_at, now)
    return f"{label}{percentage} % {word} since {day}, run {first.id} ({figures})"


def _trend(group: ResultGroup, span: Span, cells: int) -> Cell:
    """The step times over the span, drawn."""
    return Toned(spark(group.relative, span, cells), _change_tone(group))


def _change(group: ResultGroup, now: float) -> Cell:
    """Since when the step times are others; `now` is Unix time."""
    if not group.changed:
        return ""
    repeats, change = group.changed[-1]
    word = "slower" if change.percent > 0 else "faster"
    return Toned(f"{word} since {local_day(repeats.runs[change.at].made_at, now)}", _change_tone(group))


def _change_tone(group: ResultGroup) -> Tone:
    """A step time that became longer is a warning."""
    return "warning" if group.changed and group.changed[-1][1].percent > 0 else "plain"


def spark(values: Sequence[tuple[float, float]], span: Span, cells: int) -> str:
    """(Unix time, step time ÷ mean) over a span, one character for each part of it.

    A part with several runs shows their mean, one without any is blank.
    """
    parts: list[list[float]] = [[] for _ in range(cells)]
    for at, value in values:
        if at >= span.begin:
            parts[min(int((at - span.begin) / (span.end - span.begin) * cells), cells - 1)].append(value)
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
    """`9`, or `7/9` where not all count."""
    return f"{len(group.runs)}" if group.counted == len(group.runs) else f"{group.counted}/{len(group.runs)}"


def _range(group: ResultGroup) -> Cell:
    repeats = group.repeats
    if repeats is None or len(repeats.runs) == 1:
        return None
    return Toned(step_time_range_digits(min(repeats.values_s), max(repeats.values_s)), "quiet")


def _verdicts(group: ResultGroup) -> Cell:
    """The worst verdict, and how many have it where not all do."""
    worst, total = group.worst, sum(group.verdicts.values())
    if worst is None:
        return None
    label, count = verdict_label(worst), group.verdicts[worst]
    return Toned(label.text if count == total else f"{label.text} {count}/{total}", label.tone)
