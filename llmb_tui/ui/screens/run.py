"""`RunScreen`: one run from the queue to its verdict, with its log. It shows what the monitor publishes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Footer, Static

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.text import clean_line
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.dialogs import Confirm
from llmb_tui.ui.prompter import ModalPrompter
from llmb_tui.ui.screens.report import Report
from llmb_tui.ui.text import MUTED, line, lines, tell, told
from llmb_tui.ui.widgets.log_pane import LogPane
from llmb_tui.ui.widgets.metrics import Metrics
from llmb_tui.ui.widgets.run_header import RunHeader, job_text, what_runs
from llmb_tui.ui.widgets.run_part import ENDED
from llmb_tui.ui.widgets.stage_line import StageLine
from llmb_tui.ui.widgets.step_chart import StepChart
from llmb_tui.ui.widgets.verdict_card import VerdictCard
from llmb_tui.watch.locallog import local_name, newest_restart
from llmb_tui.watch.state import RunState

if TYPE_CHECKING:
    from llmb_tui.watch.monitor import Monitor

# While it is unknown whether a run was submitted: a launch by the published procedure takes minutes.
_ASK_EVERY_S = 10.0


class RunScreen(Screen[None]):
    """Watches one run; leaving it stops the watching, not the run."""

    HELP = """One run: where it stands, how fast it is beside what was expected, and its log.
