"""`JobsScreen`: all runs of this machine, with the figures of their local logs and their last known job states."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import getters, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import DataTable, Static

from llmb_tui.answers.run_row import RunRow, row_from_record
from llmb_tui.answers.table import Cell, Column, Toned
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.scheduler_words import JobWords
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import state_label
from llmb_tui.language.text import plural
from llmb_tui.launch.note import NO_NOTE, Note
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.ui.background import background, run_detached, run_in_thread, show_failure
from llmb_tui.ui.dialogs import ConfirmDialog, NoteDialog
from llmb_tui.ui.screens.runs_screen import RunsScreen
from llmb_tui.ui.text import MUTED, Part, line, lines, notices_text, notify
from llmb_tui.ui.widgets.keyed_table import Key, KeyedTable
from llmb_tui.ui.widgets.run_header import jobs_of, run_title
from llmb_tui.ui.widgets.run_list import cancel_question, list_problems, screen_columns
from llmb_tui.ui.widgets.status_bar import notice
from llmb_tui.watch.state import RunRecord, RunsChanged

_LINES = 8
_NO_JOB = "Nothing to cancel: this run has no active job."


def _combined_error(failed: Mapping[str, LlmbError]) -> LlmbError:
    """One error for the runs that could not be cancelled, by their ids."""
    first, *others = failed.values()
    if not others:
        return first
    why = "\n".join(f"{run_id}: {error.what} {error.why}".rstrip() for run_id, error in failed.items())
    return LlmbError(f"{plural(len(failed), 'run')} could not be cancelled.", why, first.fix)


def _can_end(run: Run) -> bool:
    """Whether the run has a job that can be cancelled, or can be withdrawn."""
    return run.submission == "intended" or (run.is_active and bool(run.job_ids))


def _note_mark(row: RunRow) -> Cell:
    return Toned("•" if row.note else "", "quiet")


class JobTable(KeyedTable):
    """Runs by their ids."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="jobs.open", tooltip="Open the run"),
        Binding("j", "cursor_down", "Down", show=False, id="jobs.down", tooltip="The run below"),
        Binding("k", "cursor_up", "Up", show=False, id="jobs.up", tooltip="The run above"),
    ]


