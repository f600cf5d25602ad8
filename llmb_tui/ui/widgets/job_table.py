"""`JobTable`: a row for each run, newest first, and what is said around the rows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from llmb_tui.language.labels import gpus_cell, workload_label
from llmb_tui.language.quantities import percent, short_age, step_time_digits
from llmb_tui.language.states import VerdictResult, method_phrase, state_label, verdict_label
from llmb_tui.language.text import plural
from llmb_tui.launch.note import NO_NOTE, Note
from llmb_tui.launch.run import Run
from llmb_tui.ui.text import MUTED, Part, line, lines
from llmb_tui.ui.units import filled
from llmb_tui.ui.widgets.keyed_table import Cell, Key, KeyedTable, Row, TableColumn, label_cell
from llmb_tui.ui.widgets.run_header import what_runs
from llmb_tui.watch.report import label_of
from llmb_tui.watch.state import RunRecord, RunsChanged, RunState

_WIDE_FROM = 116
_STATE = 12
"""Cells of most states."""
BAR_CELLS = 4
_NAMED_IN_QUESTION = 8


def job_row(run: Run, state: RunState, marked: bool, now: float, note: Note = NO_NOTE) -> Row:
    """The cells of a run by column, and what is said of it, which has none. `now` is Unix time."""
    selection, estimate = run.plan.selection, run.plan.estimate
    progress, verdict = state.progress, state.verdict
    total = progress.steps_total or run.plan.steps
    against = f"{percent(verdict.ratio * 100)} of {method_phrase(estimate.method)}" if verdict and estimate else ""
    return {
        "mark": ("x", "active") if marked else ("•" if note else "", "quiet"),
        "state": label_cell(label_of(run, state)),
        "workload": (workload_label(selection.workload, selection.size, selection.dtype), "plain"),
        "scale": (gpus_cell(selection.scale, selection.gpu), "plain"),
        "where": (run.cluster, "plain"),
        "procedure": (run.procedure, "quiet"),
        "steps": (f"{progress.steps_done}/{total}" if progress.steps_done else "–", "plain"),
        "bar": (filled(progress.steps_done, total, BAR_CELLS), "active"),
        "median": ("–" if progress.median_s is None else step_time_digits(progress.median_s), "plain"),
        "against": (against, "plain"),
        "verdict": result_cell(verdict.result) if verdict else ("–", "quiet"),
        "age": age_cell(run, now),
        "note": (note.words, "plain"),
    }


def age_cell(run: Run, now: float) -> Cell:
    """How long ago it was submitted, at `now`, Unix time."""
    return short_age(now - (run.submitted_at or run.created_at)), "quiet"


def result_cell(result: VerdictResult) -> Cell:
    """Glyph and word."""
    return label_cell(verdict_label(result))


def has_words(run_id: str, row: Row, words: Sequence[str]) -> bool:
    """True if a row has every word, all lower case, in its id or a cell."""
    text = " ".join([run_id, *(cell for cell, _ in row.values())]).lower() if words else ""
    return all(word in text for word in words)


def what_is_missing(silent: Mapping[str, str], unreadable: int, beside: Sequence[str] = ()) -> list[str]:
    """What the rows do not say: what could not be asked or read, and what else is known that is `beside` them."""
    notes = [f"{cluster} could not be asked: {why}" for cluster, why in silent.items()]
    notes += beside
    if unreadable:
        notes.append(f"{plural(unreadable, 'run file')} could not be read: `llmb-tui jobs` says why.")
    return notes


def cancel_question(runs: Sequence[Run]) -> Content:
    """What would be cancelled, and withdrawn."""
    named = runs[:_NAMED_IN_QUESTION]
    jobs = Counter(run.words for run in runs for _ in run.job_ids)
    prepared = sum(not run.job_ids for run in runs)
    what = [f"Cancel {words.count(number)}" for words, number in jobs.items()]
    what += [f"Withdraw {plural(prepared, 'run')} of which nothing was sent"] * bool(prepared)
    rows = [line(f"{'; '.join(what)}?"), Content("")]
    for run in named:
        job = f"{', '.join(run.job_ids) or state_label('intended').word:<13}"
        rows.append(line((job, "bold"), f"  {what_runs(run)} · {run.cluster}"))
    if len(runs) > len(named):
        rows.append(line((f"and {len(runs) - len(named)} more", MUTED)))
    rows += [Content(""), *(line((words.cancelling, MUTED)) for words in jobs)] if jobs else []
    return lines(*rows)


def job_columns(width: int, state: int = _STATE) -> list[TableColumn]:
    """For a terminal of that many cells: together at most 78 with the gaps, and 119 on a wide one.

    A longer `state` than usual takes the room of the age.
    """
    wide = width >= _WIDE_FROM
    return [
        TableColumn("mark", "", 1),
        TableColumn("state", "state", state),
        TableColumn("workload", "workload", 18),
        TableColumn("scale", "scale", 10 if wide else 9),
        TableColumn("where", "where", 10 if wide else 5),
        *([TableColumn("procedure", "run as", 8)] if wide else ()),
        TableColumn("steps", "steps", 9),
        *([TableColumn("bar", "", BAR_CELLS)] if wide else ()),
        TableColumn("median", "median", 6),
        *([TableColumn("against", "of expected", 20)] if wide else ()),
        TableColumn("verdict", "result", 6),
        *([TableColumn("age", "age", 3)] if state <= _STATE else ()),
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
        return self._records.get(self.chosen or "")

    @property
    def note(self) -> Note:
        return self._notes.get(self.chosen or "", NO_NOTE)

    @property
    def to_cancel(self) -> list[Run]:
        """The marked runs, newest first, or else the one under the cursor; of these, those that can be ended."""
        chosen = self._marked or {self.chosen or ""}
        runs = [record.run for run_id, record in self._records.items() if run_id in chosen]
        return list(filter(_can_end, runs))

    @property
    def heading(self) -> Content:
        """The line above the rows."""
        runs = [record.run for record in self._records.values()]
        going, prepared = sum(run.going for run in runs), sum(run.submission == "intended" for run in runs)
        words = f"{going} active · {len(runs) - going - prepared} finished" if runs else "none yet"
        words += f" · {prepared} {state_label('intended').word}" if prepared else ""
        parts: list[Part] = [("Runs", "bold"), f"   {words}"]
        if len(self.shown) != len(runs):
            parts.append((f"   {len(self.shown)} shown", "$text-accent"))
        if self._marked:
            parts.append((f"   {len(self._marked)} marked", "$text-accent"))
        if not runs:
            parts.append(("   The wizard's last step submits one.", MUTED))
        return line(*parts)

    @property
    def open_ends(self) -> list[str]:
        """What is known of cancels whose answer was lost, and what can be done with runs that were not sent."""
        runs = [record.run for record in self._records.values()]
        notes = [run.cancel_note for run in runs if run.going and run.cancel_note]
        if any(run.submission == "intended" for run in runs):
            notes.append("Open a run that is not submitted to submit it; c withdraws it.")
        return notes

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
        self._lay_out(wanted)

    def on_resize(self) -> None:
        self._lay_out(self.shown)

    def _lay_out(self, rows: Mapping[Key, Row]) -> None:
        longest = max((len(row["state"][0]) for row in rows.values()), default=0)
        self.show(job_columns(self.app.size.width, max(longest, _STATE)), rows)