Leaving this screen stops the watching only; the job goes on."""
    CSS_PATH = "run.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal")]  # noqa: RUF012 - Textual's own form
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (20, "-low"), (32, "-middle"), (50, "-tall")]  # noqa: RUF012 - as above
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "cancel", "Cancel…", id="run.cancel", tooltip="Cancel the job, after a question"),
        Binding("r", "report", "Report", id="run.report", tooltip="The run as a JSON document, to copy"),
        Binding("u", "settle", "Settle", id="run.settle", tooltip="Ask the cluster whether the job was submitted"),
        Binding("l", "log_in", "Log in", id="run.log_in", tooltip="Log in again; the cluster has a question"),
        Binding("t", "try_again", "Try again", id="run.try_again", tooltip="Watch the run again after an error"),
        Binding("q,escape", "leave", "Back", key_display="q", id="run.leave", tooltip="Leave; the job goes on"),
    ]

    training_run: reactive[Run | None] = reactive[Run | None](None, bindings=True)
    run_state: reactive[RunState | None] = reactive[RunState | None](None, bindings=True)
    trouble: reactive[Trouble | None] = reactive[Trouble | None](None, bindings=True)
    """What stopped the watching, until it goes on."""

    header = getters.query_one(RunHeader)
    notice = getters.query_one("#notice", Static)
    log_pane = getters.query_one(LogPane)

    class Published(Message):
        """The monitor has a new state."""

        def __init__(self, run_state: RunState) -> None:
            super().__init__()
            self.run_state = run_state

        def can_replace(self, message: Message) -> bool:
            """Only the newest state counts."""
            return isinstance(message, RunScreen.Published)

    def __init__(self, services: Services, run_id: str) -> None:
        super().__init__()
        self._services = services
        self._run_id = run_id
        self._folder = services.runs().folder(run_id)
        self._stop = threading.Event()
        self._monitor: Monitor | None = None
        self._profile: ClusterProfile | None = None

    def compose(self) -> ComposeResult:
        """Who and where, how far, what is wrong, the figures, the log, the keys."""
        yield RunHeader().data_bind(RunScreen.training_run, RunScreen.run_state)
        yield StageLine().data_bind(RunScreen.training_run, RunScreen.run_state)
        yield Static(id="notice", markup=False)
        with Horizontal(id="cards"):
            yield StepChart().data_bind(RunScreen.training_run, RunScreen.run_state)
            yield Metrics().data_bind(RunScreen.training_run, RunScreen.run_state)
            yield VerdictCard().data_bind(RunScreen.training_run, RunScreen.run_state)
        yield LogPane(self._log_files(), "No log yet. It begins when the job starts.")
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Load the run and watch it."""
        self._watch()

    def on_unmount(self) -> None:
        """Let the monitor go."""
        self._stop.set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        """No key for what cannot be done now."""
        run = self.training_run
        if action == "cancel":
            return run is not None and bool(run.job_ids) and not (self._has_ended() and self._others_have_ended())
        if action == "report":
            return run is not None
        if action == "settle":
            return run is not None and run.submission == "unknown"
        if action == "log_in":
            return self._needs_login()
        if action == "try_again":
            return self.trouble is not None or self._is_shut_out()
        return True

    def action_leave(self) -> None:
        """Back to where the run was opened."""
        self.dismiss(None)

    def action_try_again(self) -> None:
        """Watch again."""
        self.trouble = None
        self._watch()

    @work(group="log-in", exclusive=True, exit_on_error=False)
    async def action_log_in(self) -> None:
        """Connect again, with a person to answer."""
        profile = self._profile
        if profile is None:
            return
        try:
            await in_daemon(lambda: self._services.session(profile.name).connect(attended=True))
        except Trouble as trouble:
            self.trouble = trouble
        else:
            self.trouble = None

    def action_report(self) -> None:
        """Show the run's document."""
        run = self.training_run
        if run is not None:
            from llmb_tui.watch.report import document  # noqa: PLC0415 (not needed for the first frame)

            state = self.run_state or RunState(run.id)
            self.app.push_screen(Report(json.dumps(document(run, state), indent=2, ensure_ascii=False)))

    @work(group="cancel", exclusive=True, exit_on_error=False)
    async def action_cancel(self) -> None:
        """Ask, then ask Slurm, then say what it answered."""
        run = self.training_run
        if run is None or not run.job_ids:
            return
        jobs = f"job{'s' * (len(run.job_ids) != 1)} {', '.join(run.job_ids)}"
        question = lines(
            [
                line("Cancel ", (jobs, "bold"), f" on {run.cluster}?"),
                Content(""),
                line(what_runs(run)),
                job_text(run, self.run_state or RunState(run.id)),
                Content(""),
                line(("Its log and its steps so far are kept.", MUTED)),
            ]
        )
        if not await self.app.push_screen_wait(Confirm("Cancel", question, "Cancel the job", "Keep it")):
            return
        try:
            await in_daemon(lambda: self._services.cancel(run))
        except Trouble as trouble:
            self.trouble = trouble
        else:
            tell(self.app, f"Slurm was asked to cancel {jobs}.")
            if self._monitor is not None:
                self._monitor.look_soon()

    @work(group="settle", exclusive=True, exit_on_error=False)
    async def action_settle(self) -> None:
        """Look on the cluster for what became of the submission, then watch the run if it is one."""
        run = self.training_run
        if run is None:
            return
        try:
            settled = await in_daemon(lambda: self._services.reconcile(run.id))
        except Trouble as trouble:
            self.trouble = trouble
            return
        self.training_run = settled
        if settled.submission == "submitted":
            self._watch()

    @on(Published)
    def take_state(self, event: Published) -> None:
        """Show the new state."""
        self.run_state = event.run_state
        self.log_pane.show_newest((event.run_state.log_name, self._folder / event.run_state.log_name))

    def watch_training_run(self) -> None:
        """A run that is not known to be submitted says so."""
        self._show_notice()

    def watch_run_state(self) -> None:
        """A run that failed says why."""
        self._show_notice()

    def watch_trouble(self) -> None:
        """An error stays until the watching goes on."""
        self._show_notice()

    @work(group="monitor", exclusive=True, exit_on_error=False)
    async def _watch(self) -> None:
        """Load the run, and show what its monitor publishes until it ends or the screen goes."""
        services = self._services
        if isinstance(services.prompter, ModalPrompter):
            services.prompter.quiet = False  # who opens a run may be asked for a password
        try:
            run = await in_daemon(lambda: services.runs().load(self._run_id))
            self.training_run = run
            profiles = await in_daemon(services.profiles)
            self._profile = next((profile for profile in profiles if profile.name == run.cluster), None)
            self.header.notice = (self._profile.notice or "") if self._profile else ""
            while run.submission == "unknown" and await self._asked(run):
                self.training_run = run = await in_daemon(lambda: services.runs().load(self._run_id))
                if run.submission == "unknown":
                    await asyncio.sleep(_ASK_EVERY_S)
            if run.submission == "submitted":
                self._monitor = monitor = await in_daemon(lambda: services.monitor(run.id))
                await in_daemon(lambda: monitor.watch(self._publish, self._stop))
        except Trouble as trouble:
            self.trouble = trouble
            await self._show_what_is_here()
        except Exception as error:  # noqa: BLE001 - a defect is shown, and the screen stays usable
            what = f"{type(error).__name__}: {error}"
            self.trouble = Trouble("The watching stopped.", clean_line(what), "The job is not touched. Try again.")

    async def _asked(self, run: Run) -> bool:
        """Look for what became of a submission; False where the cluster cannot be asked."""
        try:
            await in_daemon(lambda: self._services.reconcile(run.id))
        except Trouble:
            return False
        return True

    async def _show_what_is_here(self) -> None:
        """The cluster cannot be asked: then at least what this machine has of the run."""
        from llmb_tui.watch.monitor import replay  # noqa: PLC0415 - opens the cluster room, which loads paramiko

        run, runs = self.training_run, self._services.runs()
        if run is not None and self.run_state is None:
            self.run_state = await in_daemon(lambda: replay(runs, run))

    def _publish(self, run_state: RunState) -> None:
        """In the monitor's thread: hand a state to the screen."""
        self.post_message(self.Published(run_state))

    def _log_files(self) -> list[tuple[str, Path]]:
        """The newest log, those before a restart by Slurm, the batch script."""
        names = [local_name(restart) for restart in range(newest_restart(self._folder), -1, -1)]
        return [*((name, self._folder / name) for name in names), ("script", self._folder / "script.sh")]

    def _has_ended(self) -> bool:
        state = self.run_state
        return state is not None and (state.stage in ENDED or (state.job is not None and state.job.finished))

    def _others_have_ended(self) -> bool:
        """The run's jobs beside the one that is watched."""
        return self.run_state is None or all(other.finished for other in self.run_state.others)

    def _is_shut_out(self) -> bool:
        """The monitor gave up because the cluster does not let us in; a person may be asked again."""
        return not self._has_ended() and self.run_state is not None and self.run_state.link == "closed"

    def _needs_login(self) -> bool:
        """The link broke, and only a person can make it again."""
        health = self._services.health(self._profile) if self._profile is not None else None
        return health is not None and health.state == "needs-login" and not self._has_ended()

    def _show_notice(self) -> None:
        text = _LOG_IN if self._needs_login() else notice_text(self.training_run, self.run_state, self.trouble)
        self.notice.update(text)
        self.set_class(bool(text), "-noticed")