class JobsScreen(RunsScreen[RunRow]):
    """Runs from the feed, newest first. Only actions of the user may ask for a password."""

    HELP = """All runs, newest first, active and finished. Figures come from the local copies of the logs.
The scheduler of a cluster is queried once for all of its jobs.
o lists runs that NVIDIA's llmb-run started, S lists suites."""
    # A screen with a CSS file makes Textual parse all rules again and apply them to every widget of every screen.
    DEFAULT_CSS = """
    JobsScreen {
        #jobs-peek {
            display: none;
            height: 10;
            padding: 0 1;
            border: blank;
            background: $surface;
            border-title-color: $text;
            border-title-style: bold;
            border-subtitle-color: $text-muted;
            text-wrap: nowrap;
            text-overflow: ellipsis;
        }
        &.-peeking #jobs-peek { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "peek", "Peek", id="jobs.peek", tooltip="Show the last lines of the run's log"),
        # With priority: the letters of `/word`, typed in one burst, go to the filter.
        Binding("slash", "filter", "Find", id="jobs.filter", tooltip="Show runs with these words", priority=True),
        Binding("x", "mark", "Mark", id="jobs.mark", tooltip="Mark the run for cancelling"),
        Binding("c", "cancel", "Cancel", id="jobs.cancel", tooltip="Cancel or withdraw the marked runs"),
        Binding("n", "note", "Note", id="jobs.note", tooltip="Add a note and tags to the run"),
        Binding("a", "rerun", "Rerun", id="jobs.again", tooltip="Run again with changes, in the wizard"),
        Binding(
            "o",
            "llmb_runs",
            "llmb-run…",
            show=False,  # a narrow terminal has no room for another key
            id="jobs.others",
            tooltip="List runs that NVIDIA's llmb-run started on a cluster",
        ),
        Binding("R", "app.results", "Results", id="jobs.results", tooltip="Compare finished runs"),
        Binding("S", "app.suites", "Suites…", show=False, id="jobs.suites", tooltip="List the submitted suites"),
        Binding("q,escape", "leave", "Back", id="jobs.leave", tooltip="Back to the previous screen"),
    ]

    TABLE = JobTable
    AGES = frozenset({"age"})

    last_lines = getters.query_one("#jobs-peek", Static)

    @dataclass
    class RunAgainRequested(Message):
        run: Run

    def __init__(self, services: Services, prompter: Prompter, clock: Callable[[], float] = time.time) -> None:
        super().__init__(services, prompter)
        state_first = sorted(screen_columns("runs screen", clock), key=lambda column: column.key != "state")
        self.columns = (Column("", _note_mark, "mark", 1), *state_first)
        self._records: dict[str, RunRecord] = {}
        """Newest first."""
        self._notes: Mapping[str, Note] = {}
        self._event: RunsChanged | None = None
        """The last change; None until the runs have been read."""
        self._cancelling = False
        """The confirmed runs are being cancelled; meanwhile the key is disabled."""

    def compose_below(self) -> Iterable[Widget]:
        return (Static(id="jobs-peek", markup=False),)

    @property
    def title_parts(self) -> Sequence[Part]:
        runs = [record.run for record in self._records.values()]
        active, intended = sum(run.is_active for run in runs), sum(run.submission == "intended" for run in runs)
        if self._event is None:
            return [("Runs", "bold"), "   reading …"]
        words = f"{active} active · {len(runs) - active - intended} finished" if runs else "none yet"
        words += f" · {intended} {state_label('intended').word}" if intended else ""
        parts: list[Part] = [("Runs", "bold"), f"   {words}"]
        if not runs:
            parts.append(("   Step 6 of the wizard submits a run.", MUTED))
        return parts

    @property
    def notice(self) -> str:
        policy, listed = self._services.policy, {record.run.cluster for record in self._records.values()}
        return notices_text(
            sorted(
                (name, notice(each, policy.is_read_only(each)))
                for name, each in self._profiles.items()
                if name in listed
            )
        )

    @property
    def record(self) -> RunRecord | None:
        """The run under the cursor."""
        return self._records.get(str(self.table.cursor_key))

    @property
    def to_cancel(self) -> list[Run]:
        """Marked runs that can be cancelled or withdrawn, newest first; without marks the run under the cursor."""
        chosen = self.marked or {self.table.cursor_key}
        return [record.run for run_id, record in self._records.items() if run_id in chosen and _can_end(record.run)]

    def disabled_reason(self, action: str) -> str:
        """Reason why an action cannot be done now, such as a read-only cluster; empty if it can."""
        if action not in ("mark", "cancel"):
            return ""
        if self._cancelling and action == "cancel":
            return "The confirmed runs are being cancelled."
        runs = self.to_cancel if action == "cancel" else []
        if not runs and self.record is not None:
            runs = [self.record.run]
        profiles = [self._profiles.get(run.cluster) for run in runs] or [None]
        if not any(map(self._services.policy.is_read_only, profiles)):
            return ""
        return "Runs cannot be cancelled: the cluster is read-only." if runs else "Runs cannot be cancelled: read-only."

    def why_unmarkable(self, thing: RunRow) -> str:
        return "" if _can_end(self._records[thing.id].run) else _NO_JOB

    def about(self, thing: RunRow) -> Content:
        return line(thing.note.words)

    # Actions of the user.

    def open(self, thing: RunRow) -> None:
        self.open_run(thing.id)

    def action_peek(self) -> None:
        self.toggle_class("-peeking")
        self.peek()

    def action_rerun(self) -> None:
        if self.record is not None:
            self.post_message(self.RunAgainRequested(self.record.run))

    @background(group="note", exclusive=True)
    async def action_note(self) -> None:
        if (record := self.record) is None:
            return
        notes, run_id = self._services.notes, record.run.id
        before = self._notes.get(run_id, NO_NOTE)
        answer = await self.app.push_screen_wait(NoteDialog(f"{run_title(record.run)} · {run_id}", before))
        if answer is None:
            return
        text, tags = answer
        await run_in_thread(notes.change, run_id, text, tags, set(before.tags) - set(tags))
        await self.prepare()

    @background(group="others", exclusive=True)
    async def action_llmb_runs(self) -> None:
        from llmb_tui.ui.screens.llmb_runs import LlmbRunsScreen

        record = self.record
        cluster = record.run.cluster if record else None
        opened = await self.app.push_screen_wait(LlmbRunsScreen(self._services, self._prompter, cluster))
        if opened is not None:
            self.open_run(opened)

    def apply_filter(self) -> None:
        super().apply_filter()
        self.peek()

    @background(group="cancel", exclusive=True)
    async def action_cancel(self) -> None:
        if not (runs := self.to_cancel):
            notify(self.app, _NO_JOB, "warning")
            return
        if await self.app.push_screen_wait(ConfirmDialog("Cancel", cancel_question(runs), "Cancel runs", "Keep runs")):
            run_detached(self.app, self._cancel(runs))

    async def _cancel(self, runs: Sequence[Run]) -> None:
        """Cancel or withdraw each run, even if that fails for another."""
        from llmb_tui.launch.submit import withdraw  # loads paramiko

        self._set_cancelling(True)
        cancelled: Counter[JobWords] = Counter()
        withdrawn, failed = 0, dict[str, LlmbError]()
        for run in runs:
            try:
                if run.submission == "intended":
                    await run_in_thread(withdraw, self._services.runs, self._services.journal, run)
                    withdrawn += 1
                else:
                    cancelled[run.words] += len(await run_in_thread(self._services.feed.cancel, run, self._prompter))
            except LlmbError as error:
                failed[run.id] = error
            else:
                if self.is_attached:
                    self.unmark([run.id])
        messages = [
            f"{words.scheduler} was asked to cancel {words.count(jobs)}." for words, jobs in cancelled.items() if jobs
        ]
        messages += [f"{plural(withdrawn, 'run')} withdrawn."] * bool(withdrawn)
        if messages or not failed:
            notify(self.app, " ".join(messages) or "Nothing was cancelled.")
        if failed:
            show_failure(self.app, _combined_error(failed))
        self._set_cancelling(False)

    def _set_cancelling(self, cancelling: bool) -> None:
        self._cancelling = cancelling
        if self.is_attached:
            self.refresh_bindings()

    # Data.

    async def prepare(self) -> None:
        before, self._notes = self._notes, await run_in_thread(self._services.notes.all)
        self._show(run_id for run_id in self._records if before.get(run_id) != self._notes.get(run_id))

    def show_changes(self, event: RunsChanged) -> None:
        self.call_later(self._take_changes, event)

    def _take_changes(self, event: RunsChanged) -> None:
        self._event = event
        changed = {record.run.id: record for record in event.changed}
        records = {
            run_id: record for run_id, record in self._records.items() if run_id not in event.removed_ids
        } | changed
        newest_first = sorted(records.values(), key=lambda record: record.run.created_at, reverse=True)
        self._records = {record.run.id: record for record in newest_first}
        for run_id in set(self.marked) - {record.run.id for record in newest_first if _can_end(record.run)}:
            del self.marked[run_id]
        self._show(changed)
        self.peek()

    def _show(self, changed: Iterable[str]) -> None:
        """Make new rows for the changed runs, and show all rows."""
        made = {run_id: row_from_record(self._records[run_id], self._notes.get(run_id, NO_NOTE)) for run_id in changed}
        rows: dict[Key, RunRow] = {run_id: made.get(run_id) or self.rows.things[run_id] for run_id in self._records}
        self.show_things(self.columns, rows)
        event = self._event or RunsChanged()
        problems = list_problems(event.unreachable, event.unreadable, self._open_notes)
        self.show_status(*([("! " + "  ".join(problems), "$text-warning")] if problems else []))

    @property
    def _open_notes(self) -> list[str]:
        """Notes on cancels that are not confirmed, and on runs that are not submitted."""
        runs = [record.run for record in self._records.values()]
        notes = [run.cancel_note for run in runs if run.is_active and run.cancel_note]
        if any(run.submission == "intended" for run in runs):
            notes.append("Open a run that is not submitted to submit it, or withdraw it (c: withdraw).")
        return notes

    @on(DataTable.RowHighlighted)
    def peek(self) -> None:
        self.refresh_bindings()
        if self.has_class("-peeking"):
            self._show_last_lines(self.record)

    @background(group="peek", exclusive=True)
    async def _show_last_lines(self, record: RunRecord | None) -> None:
        """Show the end of a run's log; nothing without a run. A newer call replaces this one."""
        if record is None:
            self.last_lines.border_title = self.last_lines.border_subtitle = ""
            self.last_lines.update("")
            return
        run = record.run
        rows = await run_in_thread(lambda: self._services.feed.records.last_lines(record, _LINES))
        self.last_lines.border_title = line(f"last lines · {run_title(run)}")
        self.last_lines.border_subtitle = line(" · ".join(filter(None, (jobs_of(run), run.results))))
        none = "The local copy of the log was removed." if record.state.log_removed else "No log here yet."
        self.last_lines.update(lines(*map(line, rows)) if rows else line((none, MUTED)))
