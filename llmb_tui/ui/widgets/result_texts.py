"""`ResultList`: all that the list of results says at one moment: its columns, its cells, the lines around. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from textual.content import Content

from llmb_tui.analysis.changes import ChangePoint
from llmb_tui.analysis.chart import Chart
from llmb_tui.analysis.charts import history_chart
from llmb_tui.analysis.compare import Group
from llmb_tui.analysis.groups import Grouping, NoteOf, ResultGroup, group_name, grouped, narrow, over, workload_of
from llmb_tui.analysis.result import RunResult
from llmb_tui.answers.writers.plot import terminal_glyphs
from llmb_tui.language.instants import local_day, local_time
from llmb_tui.language.labels import gpus_cell
from llmb_tui.language.quantities import (
    percent,
    short_age,
    step_time,
    step_time_digits,
    step_time_range_digits,
    two_digits,
)
from llmb_tui.language.states import RunStateName, method_phrase, state_label
from llmb_tui.language.text import plural
from llmb_tui.launch.note import NO_NOTE, Note
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.ui.text import MUTED, Part, heading, line, notices_words
from llmb_tui.ui.widgets.job_table import result_cell
from llmb_tui.ui.widgets.keyed_table import Cell, Key, Row, TableColumn, label_cell, room_beside
from llmb_tui.watch.validity import unknown_words

WIDE_FROM = 116
_ROOMY_FROM = 132
_DAY_S = 86_400.0
_SPANS = (("1 week", 7), ("4 weeks", 28), ("12 weeks", 84), ("1 year", 365), ("5 years", 5 * 365))
"""How long a trend may be, in days."""
_SPARK_CELLS = 10
_PADDING = 2
"""Cells beside the heading, left and right."""
# Values within so much of the fastest one are drawn in the lower half: noise is no mountain.
_LEAST_HEIGHT = 0.1
MARK: Cell = ("x", "active")
NO_MARK: Cell = ("", "plain")
_NONE: Cell = ("–", "quiet")
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
    marked: frozenset[Key]
    now: float
    """Unix time."""
    width: int
    """Cells of the terminal."""
    notices: tuple[tuple[str, str], ...] = ()
    """(cluster, what has to be said of it)."""
    missing: str = ""
    """What could not be read."""


@dataclass(frozen=True, slots=True)
class ResultList:
    """What is shown."""

    asked: ResultQuery
    ended: int
    """How many runs are over, of all."""
    found: int
    """Of these, those in which the words are."""
    clusters: frozenset[str]
    """On which these were."""
    columns: tuple[TableColumn, ...]
    groups: Mapping[Key, ResultGroup]
    """Of the rows, by their keys; a run is a group of its own."""
    rows: Mapping[Key, Row]
    chart: Chart | None
    """Of the repeats whose runs are listed, over time."""

    @property
    def heading(self) -> Content:
        """The line above the rows."""
        asked = self.asked
        parts: list[Part] = [("Results", "bold")]
        if asked.missing:
            parts.append((f"   ! {asked.missing}", "$text-warning"))
        if not self.ended:
            return line(*parts, ("   none yet: a run is here once it is over", MUTED))
        if asked.within:
            parts += ["   ", (group_name(asked.within), "bold")]
        parts.append(f"   {plural(self.found, 'run')} · {plural(len(self.clusters), 'cluster')}")
        if asked.words.strip():
            parts.append((f"   filter: {' '.join(asked.words.split())}", "$text-accent"))
        if asked.marked:
            parts.append((f"   {len(asked.marked)} marked", "$text-accent"))
        if not asked.within:
            words = "each run by itself" if asked.by == "none" else f"by {asked.by}"
            parts.append((f"   {words}", MUTED))
        notices = [one for one in asked.notices if one[0] in self.clusters]
        return heading(line(*parts), notices_words(notices), asked.width - _PADDING)

    def with_mark(self, key: Key, marked: frozenset[Key]) -> ResultList:
        """The same where that row was marked, or its mark taken away; all that are marked then."""
        row = {**self.rows[key], "mark": MARK if key in marked else NO_MARK}
        return replace(self, asked=replace(self.asked, marked=marked), rows={**self.rows, key: row})

    @property
    def lists_runs(self) -> bool:
        """A row is a run, and no group of some."""
        return self.asked.within is not None or self.asked.by == "none"

    def about(self, key: Key) -> list[Content]:
        """What a row has no room for."""
        one = self.groups[key]
        if self.lists_runs:
            return about_run(one.first, self.asked.notes.get(one.first.id, NO_NOTE), self.asked.now)
        return about_group(one, self.asked.now)


def result_list(asked: ResultQuery) -> ResultList:
    """Groups, or the runs of one, in rows. Of a thousand runs it takes a while."""
    notes, within = asked.notes, asked.within
    ended = over(asked.results)
    found = narrow(ended, asked.words, notes)
    if within is not None:
        found = next((list(one.runs) for one in grouped(found, asked.by, notes) if one.key == within.key), [])
    lists_runs = within is not None or asked.by == "none"
    groups: dict[Key, ResultGroup] = {one.key: one for one in grouped(found, "none" if lists_runs else asked.by, notes)}
    clusters = frozenset(result.cluster for result in found)
    rows: dict[Key, Row] = {}
    if lists_runs:
        columns = run_columns(asked.width, len(clusters) > 1)
        for key, one in groups.items():
            rows[key] = run_row(one.first, notes.get(one.first.id, NO_NOTE), key in asked.marked, asked.now)
    else:
        span = Span.since(min((run.made_at for run in found), default=asked.now), asked.now)
        columns = group_columns(asked.by, asked.width, len(clusters) > 1, span.name)
        cells = next((column.width for column in columns if column.key == "trend"), 0)
        for key, one in groups.items():
            rows[key] = group_row(one, key in asked.marked, span, cells)
    chart = history_chart(found) if within and within.repeats else None
    return ResultList(asked, len(ended), len(found), clusters, tuple(columns), groups, rows, chart)


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


def group_columns(by: Grouping, width: int, several_clusters: bool, span: str) -> list[TableColumn]:
    """Of groups, for a terminal of that many cells. The trend over the span takes what is left on a wide one."""
    wide = width >= WIDE_FROM
    columns = [TableColumn("mark", "", 1), TableColumn("title", _HEADINGS.get(by, by), 20 if wide else 19)]
    columns.append(TableColumn("scale", "scale", 10))
    if several_clusters and by != "cluster":
        columns.append(TableColumn("where", "where", 8 if wide else 6))
    columns += [TableColumn("runs", "runs", 5, figures=True), TableColumn("step", "step s", 6, figures=True)]
    if width >= (_ROOMY_FROM if several_clusters else WIDE_FROM):
        columns.append(TableColumn("range", "low–high", 11, figures=True))
    columns += [
        TableColumn("noise", "± %", 4, figures=True),
        TableColumn("ratio", "of exp.", 7, figures=True),
        TableColumn("result", "verdicts" if wide else "result", 12 if wide else 6),
        TableColumn("last", "last", 4, figures=True),
    ]
    room = room_beside(columns, width - 2)
    if wide or room >= 9:
        columns.append(TableColumn("trend", f"step time, {span}" if room >= 19 else "trend", room))
    return columns


def run_columns(width: int, several_clusters: bool) -> list[TableColumn]:
    """Of runs, for a terminal of that many cells. What is said of a run takes what is left on a wide one."""
    wide = width >= WIDE_FROM
    columns = [TableColumn("mark", "", 1), TableColumn("title", "workload", 21), TableColumn("scale", "scale", 10)]
    if wide:
        columns.insert(1, TableColumn("run", "run", 16))
    if several_clusters:
        columns.append(TableColumn("where", "where", 8 if wide else 6))
    columns.append(TableColumn("step", "step s", 6, figures=True))
    if wide:
        columns.append(TableColumn("noise", "± %", 4, figures=True))
        columns.append(TableColumn("procedure", "run as", 9))
    columns += [
        TableColumn("ratio", "of exp.", 7, figures=True),
        TableColumn("result", "result", 11 if wide else 9),
        TableColumn("last", "age", 4, figures=True),
    ]
    room = room_beside(columns, width - 2)
    if room >= 7:
        columns.append(TableColumn("note", "note", room))
    return columns


def group_row(group: ResultGroup, marked: bool, span: Span, trend_cells: int) -> Row:
    """The cells of a group by column. The trend is over the span, whose end is now."""
    repeats, scales, clusters = group.repeats, group.scales, group.clusters
    gpus = {run.configuration.gpu.upper() for run in group.runs}
    kind = f"×{gpus.pop()}" if len(gpus) == 1 else ""
    scale = f"{scales[0]}{kind}" if len(scales) == 1 else f"{scales[0]}–{scales[-1]}"
    title = f"{group.title} · {group.apart}" if group.apart else group.title
    return {
        "mark": MARK if marked else NO_MARK,
        "title": (title, "plain"),
        "scale": (scale, "plain"),
        "where": (clusters[0] + (f" +{len(clusters) - 1}" if clusters[1:] else ""), "plain"),
        "runs": (_count(group), "plain"),
        "step": (step_time_digits(repeats.mean_s), "plain") if repeats else _NONE,
        "range": _range(repeats),
        "noise": (two_digits(repeats.noise_pct), "plain") if repeats and repeats.noise_pct is not None else _NONE,
        "ratio": (percent(100 * group.ratio), "plain") if group.ratio is not None else _NONE,
        "result": _verdicts(group),
        "last": (short_age(span.end - group.first.made_at), "quiet"),
        "trend": _trend(group, span, trend_cells),
    }


def run_row(result: RunResult, note: Note, marked: bool, now: float) -> Row:
    """The cells of a run by column. `now` is Unix time."""
    configuration, verdict, steady = result.configuration, result.verdict, result.steady
    noise = steady.cv_pct if steady and result.state == "done" else None
    said = verdict if result.state == "done" else None
    return {
        "mark": MARK if marked else NO_MARK,
        "run": (result.id, "plain"),
        "title": (workload_of(result), "plain"),
        "scale": (gpus_cell(configuration.scale, configuration.gpu), "plain"),
        "where": (result.cluster, "plain"),
        "procedure": (PROCEDURES[result.procedure].name, "quiet"),
        "step": (step_time_digits(result.step_time_s), "plain") if result.step_time_s is not None else _NONE,
        "noise": (two_digits(noise), "plain") if noise is not None else _NONE,
        "ratio": (percent(100 * said.ratio), "plain") if said else _NONE,
        "result": result_cell(said.result) if said else _end(result.state),
        "last": (short_age(now - result.made_at), "quiet"),
        "note": (note.words, "plain"),
    }


def about_group(group: ResultGroup, now: float) -> list[Content]:
    """What a row has no room for: what exactly these are, what the figures rest on, and what changed by `now`."""
    newest = group.first
    what: list[Part] = [(group_name(group), "bold")]
    if group.is_one_configuration:
        release = f"{newest.configuration.workload}@{newest.configuration.release}"
        what.append((f"   {release} · {PROCEDURES[newest.procedure].name}", MUTED))
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
    head.append((f"   {PROCEDURES[result.procedure].name}, {local_time(result.made_at, now)}", MUTED))
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
    """The step times over the span, drawn; and since when they are others."""
    if cells < _SPARK_CELLS:
        return "", "plain"
    words = ""
    if group.changed:
        repeats, change = group.changed[-1]
        word = "slower" if change.percent > 0 else "faster"
        day = local_day(repeats.runs[change.at].made_at, span.end)
        words = f" {word} since {day}"
        if len(words) > cells - _SPARK_CELLS:
            words = f" {word} {day}"
    drawn = spark(group.relative, span, _SPARK_CELLS if cells < 2 * _SPARK_CELLS + 20 else 2 * _SPARK_CELLS)
    return f"{drawn}{words}", "warning" if words.startswith(" slower") else "plain"


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


def _end(state: RunStateName) -> Cell:
    """How a run without a verdict ended."""
    text, tone = label_cell(state_label(state))
    return text, "quiet" if state == "done" else tone


def _count(group: ResultGroup) -> str:
    """`9`, or `7/9` where not all count."""
    return f"{len(group.runs)}" if group.counted == len(group.runs) else f"{group.counted}/{len(group.runs)}"


def _range(repeats: Group | None) -> Cell:
    if repeats is None or len(repeats.runs) == 1:
        return _NONE
    return step_time_range_digits(min(repeats.values_s), max(repeats.values_s)), "quiet"


def _verdicts(group: ResultGroup) -> Cell:
    """The worst verdict, and how many have it where not all do."""
    worst, total = group.worst, sum(group.verdicts.values())
    if worst is None:
        return _NONE
    text, tone = result_cell(worst)
    count = group.verdicts[worst]
    return (text if count == total else f"{text} {count}/{total}"), tone
