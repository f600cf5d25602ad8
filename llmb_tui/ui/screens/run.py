"""`RunScreen`: one run from the queue to its verdict, with its log. It shows what the monitor publishes."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.screen import Screen
from textual.widgets import Static

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import gpu_hours
from llmb_tui.language.text import capital
from llmb_tui.launch.run import Run
from llmb_tui.preflight.report import Preflight
from llmb_tui.services import Services
from llmb_tui.ui.background import InternalError, background, run_detached, run_in_thread, show_failure
from llmb_tui.ui.compositor import RowCompositor
from llmb_tui.ui.dialogs import Confirm
from llmb_tui.ui.text import MUTED, line, lines, notify
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.log_pane import LogPane
from llmb_tui.ui.widgets.run_header import LOG_IN, RunHeader, StageLine, job_text, notice_text, what_runs
from llmb_tui.ui.widgets.run_parts import Metrics, VerdictCard
from llmb_tui.ui.widgets.status_bar import notice
from llmb_tui.ui.widgets.step_chart import StepChart
from llmb_tui.watch.logcopy import LogCopy, copies, is_removed
from llmb_tui.watch.state import ENDED, RunState

_NO_LOG = "No log yet. It begins when the job starts."
_REMOVED = "The copy of this log was removed here; what was read of it stays."


class RunScreen(Screen[None]):
    """Watches one run; leaving it stops the watching, not the run."""

    HELP = """One run: where it stands, how fast it is beside what was expected, and its log.
