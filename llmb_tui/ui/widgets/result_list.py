"""`ResultList`: all that the list of results shows at one moment. `result_list` makes it of what was asked. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from textual.content import Content

from llmb_tui.results.chart import Chart
from llmb_tui.results.charts import history_chart
from llmb_tui.results.groups import Grouping, NoteOf, ResultGroup, grouped, narrow, over
from llmb_tui.results.notes import NO_NOTE
from llmb_tui.results.result import RunResult
from llmb_tui.text import plural
from llmb_tui.ui.text import MUTED, Part, line
from llmb_tui.ui.widgets.keyed_table import Key, Row, TableColumn
from llmb_tui.ui.widgets.plot import UNICODE, Glyphs
from llmb_tui.ui.widgets.result_texts import (
    MARK,
    NO_MARK,
    Span,
    about_group,
    about_run,
    group_columns,
    group_name,
    group_row,
    notice_parts,
    run_columns,
    run_row,
)


@dataclass(frozen=True, slots=True)
class Asked:
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
    glyphs: Glyphs = UNICODE
    notices: tuple[tuple[str, str], ...] = ()
    """(cluster, what has to be said of it)."""
    missing: str = ""
    """What could not be read."""


@dataclass(frozen=True, slots=True)
class ResultList:
    """What is shown."""

    asked: Asked
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
        parts += notice_parts([one for one in asked.notices if one[0] in self.clusters])
        if not asked.within:
            words = "each run by itself" if asked.by == "none" else f"by {asked.by}"
            parts.append((f"   {words}", MUTED))
        return line(*parts)

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
            return about_run(one.first, self.asked.notes.get(one.first.id, NO_NOTE))
        return about_group(one, self.asked.now)


def result_list(asked: Asked) -> ResultList:
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
            rows[key] = group_row(one, key in asked.marked, span, cells, asked.glyphs)
    chart = history_chart(found) if within and within.repeats else None
    return ResultList(asked, len(ended), len(found), clusters, tuple(columns), groups, rows, chart)
