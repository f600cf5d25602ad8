"""`JobsScreen`: all runs that this machine remembers, with what their local logs say and what Slurm last said."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.dialogs import Confirm, Failure
from llmb_tui.ui.notices import notices
from llmb_tui.ui.prompter import ModalPrompter
from llmb_tui.ui.text import MUTED, line, lines, tell
from llmb_tui.ui.widgets.job_table import JobTable, job_row
from llmb_tui.ui.widgets.run_header import jobs_of, results_of, what_runs
from llmb_tui.watch.lines import split_lines
from llmb_tui.watch.state import RunState

if TYPE_CHECKING:
    from llmb_tui.watch.roster import Roster

_READ_EVERY_S = 2.0
_SETTLE_EVERY_S = 10.0
_PEEK_LINES = 8
_PEEK_BYTES = 1 << 16
_WIDE_FROM = 116
_HERE = "This machine"
_NAMED_IN_QUESTION = 8


class JobsScreen(Screen[None]):
    """The runs, newest first. Reading them asks no cluster; one look for each cluster asks for all of its jobs."""

    HELP = """Every run, newest first; finished ones stay. The figures come from the local copies of the logs.
What Slurm says is asked once for each cluster, not once for each run.
Runs that NVIDIA's own llmb-run started are opened from their list."""
    CSS_PATH = "jobs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "peek", "Peek", id="jobs.peek", tooltip="The last lines of the run's log"),
        # With priority, so that of `/word` typed in one burst the letters are the filter's.
        Binding("slash", "filter", "Filter", id="jobs.filter", tooltip="Show only runs with words", priority=True),
        Binding("x", "mark", "Mark", id="jobs.mark", tooltip="Mark the run for cancelling"),
        Binding("c", "cancel", "Cancel…", id="jobs.cancel", tooltip="Cancel the marked runs, after a question"),
        Binding("o", "others", "Others…", id="jobs.others", tooltip="Runs that NVIDIA's llmb-run started on a cluster"),
        Binding("q,escape", "leave", "Back", key_display="q", id="jobs.leave", tooltip="Back to where you came from"),
    ]

    table = getters.query_one(JobTable)
    words = getters.query_one("#jobs-filter", Input)

    class Listed(Message):
        """The remembered runs were read."""

        def __init__(self, runs: Sequence[Run], unreadable: int, notices: dict[str, str]) -> None:
            super().__init__()
            self.runs = runs
            self.unreadable = unreadable
            self.notices = notices

    class Known(Message):
        """A run's local log was folded."""

        def __init__(self, run_state: RunState) -> None:
            super().__init__()
            self.run_state = run_state

    def __init__(self, services: Services, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._services = services
        self._clock = clock
        self._runs: dict[str, Run] = {}
        self._states: dict[str, RunState] = {}
        self._folded: dict[str, object] = {}
        self._marked: set[str] = set()
        self._unreadable = 0
        self._notices: dict[str, str] = {}
        self._silent: dict[str, str] = {}
        """Why a cluster could not be asked."""
        self._rosters: dict[str, Roster] = {}
        self._reading = False

    def compose(self) -> ComposeResult:
        """Counts, rows, what could not be asked, last lines, filter, keys."""
        yield Static(id="jobs-head", markup=False)
        yield JobTable()
        yield Static(id="jobs-note", markup=False)
        yield Static(id="peek", markup=False)
        yield Input(placeholder="words that a row must have", id="jobs-filter", compact=True)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Read now, and again from time to time while the screen is in front."""
        self.table.focus()
        self.set_interval(_READ_EVERY_S, self._turn)
        self.set_interval(_SETTLE_EVERY_S, self._settle)

    def on_screen_resume(self) -> None:
        """A run may have moved on while its own screen was open."""
        if isinstance(self._services.prompter, ModalPrompter):
            self._services.prompter.quiet = True  # a list must not ask for passwords
        self._turn()

    def on_screen_suspend(self) -> None:
        """Nobody sees the list: its jobs need not be followed."""
        self._let_go()

    def on_unmount(self) -> None:
        """The screen is gone."""
        self._let_go()

    def on_resize(self) -> None:
        """Wide terminals get more columns."""
        self.table.lay_out(self.size.width >= _WIDE_FROM)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        """A stroke that is typed into the filter is a letter of it."""
        return action != "filter" or self.focused is not self.words

    # What the person does.

    @on(DataTable.RowSelected)
    def open_run(self) -> None:
        """Open the run under the cursor."""
        from llmb_tui.ui.screens.run import RunScreen  # noqa: PLC0415 (not needed for the first frame)

        if self.table.chosen is not None:
            self.app.push_screen(RunScreen(self._services, self.table.chosen))

    def action_peek(self) -> None:
        """Show the last lines of the log of the run under the cursor, or hide them."""
        self.toggle_class("-peeking")
        self._peek()

    def action_filter(self) -> None:
        """Ask for words."""
        self.words.display = True
        self.set_focus(self.words)  # at once: the next key is the filter's already

    def action_mark(self) -> None:
        """Mark the run under the cursor, or take the mark away."""
        run = self._chosen()
        if run is None:
            return
        if run.id in self._marked:
            self._marked.discard(run.id)
        elif run.going and run.job_ids:
            self._marked.add(run.id)
        else:
            tell(self.app, "This run has no job that could be cancelled.", "warning")
        self._show_rows()

    @work(group="others", exclusive=True, exit_on_error=False)
    async def action_others(self) -> None:
        """Open a run that llmb-run started on the cluster of the run under the cursor, or on another."""
        from llmb_tui.ui.screens.llmb_runs import LlmbRunsScreen  # noqa: PLC0415 (not needed for the first frame)
        from llmb_tui.ui.screens.run import RunScreen  # noqa: PLC0415 (as above)

        run = self._chosen()
        opened = await self.app.push_screen_wait(LlmbRunsScreen(self._services, run.cluster if run else None))
        if opened is not None:
            self.app.push_screen(RunScreen(self._services, opened))

    def action_leave(self) -> None:
        """Leave the filter first, then the screen."""
        if self.words.display:
            self.words.value = ""
            self.words.display = False
            self.set_focus(self.table)
        else:
            self.dismiss(None)

    @on(Input.Changed, "#jobs-filter")
    def narrow(self) -> None:
        """Show the rows that have all words."""
        self._show_rows()

    @on(Input.Submitted, "#jobs-filter")
    def to_rows(self) -> None:
        """Back to the rows; the filter stays."""
        self.words.display = bool(self.words.value)
        self.set_focus(self.table)

    @work(group="cancel", exclusive=True, exit_on_error=False)
    async def action_cancel(self) -> None:
        """Ask, then ask Slurm for each run, then say what came of it."""
        here = self._chosen()
        wanted = [self._runs[run_id] for run_id in self._runs if run_id in self._marked] or ([here] if here else [])
        wanted = [run for run in wanted if run.going and run.job_ids]
        if not wanted:
            tell(self.app, "This run has no job that could be cancelled.", "warning")
            return
        if not await self.app.push_screen_wait(Confirm("Cancel", question(wanted), "Cancel them", "Keep them")):
            return
        asked = 0
        for run in wanted:
            try:
                await in_daemon(partial(self._services.cancel, run))
                asked += len(run.job_ids)
                self._marked.discard(run.id)
            except Trouble as trouble:
                self.app.push_screen(Failure(trouble))
        if asked:
            tell(self.app, f"Slurm was asked to cancel {_count(asked, 'job')}.")
        self._turn()

    # What is learned.

    @on(Listed)
    def take_runs(self, event: Listed) -> None:
        """Show the runs with what is known of them so far."""
        self._runs = {run.id: run for run in event.runs}
        self._marked &= {run.id for run in event.runs if run.going}
        self._unreadable, self._notices = event.unreadable, event.notices
        self._show_rows()
        self._peek()
        self._ask_clusters()

    @on(Known)
    def take_state(self, event: Known) -> None:
        """Show what a log says."""
        self._states[event.run_state.run_id] = event.run_state
        self._show_rows()

    @on(DataTable.RowHighlighted)
    def follow_cursor(self) -> None:
        """The last lines are those of the run under the cursor."""
        self._peek()

    def _turn(self) -> None:
        """Read what is here, while somebody looks at it."""
        if self.is_current and not self._reading:
            self._read()

    @work(group="read", exit_on_error=False)
    async def _read(self) -> None:
        self._reading = True
        try:
            await in_daemon(self._read_runs)
            self._silent.pop(_HERE, None)
        except Trouble as trouble:
            self._silent[_HERE] = trouble.what
        finally:
            self._reading = False
        self._show_rows()

    def _read_runs(self) -> None:
        """In a thread: list the runs, then fold the logs that grew."""
        from llmb_tui.watch.monitor import replay  # noqa: PLC0415 - opens the cluster room, which loads paramiko

        runs = self._services.runs()
        remembered = runs.all()
        self.post_message(self.Listed(remembered, len(runs.unreadable()), notices(self._services)))
        for run in remembered:
            stamp = (run, _stamps(runs.folder(run.id)))
            if self._folded.get(run.id) != stamp:
                self.post_message(self.Known(replay(runs, run)))
                self._folded[run.id] = stamp

    @work(group="look", exclusive=True, exit_on_error=False)
    async def _ask_clusters(self) -> None:
        """Follow the jobs of all going runs; each cluster is asked once for all of its own."""
        going: dict[str, list[Run]] = {cluster: [] for cluster in self._rosters}
        for run in self._runs.values():
            if run.going and run.job_ids:
                going.setdefault(run.cluster, []).append(run)
        for cluster, runs in going.items():
            try:
                if cluster not in self._rosters:
                    self._rosters[cluster] = await in_daemon(partial(self._roster, cluster))
                roster = self._rosters[cluster]
                await in_daemon(partial(roster.follow, runs))
                self._silent[cluster] = roster.trouble
            except Trouble as trouble:
                self._silent[cluster] = trouble.what
        self._show_rows()

    @work(group="settle", exclusive=True, exit_on_error=False)
    async def _settle(self) -> None:
        """Look for what became of the submissions that are unknown; a cluster that does not answer changes nothing."""
        for run in [run for run in self._runs.values() if run.submission == "unknown"]:
            with contextlib.suppress(Trouble):
                await in_daemon(partial(self._services.reconcile, run.id))

    def _roster(self, cluster: str) -> Roster:
        """In a thread: what follows the jobs of a cluster."""
        from llmb_tui.watch.roster import Roster  # noqa: PLC0415 - opens the cluster room, which loads paramiko

        return Roster(self._services.lookout(cluster), self._services.runs())

    @work(group="peek", exclusive=True, exit_on_error=False)
    async def _peek(self) -> None:
        run = self._chosen()
        if run is None or not self.has_class("-peeking"):
            return
        state = self._states.get(run.id) or RunState(run.id)
        path = self._services.runs().folder(run.id) / state.log_name
        text = await in_daemon(lambda: last_lines(path, _PEEK_LINES))
        peek = self.query_one("#peek", Static)
        peek.border_title = line(f"last lines · {what_runs(run)}")
        peek.border_subtitle = line(" · ".join(filter(None, (jobs_of(run), results_of(run)))))
        peek.update(lines([line(row) for row in text]) if text else line(("There is no log here yet.", MUTED)))

    def _let_go(self) -> None:
        self.workers.cancel_group(self, "look")
        for roster in self._rosters.values():
            roster.end()
        self._rosters.clear()

    def _chosen(self) -> Run | None:
        return self._runs.get(self.table.chosen or "")

    def _show_rows(self) -> None:
        now = self._clock()
        rows = [
            (run.id, job_row(run, self._states.get(run.id) or RunState(run.id), run.id in self._marked, now))
            for run in self._runs.values()
        ]
        words = self.words.value.lower().split()
        shown = [
            (run_id, cells)
            for run_id, cells in rows
            if all(word in " ".join([run_id, *(text for text, _ in cells.values())]).lower() for word in words)
        ]
        self.table.lay_out(self.size.width >= _WIDE_FROM)
        self.table.show(shown)
        self._show_words(len(shown))

    def _show_words(self, shown: int) -> None:
        """Counts above the rows, and below them what could not be read or asked."""
        total, going = len(self._runs), sum(run.going for run in self._runs.values())
        counts = f"{going} going · {total - going} ended"
        parts: list[str | tuple[str, str]] = [("Runs", "bold"), f"   {counts if total else 'none yet'}"]
        if shown != total:
            parts.append((f"   {shown} shown", "$text-accent"))
        if self._marked:
            parts.append((f"   {len(self._marked)} marked", "$text-accent"))
        for cluster in sorted({run.cluster for run in self._runs.values()} & self._notices.keys()):
            parts += ["   ", (f" {cluster}: {self._notices[cluster]} ", "reverse")]
        if not total:
            parts.append(("   The wizard's last step submits one.", MUTED))
        self.query_one("#jobs-head", Static).update(line(*parts))
        notes = [f"{cluster} could not be asked: {why}" for cluster, why in self._silent.items() if why]
        if self._unreadable:
            notes.append(f"{_count(self._unreadable, 'run file')} could not be read: `llmb-tui jobs` says why.")
        self.query_one("#jobs-note", Static).update(line(("! " + "  ".join(notes), "$text-warning")))
        self.set_class(bool(notes), "-noted")


def question(runs: Sequence[Run]) -> Content:
    """What would be cancelled."""
    named = runs[:_NAMED_IN_QUESTION]
    rows = [line(f"Cancel {_count(sum(len(run.job_ids) for run in runs), 'job')}?"), Content("")]
    rows += [line((f"{', '.join(run.job_ids):<10}", "bold"), f"  {what_runs(run)} · {run.cluster}") for run in named]
    if len(runs) > len(named):
        rows.append(line((f"and {len(runs) - len(named)} more", MUTED)))
    return lines(rows)


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a file, clean; none if there is no such file. A line of 64 KiB and more is cut."""
    try:
        with path.open("rb") as file:
            start = max(file.seek(0, 2) - _PEEK_BYTES, 0)
            file.seek(start)
            data = file.read(_PEEK_BYTES)
    except OSError:
        return []
    return split_lines(data)[1 if start and b"\n" in data else 0 :][-count:]


def _stamps(folder: Path) -> object:
    """What changes when a log in a folder does."""
    return sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in folder.glob("log*"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
