"""`RunScreen`: one run from the queue to its verdict, with its log, as its monitor publishes it."""

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
from llmb_tui.ui.dialogs import ConfirmDialog
from llmb_tui.ui.text import MUTED, line, lines, notify
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.log_pane import LogPane
from llmb_tui.ui.widgets.run_header import LOG_IN, RunHeader, StageLine, job_text, notice_text, run_title
from llmb_tui.ui.widgets.run_parts import Metrics, VerdictCard
from llmb_tui.ui.widgets.status_bar import notice
from llmb_tui.ui.widgets.step_chart import StepChart
from llmb_tui.watch.logcopy import LogCopy, copies, is_removed
from llmb_tui.watch.state import ENDED, RunState

_NO_LOG = "No log yet. It begins when the job starts."
_REMOVED = "The local copy of this log was removed; its figures are kept."


class RunScreen(Screen[None]):
    """Watches one run; leaving the screen stops watching, not the run."""

    HELP = """One run: its state, its speed compared with the expected speed, and its log.
Leaving this screen only stops watching; the job continues."""
    CSS_PATH = "run.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal")]  # noqa: RUF012 - Textual's own form
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (20, "-low"), (32, "-middle"), (50, "-tall")]  # noqa: RUF012 - as above
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "submit", "Submit…", id="run.submit", tooltip="Submit the run, after a confirmation"),
        Binding("w", "withdraw", "Withdraw…", id="run.withdraw", tooltip="Withdraw the run without submitting it"),
        Binding("c", "cancel", "Cancel…", id="run.cancel", tooltip="Cancel the job, after a confirmation"),
        Binding("p", "suspend", "Suspend…", id="run.suspend", tooltip="Suspend the job and release its nodes"),
        Binding("p", "resume", "Resume…", id="run.resume", tooltip="Resume the job from the beginning"),
        Binding("r", "report", "Report", id="run.report", tooltip="Show the report of the run"),
        Binding("u", "check_submission", "Check", id="run.settle", tooltip="Check whether the cluster has the job"),
        Binding("l", "log_in", "Log in", id="run.log_in", tooltip="Log in to the cluster again"),
        Binding("t", "try_again", "Try again", id="run.try_again", tooltip="Watch the run again after an error"),
        Binding("q,escape", "dismiss", "Back", id="run.leave", tooltip="Leave; the job continues"),
    ]

    training_run: var[Run | None] = var[Run | None](None)
    run_state: var[RunState | None] = var[RunState | None](None)
    error: var[LlmbError | None] = var[LlmbError | None](None)
    """Error that stopped watching, until it is resumed."""
    progress: var[str] = var("")
    """Current step of a submission in words; empty if none is in progress."""

    header = getters.query_one(RunHeader)
    log_pane = getters.query_one(LogPane)

    @dataclass
    class StateChanged(Message):
        """The monitor has published a new state."""

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
        # Made here: the watchers may run before the screen is composed, when its keys are listed.
        self._notice = Static(id="notice", markup=False)
        self._shown_notice = Content("")
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
                None if possible and (self.progress or self._services.policy.is_read_only(self._profile)) else possible
            )
        if action == "report":
            return run is not None
        if action == "check_submission":
            return run is not None and run.submission == "unknown"
        if action == "log_in":
            return self._needs_login()
        if action == "try_again":
            return self.error is not None or self._is_locked_out()
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
        what = line("Submit ", (run_title(run), "bold"), f" on {run.cluster}, with the settings that were confirmed?")
        cost = f"Cost: {gpu_hours(run.plan.gpu_hours)} plus start-up. The cluster is checked first."
        question = lines(what, Content(""), line((cost, MUTED)))
        if await self.app.push_screen_wait(ConfirmDialog("Submit", question, "Submit", "Not now")):
            run_detached(self.app, self._submit(run))

    async def _submit(self, run: Run) -> None:
        self.error, self.progress = None, f"Connecting to {run.cluster}."
        with self._errors_shown():
            submitted = await run_in_thread(self._resume_submission, run)
            if not self.is_attached:
                from llmb_tui.wizard.update import launch_notice

                notify(self.app, launch_notice(submitted))
        if self.is_attached:
            self.progress = ""
            self._watch()

    @contextlib.contextmanager
    def _errors_shown(self) -> Iterator[None]:
        """Show an error of the block above the figures, and skip the rest of the block."""
        try:
            yield
        except LlmbError as error:
            self._show_error(error)

    def _show_error(self, error: LlmbError) -> None:
        """Show an error above the figures, or in a dialog if the screen has been left."""
        if self.is_attached:
            self.error = error
        else:
            show_failure(self.app, error)

    def _resume_submission(self, run: Run) -> Run:
        """Submit a run that was not submitted; blocks."""
        services = self._services
        request = services.request(run.cluster, run.plan, run.procedure)
        return services.launcher.resume(request, run, self._prompter, self._publish_check, self._publish_progress)

    @background(group="submission", exclusive=True)
    async def action_withdraw(self) -> None:
        from llmb_tui.launch.submit import withdraw  # loads paramiko

        if (run := self.training_run) is None:
            return
        question = lines(line("Withdraw ", (run_title(run), "bold"), "?"), line("It will never be submitted."))
        if not await self.app.push_screen_wait(ConfirmDialog("Withdraw", question, "Withdraw", "Keep")):
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
            line(run_title(run)),
            job_text(run, self.run_state or RunState(run.id)),
            Content(""),
            line((words.cancelling, MUTED)),
        )
        if await self.app.push_screen_wait(
            ConfirmDialog("Cancel", question, f"Cancel {words.job}", f"Keep {words.job}")
        ):
            run_detached(self.app, self._cancel(run))

    async def _cancel(self, run: Run) -> None:
        try:
            cancelled = await run_in_thread(lambda: self._services.feed.cancel(run, self._prompter))
        except LlmbError as error:
            await self._handle_failed_cancel(run, error)
        else:
            from llmb_tui.watch.report import cancel_words

            notify(self.app, cancel_words(run, cancelled))

    def action_suspend(self) -> None:
        self._suspend_or_resume("suspend", "It releases its nodes. After a resume, training starts from the beginning.")

    def action_resume(self) -> None:
        self._suspend_or_resume("resume", "It waits for nodes again, and training starts from the beginning.")

    @background(group="suspend", exclusive=True)
    async def _suspend_or_resume(self, verb: Literal["suspend", "resume"], consequence: str) -> None:
        if (run := self.training_run) is None:
            return
        job = run.words.named(run.job_ids[-1:])
        question = lines(line(capital(verb), " ", (job, "bold"), f" on {run.cluster}?"), line((consequence, MUTED)))
        if await self.app.push_screen_wait(ConfirmDialog(capital(verb), question, capital(verb), "Not now")):
            run_detached(self.app, self._change(run, verb, job))

    async def _change(self, run: Run, verb: Literal["suspend", "resume"], job: str) -> None:
        with self._errors_shown():
            await run_in_thread(self._services.feed.change, run, verb, self._prompter)
            if self.is_attached:
                self.error = None
            notify(self.app, f"{run.words.scheduler} was asked to {verb} {job}.")

    async def _handle_failed_cancel(self, run: Run, error: LlmbError) -> None:
        """Show why a cancel failed. If only its answer was lost, watch the run again, which finds its outcome."""
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
    async def action_check_submission(self) -> None:
        if (run := self.training_run) is None:
            return
        with self._errors_shown():
            self.training_run = settled = await run_in_thread(
                lambda: self._services.feed.settle(run.id, self._prompter)
            )
            if settled.submission == "submitted":
                self._watch()

    def _show_unknown_run(self, run: Run) -> None:
        """Show news about an unknown submission, unless it is known by now."""
        if self.training_run is not None and self.training_run.submission == "unknown":
            self.training_run = run

    def _show_progress(self, words: str) -> None:
        """Show a step of a submission, unless that has ended."""
        if self.progress:
            self.progress = words

    @on(StateChanged)
    def take_state(self, event: StateChanged) -> None:
        before, self.run_state = self.run_state, event.run_state
        has_cancel = self.training_run is not None and self.training_run.cancel is not None
        if has_cancel and (before is None or before.job != event.run_state.job):
            self._reload_run()
        now = event.run_state
        if before is None or (before.log_name, before.log_bytes) != (now.log_name, now.log_bytes):
            self.log_pane.show_newest((now.log_name, self._folder / now.log_name))

    @background(group="monitor", exclusive=True)
    async def _watch(self) -> None:
        """Load the run, and show the states of its monitor until the run ends or the screen is closed."""
        services = self._services
        prompter: Prompter | None = self._prompter  # the user has just opened the run: a login may ask for a password
        self._stop.set()  # stops an earlier watch
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
                run, prompter = await self._resolve_submission(run, stop), None
            if run.submission == "submitted":
                monitor = await run_in_thread(lambda: services.feed.monitor(run.id))
                await run_in_thread(lambda: monitor.watch(self._publish, stop, prompter))
        except InternalError as defect:
            self.error = LlmbError(
                "BackgroundWatch stopped: internal error.", defect.why, "The job is not affected. Try again."
            )
        except LlmbError as error:
            self.error = error
            await self._show_local_copy()

    async def _resolve_submission(self, run: Run, stop: threading.Event) -> Run:
        """Wait until the submission is known, and return the run; unchanged if the cluster cannot be queried."""
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
        """Show the local record of the run if the cluster cannot be queried."""
        run = self.training_run
        if run is not None and self.run_state is None:
            self.run_state = (await run_in_thread(lambda: self._services.feed.record(run.id))).state

    @background(group="read-again", exclusive=True)
    async def _reload_run(self) -> None:
        """Load the run again: the scheduler's state may have resolved an unconfirmed cancel."""
        with contextlib.suppress(LlmbError):
            self.training_run = await run_in_thread(self._services.runs.load, self._run_id)

    def _publish_run(self, run: Run, why: str) -> None:
        """Show the run, and why its submission is still unknown; called in a thread."""
        self.call_later(self._show_unknown_run, replace(run, note=why))

    def _publish_progress(self, words: str) -> None:
        """Show the current step of a submission; called in a thread."""
        self.call_later(self._show_progress, words)

    def _publish_check(self, report: Preflight) -> None:
        self._publish_progress(f"Checking the cluster: {report.checks[-1].title}.")

    def _publish(self, run_state: RunState) -> None:
        """Pass a state to the screen; called in the monitor's thread."""
        self.post_message(self.StateChanged(run_state))

    def _log_files(self) -> list[tuple[str, Path]]:
        """Newest log, logs before a restart or a replacement, and the submitted script."""
        names = [copy.name for copy in reversed(copies(self._folder) or [LogCopy()])]
        return [*((name, self._folder / name) for name in names), ("script", self._folder / "script.sh")]

    def _is_active(self, run: Run) -> bool:
        """Whether any job of the run is active."""
        others = self.run_state.others if self.run_state is not None else ()
        return bool(run.job_ids) and not (self._has_ended() and all(other.finished for other in others))

    def _has_ended(self) -> bool:
        state = self.run_state
        return state is not None and (state.stage in ENDED or (state.job is not None and state.job.finished))

    def _is_possible(self, action: str, run: Run) -> bool:
        """Whether an action that changes the run fits its present state."""
        if action in ("submit", "withdraw"):
            return run.submission == "intended"
        if action == "cancel":
            return self._is_active(run)
        can = self._profile is not None and self._profile.can_suspend and self._is_active(run)
        suspended = self.run_state is not None and self.run_state.stage == "suspended"
        return can and suspended == (action == "resume")

    def _is_locked_out(self) -> bool:
        """Whether the monitor stopped because a login failed; the user may try again."""
        return not self._has_ended() and self.run_state is not None and self.run_state.link == "closed"

    def _needs_login(self) -> bool:
        """Whether the connection broke and needs a login by the user."""
        health = self._services.clusters.health(self._profile) if self._profile is not None else None
        return health is not None and health.state == "needs-login" and not self._has_ended()

    def _show_notice_and_keys(self) -> None:
        """Update notice and keys if they have changed; called up to ten times a second."""
        if self.progress:
            text = line((f"◐ {self.progress}", "bold"))
        elif self._needs_login():
            text = LOG_IN
        else:
            text = notice_text(self.training_run, self.run_state, self.error)
        if not text.is_same(self._shown_notice):
            self._shown_notice = text
            self._notice.update(text)
            self.set_class(bool(text), "-noticed")
        keys = tuple(self.check_action(key.action, ()) for key in self.BINDINGS if isinstance(key, Binding))
        if keys != self._keys:
            self._keys = keys
            self.refresh_bindings()

    watch_training_run = watch_run_state = watch_error = watch_progress = _show_notice_and_keys
