"""`JobTable`: a row for each run, newest first. It writes what changed, and keeps the cursor on its run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from llmb_tui.launch.run import Run
from llmb_tui.results.notes import NO_NOTE, Note
from llmb_tui.ui.widgets.job_texts import BAR_CELLS, Counts, age_cell, has_words, job_row
from llmb_tui.ui.widgets.keyed_table import Key, KeyedTable, Row, TableColumn

if TYPE_CHECKING:
    from llmb_tui.watch.run_records import RunRecord, RunsChanged


_WIDE_FROM = 116


def job_columns(width: int) -> list[TableColumn]:
    """For a terminal of that many cells: together 78 with the gaps, and 119 on a wide one."""
    wide = width >= _WIDE_FROM
    return [
        TableColumn("mark", "", 1),
        TableColumn("state", "state", 11),
        TableColumn("workload", "workload", 19),
        TableColumn("scale", "scale", 10),
        TableColumn("where", "where", 12 if wide else 6),
        *([TableColumn("procedure", "run as", 9)] if wide else ()),
        TableColumn("steps", "steps", 7),
        *([TableColumn("bar", "", BAR_CELLS)] if wide else ()),
        TableColumn("median", "median", 6),
        *([TableColumn("against", "of expected", 19)] if wide else ()),
        TableColumn("verdict", "result", 6),
        TableColumn("age", "age", 3),
    ]


def _can_end(run: Run) -> bool:
    """It has a job that could be cancelled, or may be withdrawn."""
    return run.submission == "intended" or (run.going and bool(run.job_ids))


class JobTable(KeyedTable):
    """The runs that a filter lets through, by their ids."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="jobs.open", tooltip="Open the run"),
        Binding("j", "cursor_down", "Down", show=False, id="jobs.down", tooltip="The run below"),
        Binding("k", "cursor_up", "Up", show=False, id="jobs.up", tooltip="The run above"),
    ]

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` says Unix time."""
        super().__init__()
        self._clock = clock
        self._records: dict[str, RunRecord] = {}
        self._rows: dict[str, Row] = {}
        self._marked: set[str] = set()
        self._notes: Mapping[str, Note] = {}
        self._words: list[str] = []

    @property
    def chosen(self) -> str | None:
        """Id of the run under the cursor."""
        run_id = super().chosen
        return None if run_id is None else str(run_id)

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
        return Counts(len(runs), going, prepared, len(self.shown), len(self._marked))

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
        wanted: dict[Key, Row] = {run_id: row for run_id, row in rows if has_words(run_id, row, self._words)}
        self.show(job_columns(self.app.size.width), wanted)

    def on_resize(self) -> None:
        self.show(job_columns(self.app.size.width), self.shown)
