"""`JobTable`: a row for each run, newest first. It writes what changed, and keeps the cursor on its run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from llmb_tui.launch.run import Run
from llmb_tui.results.notes import NO_NOTE, Note
from llmb_tui.ui.widgets.job_texts import BAR_CELLS, Cell, Counts, Row, age_cell, has_words, job_row

if TYPE_CHECKING:
    from llmb_tui.watch.run_records import RunRecord, RunsChanged


_WIDE_FROM = 116


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key, its heading, its width, and what a wide terminal changes."""

    key: str
    heading: str
    width: int
    more: int = 0
    """Further cells on a wide terminal."""
    wide: bool = False
    """Only on a wide terminal."""


# Together 78 cells with the gaps, and 119 on a wide terminal.
COLUMNS = (
    Column("mark", "", 1),
    Column("state", "state", 11),
    Column("workload", "workload", 19),
    Column("scale", "scale", 10),
    Column("where", "where", 6, more=6),
    Column("procedure", "run as", 9, wide=True),
    Column("steps", "steps", 7),
    Column("bar", "", BAR_CELLS, wide=True),
    Column("median", "median", 6),
    Column("against", "of expected", 19, wide=True),
    Column("verdict", "result", 6),
    Column("age", "age", 3),
)


def _can_end(run: Run) -> bool:
    """It has a job that could be cancelled, or may be withdrawn."""
    return run.submission == "intended" or (run.going and bool(run.job_ids))


