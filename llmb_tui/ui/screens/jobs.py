"""`JobsScreen`: all runs that this machine remembers, with what their local logs and their schedulers last said."""

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
from llmb_tui.ui.dialogs import Confirm, NoteDialog
from llmb_tui.ui.screens.runs_screen import RunsScreen
from llmb_tui.ui.text import MUTED, Part, line, lines, notices_words, notify
from llmb_tui.ui.widgets.keyed_table import Key, KeyedTable
from llmb_tui.ui.widgets.run_header import jobs_of, what_runs
from llmb_tui.ui.widgets.run_list import cancel_question, list_problems, screen_columns
from llmb_tui.ui.widgets.status_bar import notice
from llmb_tui.watch.state import RunRecord, RunsChanged

_LINES = 8
_NO_JOB = "This run has no job that could be cancelled, and nothing to withdraw."


def _of_all(failed: Mapping[str, LlmbError]) -> LlmbError:
    """What went wrong for some runs, in one; by their ids."""
    first, *others = failed.values()
    if not others:
        return first
    why = "\n".join(f"{run_id}: {error.what} {error.why}".rstrip() for run_id, error in failed.items())
    return LlmbError(f"{plural(len(failed), 'run')} could not be cancelled.", why, first.fix)


def _can_end(run: Run) -> bool:
    """True for a run with a job that could be cancelled, and for one that may be withdrawn."""
    return run.submission == "intended" or (run.is_active and bool(run.job_ids))


def _mark(row: RunRow) -> Cell:
    return Toned("•" if row.note else "", "quiet")


class JobTable(KeyedTable):
    """Runs by their ids."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="jobs.open", tooltip="Open the run"),
        Binding("j", "cursor_down", "Down", show=False, id="jobs.down", tooltip="The run below"),
        Binding("k", "cursor_up", "Up", show=False, id="jobs.up", tooltip="The run above"),
    ]


class JobsScreen(RunsScreen[RunRow]):
    """The runs, newest first, as their feed says. Only what a person does here may ask for a password."""

    HELP = """Every run, newest first; finished ones stay. The figures come from the local copies of the logs.
