"""`JobsScreen`: all runs that this machine remembers, with what their local logs and their schedulers last said."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer
from textual.widgets import DataTable, Input, Static

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.scheduler_words import JobWords
from llmb_tui.errors import Trouble
from llmb_tui.language.text import plural
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.ui.daemon import background, go_on, in_daemon, show_failure
from llmb_tui.ui.dialogs import Confirm, NoteDialog
from llmb_tui.ui.screens.runs_screen import RunsScreen
from llmb_tui.ui.text import MUTED, heading, line, lines, notices_words, tell
from llmb_tui.ui.widgets.job_table import JobTable, cancel_question, what_is_missing
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.keyed_table import RowFilter
from llmb_tui.ui.widgets.run_header import jobs_of, what_runs
from llmb_tui.ui.widgets.status_bar import notice
from llmb_tui.watch.state import RunRecord, RunsChanged

_LINES = 8
_AGE_EVERY_S = 2.0
_NO_JOB = "This run has no job that could be cancelled, and nothing to withdraw."


def _of_all(failed: Mapping[str, Trouble]) -> Trouble:
    """What went wrong for some runs, in one; by their ids."""
    first, *others = failed.values()
    if not others:
        return first
    why = "\n".join(f"{run_id}: {trouble.what} {trouble.why}".rstrip() for run_id, trouble in failed.items())
    return Trouble(f"{plural(len(failed), 'run')} could not be cancelled.", why, first.fix)


class JobsScreen(RunsScreen):
    """The runs, newest first, as their feed says. Only what a person does here may ask for a password."""

    HELP = """Every run, newest first; finished ones stay. The figures come from the local copies of the logs.