_LOG_IN = lines(
    [
        line(("The connection broke, and the cluster has a question before it lets us in again.", "bold")),
        line(("The job goes on meanwhile, and nothing of its log is lost. l logs in.", MUTED)),
    ]
)


def notice_text(run: Run | None, state: RunState | None, trouble: Trouble | None) -> Content:
    """What a person has to know before the figures: an error, an open submission, or why the run failed."""
    if trouble is not None:
        return told(trouble)
    if run is not None and run.submission != "submitted":
        return lines([part for part in _SUBMISSIONS[run.submission](run) if part])
    if state is None:
        return Content("")
    progress = state.progress
    if state.stage == "failed" and progress.failure is not None:
        told_by_log = told(Trouble(progress.failure_reason, progress.failure, progress.failure_fix))
        return lines([told_by_log, line(("e goes to the first error in the log.", MUTED))])
    if state.link == "closed" and state.stage not in ENDED and state.link_note:
        return lines([line((state.link_note, "bold")), line(("The job is not touched. t tries again.", MUTED))])
    # A lost link tells its own note in the header; here it is Slurm or the log that gives trouble.
    notes = (state.slurm_note, state.link_note) if state.link == "live" else ()
    return line(" ".join(filter(None, notes)))


def _unknown(run: Run) -> list[Content]:
    return [
        line(("It is not known whether this job was submitted.", "bold")),
        line(run.note),
        line(f"Job name {run.job_name}. Nothing is submitted again before that is known."),
        line(("While the cluster answers it is asked again by itself; u asks now.", MUTED)),
    ]


def _refused(run: Run) -> list[Content]:
    return [line(("Slurm refused the job.", "bold")), line(run.note)]


def _withdrawn(run: Run) -> list[Content]:
    return [line(("This run has no job, and never will.", "bold")), line(run.note)]


def _intended(run: Run) -> list[Content]:
    return [line(("This run was prepared and not submitted.", "bold")), line(run.note)]


_SUBMISSIONS: dict[str, Callable[[Run], list[Content]]] = {
    "unknown": _unknown,
    "refused": _refused,
    "withdrawn": _withdrawn,
    "intended": _intended,
}