Leaving this screen stops the watching only; the job goes on."""
    CSS_PATH = "run.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal")]  # noqa: RUF012 - Textual's own form
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (20, "-low"), (32, "-middle"), (50, "-tall")]  # noqa: RUF012 - as above
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "submit", "Submit…", id="run.submit", tooltip="Submit the run, after a question"),
        Binding(
            "w", "withdraw", "Withdraw…", id="run.withdraw", tooltip="Withdraw the run, which then is never submitted"
        ),
        Binding("c", "cancel", "Cancel…", id="run.cancel", tooltip="Cancel the job, after a question"),
        Binding("p", "suspend", "Suspend…", id="run.suspend", tooltip="Let the job give its nodes back, for now"),
        Binding("p", "resume", "Resume…", id="run.resume", tooltip="Let the suspended job begin again"),
        Binding("r", "report", "Report", id="run.report", tooltip="The report of the run, to read and to copy"),
        Binding("u", "settle", "Settle", id="run.settle", tooltip="Ask the cluster whether the job was submitted"),
        Binding("l", "log_in", "Log in", id="run.log_in", tooltip="Log in again; the cluster has a question"),
        Binding("t", "try_again", "Try again", id="run.try_again", tooltip="Watch the run again after an error"),
        Binding("q,escape", "dismiss", "Back", id="run.leave", tooltip="Leave; the job goes on"),
    ]

    training_run: var[Run | None] = var[Run | None](None)
    run_state: var[RunState | None] = var[RunState | None](None)
    error: var[LlmbError | None] = var[LlmbError | None](None)
    """What stopped the watching, until it goes on."""
    sending: var[str] = var("")
    """What is just done to send the run; empty when nothing is."""

    header = getters.query_one(RunHeader)
    log_pane = getters.query_one(LogPane)

    @dataclass
    class StateChanged(Message):
        """The monitor has a new state."""

        run_state: RunState

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, RunScreen.StateChanged)

    def __init__(self, services: Services, prompter: Prompter, run_id: str) -> None:
        super().__init__()
        self._compositor = RowCompositor()
        self._services = services
        self._prompter = prompter
        self._run_id = run_id
        self._folder = services.runs.folder(run_id)
        self._stop = threading.Event()
        # Made here: its watchers also run when somebody asks what the keys do before the screen is composed.
        self._notice = Static(id="notice", markup=False)
        self._told = Content("")
        self._keys: tuple[bool | None, ...] = ()
        self._profile: ClusterProfile | None = None

    def compose(self) -> ComposeResult:
        yield RunHeader().data_bind(RunScreen.training_run, RunScreen.run_state)
        yield StageLine().data_bind(RunScreen.training_run, RunScreen.run_state)
        yield self._notice
        with Horizontal(id="cards"):
            yield StepChart().data_bind(RunScreen.training_run, RunScreen.run_state)
            yield Metrics().data_bind(RunScreen.training_run, RunScreen.run_state)
            yield VerdictCard().data_bind(RunScreen.training_run, RunScreen.run_state)
        yield LogPane(self._log_files(), _REMOVED if is_removed(self._folder) else _NO_LOG)
        yield KeyBar()

    def on_mount(self) -> None:
        self.log_pane.view.focus()  # also while another window is in front, when Textual gives no screen the focus
        self._watch()

    def on_unmount(self) -> None:
        self._stop.set()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        run = self.training_run
        if action in ("submit", "withdraw", "cancel", "suspend", "resume"):
            possible = run is not None and self._is_possible(action, run)
            return (
                None if possible and (self.sending or self._services.policy.is_read_only(self._profile)) else possible
            )
        if action == "report":
            return run is not None
        if action == "settle":
            return run is not None and run.submission == "unknown"
        if action == "log_in":
            return self._needs_login()
        if action == "try_again":
            return self.error is not None or self._is_shut_out()
        return True

    def action_try_again(self) -> None:
        self.error = None
        self._watch()

    @background(group="log-in", exclusive=True)
    async def action_log_in(self) -> None:
        if (profile := self._profile) is None:
            return
        with self._errors_shown():
            await run_in_thread(lambda: self._services.clusters.cluster(profile.name).connect(self._prompter))
            self.error = None

    @background(group="report", exclusive=True)
    async def action_report(self) -> None:
        from llmb_tui.ui.screens.report import ReportScreen

        with self._errors_shown():
            report = await run_in_thread(lambda: self._services.reports.report([self._run_id], time.time()))
            if self.is_current:
                self.app.push_screen(ReportScreen(report))

    @background(group="submission", exclusive=True)
    async def action_submit(self) -> None:
        if (run := self.training_run) is None:
            return
        what = line("Submit ", (what_runs(run), "bold"), f" on {run.cluster}, as it was agreed to?")
        cost = f"Cost: {gpu_hours(run.plan.gpu_hours)} and start-up. The cluster is checked first."
        question = lines(what, Content(""), line((cost, MUTED)))
        if await self.app.push_screen_wait(Confirm("Submit", question, "Submit it", "Not now")):
            run_detached(self.app, self._submit(run))

    async def _submit(self, run: Run) -> None:
        self.error, self.sending = None, f"Connecting to {run.cluster}."
        with self._errors_shown():
            sent = await run_in_thread(self._send, run)
            if not self.is_attached:
                from llmb_tui.wizard.update import launched_words

                notify(self.app, launched_words(sent))
        if self.is_attached:
            self.sending = ""
            self._watch()

    @contextlib.contextmanager
    def _errors_shown(self) -> Iterator[None]:
        """Trouble within is said over the figures, and what follows it there is left out."""
        try:
            yield
        except LlmbError as error:
            self._show_error(error)

    def _show_error(self, error: LlmbError) -> None:
        """Over the figures; where the screen was left meanwhile, in a dialog."""
        if self.is_attached:
            self.error = error
        else:
            show_failure(self.app, error)

    def _send(self, run: Run) -> Run:
        """In a thread."""
        services = self._services
        request = services.request(run.cluster, run.plan, run.procedure)
        return services.launcher.resume(request, run, self._prompter, self._publish_check, self._publish_sending)

    @background(group="submission", exclusive=True)
    async def action_withdraw(self) -> None:
        from llmb_tui.launch.submit import withdraw  # loads paramiko

        if (run := self.training_run) is None:
            return
        question = lines(line("Withdraw ", (what_runs(run), "bold"), "?"), line("Nothing of it was sent."))
        if not await self.app.push_screen_wait(Confirm("Withdraw", question, "Withdraw it", "Keep it")):
            return
        with self._errors_shown():
            self.training_run = await run_in_thread(withdraw, self._services.runs, self._services.journal, run)
            self.error = None

    @background(group="cancel", exclusive=True)
    async def action_cancel(self) -> None:
        run = self.training_run
        if run is None or not run.job_ids:
            return
        words = run.words
        question = lines(
            line("Cancel ", (words.named(run.job_ids), "bold"), f" on {run.cluster}?"),
            Content(""),
            line(what_runs(run)),
            job_text(run, self.run_state or RunState(run.id)),
            Content(""),
            line((words.cancelling, MUTED)),
        )
        if await self.app.push_screen_wait(Confirm("Cancel", question, f"Cancel the {words.job}", "Keep it")):
            run_detached(self.app, self._cancel(run))

    async def _cancel(self, run: Run) -> None:
        try:
            cancelled = await run_in_thread(lambda: self._services.feed.cancel(run, self._prompter))
        except LlmbError as error:
            await self._not_cancelled(run, error)
        else:
            from llmb_tui.watch.report import cancel_words

            notify(self.app, cancel_words(run, cancelled))

    def action_suspend(self) -> None:
        self._suspend_or_resume("suspend", "It gives its nodes back. When it is resumed the training begins anew.")

    def action_resume(self) -> None:
        self._suspend_or_resume("resume", "It waits for its nodes again, and the training begins anew.")

    @background(group="suspend", exclusive=True)
    async def _suspend_or_resume(self, what: Literal["suspend", "resume"], follows: str) -> None:
        if (run := self.training_run) is None:
            return
        named = run.words.named(run.job_ids[-1:])
        question = lines(line(capital(what), " ", (named, "bold"), f" on {run.cluster}?"), line((follows, MUTED)))
        if await self.app.push_screen_wait(Confirm(capital(what), question, capital(what), "Leave it")):
            run_detached(self.app, self._change(run, what, named))

    async def _change(self, run: Run, what: Literal["suspend", "resume"], named: str) -> None:
        with self._errors_shown():
            await run_in_thread(self._services.feed.change, run, what, self._prompter)
            if self.is_attached:
                self.error = None
            notify(self.app, f"{run.words.scheduler} was asked to {what} {named}.")

    async def _not_cancelled(self, run: Run, error: LlmbError) -> None:
        """Where only the answer was lost, the run keeps that and is watched anew, so that it is settled."""
        with contextlib.suppress(LlmbError):
            run = await run_in_thread(self._services.runs.load, run.id)
        if self.is_attached:
            self.training_run = run
        if run.cancel is None:
            self._show_error(error)
        else:
            notify(self.app, error.what, "warning")
            if self.is_attached:
                self._watch()

    @background(group="settle", exclusive=True)
    async def action_settle(self) -> None:
        if (run := self.training_run) is None:
            return
        with self._errors_shown():
            self.training_run = settled = await run_in_thread(
                lambda: self._services.feed.settle(run.id, self._prompter)
            )
            if settled.submission == "submitted":
                self._watch()

    def _take_run(self, run: Run) -> None:
        """Show what is known of the submission; it may come when more is known."""
        if self.training_run is not None and self.training_run.submission == "unknown":
            self.training_run = run

    def _take_sending(self, words: str) -> None:
        """It may come when that is over."""
        if self.sending:
            self.sending = words

    @on(StateChanged)
    def take_state(self, event: StateChanged) -> None:
        before, self.run_state = self.run_state, event.run_state
        has_cancel = self.training_run is not None and self.training_run.cancel is not None
        if has_cancel and (before is None or before.job != event.run_state.job):
            self._read_again()
        now = event.run_state
        if before is None or (before.log_name, before.log_bytes) != (now.log_name, now.log_bytes):
            self.log_pane.show_newest((now.log_name, self._folder / now.log_name))

    @background(group="monitor", exclusive=True)
    async def _watch(self) -> None:
        """Load the run, and show what its monitor publishes until it ends or the screen goes."""
        services = self._services
        prompter: Prompter | None = self._prompter  # who opens a run may be asked for a password, at once
        self._stop.set()  # whatever watched until now
        self._stop = stop = threading.Event()
        try:
            run = await run_in_thread(lambda: services.runs.load(self._run_id))
            self.training_run = run
            profiles = await run_in_thread(services.clusters.profiles)
            self._profile = next((profile for profile in profiles if profile.name == run.cluster), None)
            if self._profile is not None:
                self.header.notice = notice(self._profile, services.policy.is_read_only(self._profile))
            self.refresh_bindings()
            if run.submission == "unknown":
                run, prompter = await self._settled(run, stop), None
            if run.submission == "submitted":
                monitor = await run_in_thread(lambda: services.feed.monitor(run.id))
                await run_in_thread(lambda: monitor.watch(self._publish, stop, prompter))
        except InternalError as defect:
            self.error = LlmbError("The watching stopped.", defect.why, "The job is not touched. Try again.")
        except LlmbError as error:
            self.error = error
            await self._show_local_copy()

    async def _settled(self, run: Run, stop: threading.Event) -> Run:
        """The run, once it is known what became of it; as it is where the cluster cannot be asked."""
        from llmb_tui.watch.runs_feed import TRANSIENT_ERRORS

        feed = await run_in_thread(lambda: self._services.feed)
        try:
            run = await run_in_thread(
                feed.settle_with_retries, run.id, self._publish_run, stop, self._prompter, passing=TRANSIENT_ERRORS
            )
        except LlmbError:
            return run
        self.training_run = run
        return run

    async def _show_local_copy(self) -> None:
        """The cluster cannot be asked: then at least what this machine has of the run."""
        run = self.training_run
        if run is not None and self.run_state is None:
            self.run_state = (await run_in_thread(lambda: self._services.feed.record(run.id))).state

    @background(group="read-again", exclusive=True)
    async def _read_again(self) -> None:
        """A cancel whose answer was lost may be settled by what the scheduler says of the job now."""
        with contextlib.suppress(LlmbError):
            self.training_run = await run_in_thread(self._services.runs.load, self._run_id)

    def _publish_run(self, run: Run, why: str) -> None:
        """In a thread: what is known of a submission by now, and why no more is."""
        self.call_later(self._take_run, replace(run, note=why))

    def _publish_sending(self, words: str) -> None:
        """In a thread: how far the sending is."""
        self.call_later(self._take_sending, words)

    def _publish_check(self, report: Preflight) -> None:
        self._publish_sending(f"Checking the cluster: {report.checks[-1].title}.")

    def _publish(self, run_state: RunState) -> None:
        """In the monitor's thread: hand a state to the screen."""
        self.post_message(self.StateChanged(run_state))

    def _log_files(self) -> list[tuple[str, Path]]:
        """The newest log, those before a restart or a replacement, what was submitted."""
        names = [copy.name for copy in reversed(copies(self._folder) or [LogCopy()])]
        return [*((name, self._folder / name) for name in names), ("script", self._folder / "script.sh")]

    def _goes_on(self, run: Run) -> bool:
        """The job that is watched, or another one of the run."""
        others = self.run_state.others if self.run_state is not None else ()
        return bool(run.job_ids) and not (self._has_ended() and all(other.finished for other in others))

    def _has_ended(self) -> bool:
        state = self.run_state
        return state is not None and (state.stage in ENDED or (state.job is not None and state.job.finished))

    def _is_possible(self, action: str, run: Run) -> bool:
        """What changes the run, as it stands now."""
        if action in ("submit", "withdraw"):
            return run.submission == "intended"
        if action == "cancel":
            return self._goes_on(run)
        can = self._profile is not None and self._profile.can_suspend and self._goes_on(run)
        suspended = self.run_state is not None and self.run_state.stage == "suspended"
        return can and suspended == (action == "resume")

    def _is_shut_out(self) -> bool:
        """The monitor gave up because the cluster does not let us in; a person may be asked again."""
        return not self._has_ended() and self.run_state is not None and self.run_state.link == "closed"

    def _needs_login(self) -> bool:
        """The link broke, and only a person can make it again."""
        health = self._services.clusters.health(self._profile) if self._profile is not None else None
        return health is not None and health.state == "needs-login" and not self._has_ended()

    def _show_notice_and_keys(self) -> None:
        """Up to ten times a second: only what is another than before is shown anew."""
        if self.sending:
            text = line((f"◐ {self.sending}", "bold"))
        elif self._needs_login():
            text = LOG_IN
        else:
            text = notice_text(self.training_run, self.run_state, self.error)
        if not text.is_same(self._told):
            self._told = text
            self._notice.update(text)
            self.set_class(bool(text), "-noticed")
        keys = tuple(self.check_action(one.action, ()) for one in self.BINDINGS if isinstance(one, Binding))
        if keys != self._keys:
            self._keys = keys
            self.refresh_bindings()

    watch_training_run = watch_run_state = watch_error = watch_sending = _show_notice_and_keys
