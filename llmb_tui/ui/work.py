"""`ClusterWork`: what the wizard asks of a cluster, in threads. Each thing learned is one `Learned` message."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textual.message import Message
from textual.screen import Screen

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.plan.plan import Plan
from llmb_tui.services import Draft, Services
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.found import Doing, Subject
from llmb_tui.ui.launching import Launching

if TYPE_CHECKING:
    from llmb_tui.launch.install import StepState
    from llmb_tui.plan.selection import Procedure

Tell = Callable[..., None]


class Learned(Message):
    """A job on a cluster, for a subject, has begun, has learned something, or is over."""

    def __init__(self, subject: Subject, job: Doing, changes: dict[str, Any], over: bool = False) -> None:
        super().__init__()
        self.subject = subject
        self.job = job
        self.changes = changes
        """Fields of `Found` and their new values."""
        self.over = over


class ClusterWork:
    """Looks, installs, renders and submits. A newer look replaces an older one."""

    def __init__(self, screen: Screen[None], services: Services) -> None:
        self._screen = screen
        self._services = services
        self._stop = threading.Event()
        self._looks = 0
        self._asked_commits: set[tuple[object, ...]] = set()

    def look(self, profile: ClusterProfile, plan: Plan, procedure: Procedure, quiet: bool = False) -> None:
        """Connect, check the cluster for the plan, and see what of its install is there.

        A quiet look was not asked for by anybody: a connection that fails is then left for the person to make.
        """
        self._looks += 1
        number = self._looks
        subject = Subject(profile, plan.selection, procedure)
        self._start("look", subject, lambda tell: self._look(subject, plan, quiet, tell), lambda: number == self._looks)

    def install(self, profile: ClusterProfile, plan: Plan, procedure: Procedure) -> None:
        """Run the install steps that are not done."""
        subject = Subject(profile, plan.selection, procedure)
        self._start("install", subject, lambda tell: self._install(subject, plan, tell))

    def render(self, profile: ClusterProfile, plan: Plan, procedure: Procedure) -> None:
        """Make the exact batch script, or the exact command."""
        subject = Subject(profile, plan.selection, procedure)
        self._start("render", subject, lambda tell: tell(draft=self._services.draft(profile.name, plan, procedure)))

    def submit(self, profile: ClusterProfile, draft: Draft, procedure: Procedure) -> None:
        """Submit a draft that was shown and agreed to."""
        subject = Subject(profile, draft.run.plan.selection, procedure)
        self._start("submit", subject, lambda tell: self._submit(draft, tell))

    def stop(self) -> None:
        """Stop following what runs; what runs on the cluster goes on there."""
        self._stop.set()

    def _start(
        self, job: Doing, subject: Subject, act: Callable[[Tell], None], wanted: Callable[[], bool] = lambda: True
    ) -> None:
        def post(changes: dict[str, Any], over: bool = False) -> None:
            if wanted():
                self._screen.post_message(Learned(subject, job, changes, over))

        def run() -> None:
            failed: dict[str, Any] = {}
            try:
                post({"trouble": None, "failed": None})
                act(lambda **changes: post(changes))
            except Trouble as trouble:
                failed = {"trouble": trouble, "failed": job}
            finally:
                post(failed, over=True)

        self._screen.run_worker(in_daemon(run), group=job, exit_on_error=False)

    def _look(self, subject: Subject, plan: Plan, quiet: bool, tell: Tell) -> None:
        name, procedure = subject.profile.name, subject.procedure
        tell(link="connecting", preflight=None, checked=None, steps=())
        session = self._services.session(name)
        try:
            session.connect(attended=not quiet)
            session.run(("true",))
        except Trouble:
            tell(link="unknown" if quiet else "failed")
            if quiet:
                return
            raise
        tell(link="connected", banner=session.banner)
        tell(preflight=self._services.preflight(name, plan, lambda checked: tell(checked=checked), procedure))
        tell(steps=self._services.installer(name, plan, procedure).look())
        self._look_for_commits(subject, plan, tell)

    def _look_for_commits(self, subject: Subject, plan: Plan, tell: Tell) -> None:
        """So that it is known before anybody chooses the published procedure, whose preflight looks for them itself."""
        chosen = subject.selection
        asked = (subject.profile, chosen.workload, chosen.release, chosen.gpu)
        if subject.procedure == "direct" and asked not in self._asked_commits:
            self._asked_commits.add(asked)
            try:
                tell(commits=self._services.commits(subject.profile.name, plan))
            except Trouble:  # what was asked for is known without it
                self._asked_commits.discard(asked)

    def _install(self, subject: Subject, plan: Plan, tell: Tell) -> None:
        def on_change(steps: tuple[StepState, ...]) -> None:
            tell(steps=steps)

        installer = self._services.installer(subject.profile.name, plan, subject.procedure)
        tell(steps=installer.run(on_change, self._stop))

    def _submit(self, draft: Draft, tell: Tell) -> None:
        launching = Launching(draft.run, time.monotonic())
        tell(launching=launching)
        try:
            run = self._services.submit(draft, lambda said: tell(launching=replace(launching, said=said)))
            tell(launched=run)
        except Trouble:
            # A run that was refused is over: who tries again does so with another id, and so with another script.
            if self._services.runs().load(draft.run.id).submission in ("refused", "withdrawn"):
                tell(draft=None)
            raise
        finally:
            tell(launching=None)