class JobTable(DataTable[Text]):
    """The rows in the order in which they are given. A row that is there already keeps its place and the cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"job--quiet", "job--now", "job--good", "job--warning", "job--bad"}
    DEFAULT_CSS = """
    JobTable {
        height: 1fr;
        background: transparent;
        scrollbar-size: 0 1;
        .job--quiet { text-style: dim; }
        .job--now { color: $text-accent; }
        .job--good { color: $text-success; text-style: bold; }
        .job--warning { color: $text-warning; text-style: bold; }
        .job--bad { color: $text-error; text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="jobs.open", tooltip="Open the run"),
        Binding("j", "cursor_down", "Down", show=False, id="jobs.down", tooltip="The run below"),
        Binding("k", "cursor_up", "Up", show=False, id="jobs.up", tooltip="The run above"),
    ]

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` says Unix time."""
        super().__init__(cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._clock = clock
        self._records: dict[str, RunRecord] = {}
        self._rows: dict[str, Row] = {}
        self._shown: dict[str, Row] = {}
        self._marked: set[str] = set()
        self._notes: Mapping[str, Note] = {}
        self._words: list[str] = []
        self._wide: bool | None = None

    @property
    def chosen(self) -> str | None:
        """Id of the run under the cursor."""
        ids = list(self._shown)
        return ids[self.cursor_row] if 0 <= self.cursor_row < len(ids) else None

    @property
    def record(self) -> RunRecord | None:
        """The run under the cursor."""
        return self._records.get(self.chosen or "")

    @property
    def note(self) -> Note:
        """What is said of the run under the cursor."""
        return self._notes.get(self.chosen or "", NO_NOTE)

    @property
    def to_cancel(self) -> list[Run]:
        """The marked runs, newest first, or else the one under the cursor; of these, those that can be ended."""
        chosen = self._marked or {self.chosen or ""}
        runs = [record.run for run_id, record in self._records.items() if run_id in chosen]
        return list(filter(_can_end, runs))

    @property
    def counts(self) -> Counts:
        """How many runs there are."""
        runs = [record.run for record in self._records.values()]
        going, prepared = sum(run.going for run in runs), sum(run.submission == "intended" for run in runs)
        return Counts(len(runs), going, prepared, len(self._shown), len(self._marked))

    @property
    def open_cancels(self) -> list[str]:
        """What is known of cancels whose answer was lost, of runs that go on."""
        runs = (record.run for record in self._records.values())
        return [run.cancel_note for run in runs if run.going and run.cancel_note]

    @property
    def clusters(self) -> set[str]:
        """Names of those on which a run is."""
        return {record.run.cluster for record in self._records.values()}

    def take(self, event: RunsChanged) -> None:
        for run_id in event.gone:
            del self._records[run_id], self._rows[run_id]
        records = {**self._records, **{record.run.id: record for record in event.changed}}
        newest_first = sorted(records.values(), key=lambda record: record.run.created_at, reverse=True)
        self._records = {record.run.id: record for record in newest_first}
        self._marked &= {record.run.id for record in newest_first if _can_end(record.run)}
        self._show(record.run.id for record in event.changed)

    def take_notes(self, notes: Mapping[str, Note]) -> None:
        """What is said of the runs, by their ids."""
        before, self._notes = self._notes, notes
        self._show(run_id for run_id in self._records if before.get(run_id) != notes.get(run_id))

    def mark(self) -> bool:
        """Mark the run under the cursor, or take the mark away; False if there is nothing of it to cancel."""
        run = self.record.run if self.record else None
        if run is None or not _can_end(run):
            return run is None
        self._marked ^= {run.id}
        self._show([run.id])
        return True

    def unmark(self, run_id: str) -> None:
        self._marked.discard(run_id)
        self._show([run_id])

    def filter(self, words: str) -> None:
        """Show only the rows that have all of these words."""
        self._words = words.lower().split()
        self._show()

    def grow_older(self) -> None:
        """Ages change by themselves."""
        now = self._clock()
        ages = {run_id: age_cell(record.run, now) for run_id, record in self._records.items()}
        if older := [run_id for run_id, cell in ages.items() if cell != self._rows[run_id]["age"]]:
            self._show(older)

    def _show(self, changed: Iterable[str] = ()) -> None:
        """Bring the table to the rows that the filter lets through, of which these have changed."""
        now = self._clock()
        for run_id in changed:
            record = self._records[run_id]
            note = self._notes.get(run_id, NO_NOTE)
            self._rows[run_id] = job_row(record.run, record.state, run_id in self._marked, now, note)
        rows = ((run_id, self._rows[run_id]) for run_id in self._records)
        wanted = {run_id: row for run_id, row in rows if has_words(run_id, row, self._words)}
        if list(wanted) == list(self._shown):
            for run_id, cells in wanted.items():
                self._update(run_id, cells)
        else:
            self._refill(wanted)
        self._shown = wanted

    def on_resize(self) -> None:
        wide = self.app.size.width >= _WIDE_FROM
        if wide != self._wide:
            self._wide = wide
            self._refill(self._shown)

    def notify_style_update(self) -> None:
        """Another theme: the cells' colours are written again."""
        super().notify_style_update()
        if self._wide is not None and self._shown:
            self._refill(self._shown)

    def _columns(self) -> Sequence[Column]:
        return [column for column in COLUMNS if self._wide or not column.wide]

    def _update(self, run_id: str, cells: Row) -> None:
        before = self._shown[run_id]
        if cells is before:
            return
        for column in self._columns():
            if cells[column.key] != before[column.key]:
                self.update_cell(run_id, column.key, self._text(cells[column.key]))

    def _refill(self, wanted: dict[str, Row]) -> None:
        """Write all rows; the cursor stays on its run where that is still shown."""
        chosen, row = self.chosen, self.cursor_row
        self.clear(columns=True)
        for column in self._columns():
            width = column.width + (column.more if self._wide else 0)
            self.add_column(Text(column.heading), key=column.key, width=width + 1)
        for run_id, cells in wanted.items():
            self.add_row(*(self._text(cells[column.key]) for column in self._columns()), key=run_id)
        ids = list(wanted)
        if ids:
            self.move_cursor(row=ids.index(chosen) if chosen in wanted else min(row, len(ids) - 1), animate=False)

    def _text(self, cell: Cell) -> Text:
        text, tone = cell
        style = "" if tone == "plain" else self.get_component_rich_style(f"job--{tone}", partial=True)
        return Text(text, style, no_wrap=True, overflow="ellipsis")