What a scheduler says of jobs is asked once for each cluster, not once for each run.
Runs that NVIDIA's own llmb-run started are opened from their list (o), suites from theirs (S)."""
    CSS_PATH = "jobs.tcss"
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

    table = getters.query_one(JobTable)
    words = getters.query_one(RowFilter)
    head = getters.query_one("#jobs-head", Static)
    note = getters.query_one("#jobs-note", Static)
    said = getters.query_one("#jobs-said", Static)
    last_lines = getters.query_one("#jobs-peek", Static)

    @dataclass
    class Again(Message):
        """What a run was is wanted once more."""

        run: Run

    def __init__(self, services: Services, prompter: Prompter, clock: Callable[[], float] = time.time) -> None:
        super().__init__(services, prompter)
        self._clock = clock
        self._event = RunsChanged()
        self._ages: Timer | None = None
        self._cancelling = False
        """What was agreed to is being cancelled: no key does it again."""

    def compose(self) -> ComposeResult:
        yield Static(id="jobs-head", markup=False)
        yield JobTable(self._clock)
        yield Static(id="jobs-said", markup=False)
        yield Static(id="jobs-note", markup=False)
        yield Static(id="jobs-peek", markup=False)
        yield RowFilter("words that a row must have", id="jobs-filter")
        yield KeyBar()

    def on_mount(self) -> None:
        self.table.focus()
        self._ages = self.set_interval(_AGE_EVERY_S, self.table.grow_older)

    def on_resize(self) -> None:
        """Write the heading again for the new width."""
        self.call_after_refresh(self._show_around)

    def on_screen_suspend(self) -> None:
        if self._ages is not None:
            self._ages.pause()

    def on_screen_resume(self) -> None:
        if self._ages is not None:
            self._ages.resume()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        """What is typed into the filter is a letter of it; where a cluster is only looked at nothing is ended."""
        if action in ("mark", "cancel"):
            if self._cancelling and action == "cancel":
                return None
            runs = self.table.to_cancel if action == "cancel" else []
            if not runs and self.table.record is not None:
                runs = [self.table.record.run]
            profiles = [self._profiles.get(run.cluster) for run in runs] or [None]
            return None if any(map(self._services.policy.observes, profiles)) else True
        return action != "filter" or self.focused is not self.words

    # What the person does.

    @on(DataTable.RowSelected)
    def open_row(self) -> None:
        if self.table.chosen is not None:
            self.open_run(self.table.chosen)

    def action_peek(self) -> None:
        self.toggle_class("-peeking")
        self.peek()

    def action_filter(self) -> None:
        self.words.ask()

    def action_mark(self) -> None:
        if not self.table.mark():
            tell(self.app, _NO_JOB, "warning")
        self._show_around()

    def action_again(self) -> None:
        if self.table.record is not None:
            self.post_message(self.Again(self.table.record.run))

    @background(group="note", exclusive=True)
    async def action_note(self) -> None:
        if (record := self.table.record) is None:
            return
        notes, run_id, before = self._services.notes, record.run.id, self.table.note
        answer = await self.app.push_screen_wait(NoteDialog(f"{what_runs(record.run)} · {run_id}", before))
        if answer is None:
            return
        text, tags = answer
        await in_daemon(notes.change, run_id, text, tags, set(before.tags) - set(tags))
        await self.prepare()

    @background(group="others", exclusive=True)
    async def action_others(self) -> None:
        from llmb_tui.ui.screens.llmb_runs import LlmbRunsScreen

        record = self.table.record
        cluster = record.run.cluster if record else None
        opened = await self.app.push_screen_wait(LlmbRunsScreen(self._services, self._prompter, cluster))
        if opened is not None:
            self.open_run(opened)

    def action_leave(self) -> None:
        if not self.words.forget():
            self.dismiss(None)

    @on(Input.Changed)
    def narrow(self) -> None:
        self.table.filter(self.words.value)
        self._show_around()
        self.peek()

    @background(group="cancel", exclusive=True)
    async def action_cancel(self) -> None:
        if not (wanted := self.table.to_cancel):
            tell(self.app, _NO_JOB, "warning")
            return
        if await self.app.push_screen_wait(Confirm("Cancel", cancel_question(wanted), "Cancel them", "Keep them")):
            go_on(self.app, self._cancel(wanted))

    async def _cancel(self, wanted: Sequence[Run]) -> None:
        """Each of them, whatever becomes of another."""
        from llmb_tui.launch.submit import withdraw  # loads paramiko

        self._set_cancelling(True)
        cancelled: Counter[JobWords] = Counter()
        withdrawn, failed = 0, dict[str, Trouble]()
        for run in wanted:
            try:
                if run.submission == "intended":
                    await in_daemon(withdraw, self._services.runs, self._services.journal, run)
                    withdrawn += 1
                else:
                    cancelled[run.words] += len(await in_daemon(self._services.feed.cancel, run, self._prompter))
            except Trouble as trouble:
                failed[run.id] = trouble
            else:
                if self.is_attached:
                    self.table.unmark(run.id)
        words = [
            f"{of.scheduler} was asked to cancel {of.count(number)}." for of, number in cancelled.items() if number
        ]
        words += [f"{plural(withdrawn, 'run')} withdrawn."] * bool(withdrawn)
        if words or not failed:
            tell(self.app, " ".join(words) or "Nothing was cancelled.")
        if failed:
            show_failure(self.app, _of_all(failed))
        self._set_cancelling(False)

    def _set_cancelling(self, cancelling: bool) -> None:
        self._cancelling = cancelling
        if self.is_attached:
            self.refresh_bindings()
            self._show_around()

    # What is learned.

    async def prepare(self) -> None:
        self.table.take_notes(await in_daemon(self._services.notes.all))
        self._show_note()

    def hear(self, event: RunsChanged) -> None:
        self.call_later(self._take_changes, event)

    def _take_changes(self, event: RunsChanged) -> None:
        self._event = event
        self.table.take(event)
        self._show_around()
        self.peek()

    @on(DataTable.RowHighlighted)
    def peek(self) -> None:
        self.refresh_bindings()
        self._show_note()
        if self.has_class("-peeking"):
            self._show_last_lines(self.table.record)

    @background(group="peek", exclusive=True)
    async def _show_last_lines(self, record: RunRecord | None) -> None:
        """Of two runs in a row only the last one's come; without a run none."""
        if record is None:
            self.last_lines.border_title = self.last_lines.border_subtitle = ""
            self.last_lines.update("")
            return
        run = record.run
        rows = await in_daemon(lambda: self._services.feed.records.last_lines(record, _LINES))
        self.last_lines.border_title = line(f"last lines · {what_runs(run)}")
        self.last_lines.border_subtitle = line(" · ".join(filter(None, (jobs_of(run), run.results))))
        none = "Its copy was removed here." if record.state.log_removed else "There is no log here yet."
        self.last_lines.update(lines(*map(line, rows)) if rows else line((none, MUTED)))

    def _show_note(self) -> None:
        said = self.table.note.words
        self.said.update(line(said))
        self.set_class(bool(said), "-said")

    def _show_around(self) -> None:
        """Say above the rows how many there are, and below them what could not be read or asked."""
        observes, listed = self._services.policy.observes, self.table.clusters
        notices = sorted((name, notice(one, observes(one))) for name, one in self._profiles.items() if name in listed)
        self.head.update(heading(self.table.heading, notices_words(notices), self.head.content_size.width))
        notes = what_is_missing(self._event.silent, self._event.unreadable, self.table.open_ends)
        self.note.update(line(("! " + "  ".join(notes), "$text-warning")))
        self.set_class(bool(notes), "-noted")