What a scheduler says of jobs is asked once for each cluster, not once for each run.
Runs that NVIDIA's own llmb-run started are opened from their list (o), suites from theirs (S)."""
    # With a file of its own, Textual parses all rules anew and applies them to every widget of every screen.
    DEFAULT_CSS = """
    JobsScreen {
        #jobs-peek {
            display: none;
            height: 10;
            padding: 0 1;
            border: round $border-blurred;
            border-title-color: $text;
            text-wrap: nowrap;
            text-overflow: ellipsis;
        }
        &.-peeking #jobs-peek { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "peek", "Peek", id="jobs.peek", tooltip="The last lines of the run's log"),
        # With priority, so that of `/word` typed in one burst the letters are the filter's.
        Binding("slash", "filter", "Filter", id="jobs.filter", tooltip="Show only runs with words", priority=True),
        Binding("x", "mark", "Mark", id="jobs.mark", tooltip="Mark the run for cancelling"),
        Binding(
            "c", "cancel", "Cancel…", id="jobs.cancel", tooltip="Cancel or withdraw the marked runs, after a question"
        ),
        Binding("n", "note", "Note…", id="jobs.note", tooltip="Say something of the run, and give it tags"),
        Binding(
            "a", "again", "Again…", id="jobs.again", tooltip="What the run was, in the wizard, to change and submit"
        ),
        Binding(
            "o",
            "others",
            "Others…",
            show=False,  # a narrow terminal has no room for one more
            id="jobs.others",
            tooltip="Runs that NVIDIA's llmb-run started on a cluster",
        ),
        Binding("R", "app.results", "Results", id="jobs.results", tooltip="The runs that are over, compared"),
        Binding("S", "app.suites", "Suites…", show=False, id="jobs.suites", tooltip="The suites that were submitted"),
        Binding("q,escape", "leave", "Back", id="jobs.leave", tooltip="Back to where you came from"),
    ]

    TABLE = JobTable
    AGES = frozenset({"age"})

    last_lines = getters.query_one("#jobs-peek", Static)

    @dataclass
    class Again(Message):
        """What a run was is wanted once more."""

        run: Run

    def __init__(self, services: Services, prompter: Prompter, clock: Callable[[], float] = time.time) -> None:
        super().__init__(services, prompter)
        state_first = sorted(screen_columns("runs screen", clock), key=lambda column: column.key != "state")
        self.columns = (Column("", _mark, "mark", 1), *state_first)
        self._records: dict[str, RunRecord] = {}
        """Newest first."""
        self._notes: Mapping[str, Note] = {}
        self._event = RunsChanged()
        self._cancelling = False
        """What was agreed to is being cancelled: no key does it again."""

    def below(self) -> Iterable[Widget]:
        return (Static(id="jobs-peek", markup=False),)

    @property
    def title_parts(self) -> Sequence[Part]:
        runs = [record.run for record in self._records.values()]
        going, prepared = sum(run.is_active for run in runs), sum(run.submission == "intended" for run in runs)
        words = f"{going} active · {len(runs) - going - prepared} finished" if runs else "none yet"
        words += f" · {prepared} {state_label('intended').word}" if prepared else ""
        parts: list[Part] = [("Runs", "bold"), f"   {words}"]
        if not runs:
            parts.append(("   The wizard's last step submits one.", MUTED))
        return parts

    @property
    def notice(self) -> str:
        observes, listed = self._services.policy.is_read_only, {record.run.cluster for record in self._records.values()}
        return notices_words(
            sorted((name, notice(one, observes(one))) for name, one in self._profiles.items() if name in listed)
        )

    @property
    def record(self) -> RunRecord | None:
        """The run under the cursor."""
        return self._records.get(str(self.table.chosen))

    @property
    def to_cancel(self) -> list[Run]:
        """The marked runs, newest first, or else the run under the cursor; of these, those that can be ended."""
        chosen = self.marked or {self.table.chosen}
        return [one.run for run_id, one in self._records.items() if run_id in chosen and _can_end(one.run)]

    def why_not(self, action: str) -> str:
        """Nothing can be cancelled on a read-only cluster."""
        if action not in ("mark", "cancel"):
            return ""
        if self._cancelling and action == "cancel":
            return "The runs that you agreed to cancel are being cancelled."
        runs = self.to_cancel if action == "cancel" else []
        if not runs and self.record is not None:
            runs = [self.record.run]
        profiles = [self._profiles.get(run.cluster) for run in runs] or [None]
        if not any(map(self._services.policy.is_read_only, profiles)):
            return ""
        return "Their cluster is read-only: no run on it is cancelled." if runs else "No run is cancelled: read-only."

    def why_unmarkable(self, thing: RunRow) -> str:
        return "" if _can_end(self._records[thing.id].run) else _NO_JOB

    def about(self, thing: RunRow) -> Content:
        return line(thing.note.words)

    # What the person does.

    def open(self, thing: RunRow) -> None:
        self.open_run(thing.id)

    def action_peek(self) -> None:
        self.toggle_class("-peeking")
        self.peek()

    def action_again(self) -> None:
        if self.record is not None:
            self.post_message(self.Again(self.record.run))

    @background(group="note", exclusive=True)
    async def action_note(self) -> None:
        if (record := self.record) is None:
            return
        notes, run_id = self._services.notes, record.run.id
        before = self._notes.get(run_id, NO_NOTE)
        answer = await self.app.push_screen_wait(NoteDialog(f"{what_runs(record.run)} · {run_id}", before))
        if answer is None:
            return
        text, tags = answer
        await run_in_thread(notes.change, run_id, text, tags, set(before.tags) - set(tags))
        await self.prepare()

    @background(group="others", exclusive=True)
    async def action_others(self) -> None:
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
        if not (wanted := self.to_cancel):
            notify(self.app, _NO_JOB, "warning")
            return
        if await self.app.push_screen_wait(Confirm("Cancel", cancel_question(wanted), "Cancel them", "Keep them")):
            run_detached(self.app, self._cancel(wanted))

    async def _cancel(self, wanted: Sequence[Run]) -> None:
        """Each of them, whatever becomes of another."""
        from llmb_tui.launch.submit import withdraw  # loads paramiko

        self._set_cancelling(True)
        cancelled: Counter[JobWords] = Counter()
        withdrawn, failed = 0, dict[str, LlmbError]()
        for run in wanted:
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
        words = [
            f"{of.scheduler} was asked to cancel {of.count(number)}." for of, number in cancelled.items() if number
        ]
        words += [f"{plural(withdrawn, 'run')} withdrawn."] * bool(withdrawn)
        if words or not failed:
            notify(self.app, " ".join(words) or "Nothing was cancelled.")
        if failed:
            show_failure(self.app, _of_all(failed))
        self._set_cancelling(False)

    def _set_cancelling(self, cancelling: bool) -> None:
        self._cancelling = cancelling
        if self.is_attached:
            self.refresh_bindings()

    # What is learned.

    async def prepare(self) -> None:
        before, self._notes = self._notes, await run_in_thread(self._services.notes.all)
        self._show(run_id for run_id in self._records if before.get(run_id) != self._notes.get(run_id))

    def show_changes(self, event: RunsChanged) -> None:
        self.call_later(self._take_changes, event)

    def _take_changes(self, event: RunsChanged) -> None:
        self._event = event
        changed = {record.run.id: record for record in event.changed}
        records = {run_id: one for run_id, one in self._records.items() if run_id not in event.gone} | changed
        newest_first = sorted(records.values(), key=lambda record: record.run.created_at, reverse=True)
        self._records = {record.run.id: record for record in newest_first}
        for run_id in set(self.marked) - {record.run.id for record in newest_first if _can_end(record.run)}:
            del self.marked[run_id]
        self._show(changed)
        self.peek()

    def _show(self, changed: Iterable[str]) -> None:
        """Make the rows of these runs again, and show all."""
        made = {one: row_from_record(self._records[one], self._notes.get(one, NO_NOTE)) for one in changed}
        rows: dict[Key, RunRow] = {one: made.get(one) or self.rows.things[one] for one in self._records}
        self.take(self.columns, rows)
        missing = list_problems(self._event.silent, self._event.unreadable, self._open_ends)
        self.show_status(*([("! " + "  ".join(missing), "$text-warning")] if missing else []))

    @property
    def _open_ends(self) -> list[str]:
        """Notes on cancels whose answer was lost, and on runs that were not submitted."""
        runs = [record.run for record in self._records.values()]
        notes = [run.cancel_note for run in runs if run.is_active and run.cancel_note]
        if any(run.submission == "intended" for run in runs):
            notes.append("Open a run that is not submitted to submit it; c withdraws it.")
        return notes

    @on(DataTable.RowHighlighted)
    def peek(self) -> None:
        self.refresh_bindings()
        if self.has_class("-peeking"):
            self._show_last_lines(self.record)

    @background(group="peek", exclusive=True)
    async def _show_last_lines(self, record: RunRecord | None) -> None:
        """Of two runs in a row only the last one's come; without a run none."""
        if record is None:
            self.last_lines.border_title = self.last_lines.border_subtitle = ""
            self.last_lines.update("")
            return
        run = record.run
        rows = await run_in_thread(lambda: self._services.feed.records.last_lines(record, _LINES))
        self.last_lines.border_title = line(f"last lines · {what_runs(run)}")
        self.last_lines.border_subtitle = line(" · ".join(filter(None, (jobs_of(run), run.results))))
        none = "Its copy was removed here." if record.state.log_removed else "There is no log here yet."
        self.last_lines.update(lines(*map(line, rows)) if rows else line((none, MUTED)))
