"""`RunaiCluster`: a Run:ai cluster that is always there, asked over HTTPS."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TypeVar

from llmb_tui.cluster.cluster import CancelOpen, Cluster, SchedulerTrouble
from llmb_tui.cluster.failures import AuthenticationFailed, Disconnected, LoginNeeded, Unanswered, Unreachable
from llmb_tui.cluster.job import TERMINAL_STATES, Job
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.link import LinkHealth, Pulse, note
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.remote_file import JobOutput
from llmb_tui.cluster.runai.api import RunaiApi
from llmb_tui.cluster.runai.failures import ApiTrouble
from llmb_tui.cluster.runai.pod_log import RunaiOutput
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.runai.secret import AppSecret
from llmb_tui.cluster.runai.values import Claim, Credential, Event, NodePool, Project, Workload, WorkloadKind, job_of
from llmb_tui.errors import Trouble
from llmb_tui.language.states import LinkState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunaiInventory:
    """What the project has, as far as the application may ask."""

    project: Project
    node_pools: tuple[NodePool, ...] = ()
    claims: tuple[Claim, ...] = ()
    credentials: tuple[Credential, ...] = ()
    not_asked: tuple[str, ...] = ()
    """What it may not ask, a sentence each."""


class RunaiCluster(Cluster):
    """What Run:ai is asked as one application, from any thread."""

    profile: RunaiProfile

    def __init__(self, profile: RunaiProfile) -> None:
        self.profile = profile
        self.read_only = profile.read_only
        self.secret = AppSecret(profile)
        self.api = RunaiApi(profile, self.secret)
        self._state: LinkState = "connecting"
        self._connecting = threading.Lock()

    @property
    def state(self) -> LinkState:
        """By the last question."""
        return self._state

    @property
    def health(self) -> LinkHealth:
        """What is known of the last question. Never waits."""
        return LinkHealth(self.state, None, note(self.state, Pulse(), trying_again=False, next_try_s=None))

    def connect(self, prompter: Prompter | None = None) -> None:
        """Log in unless that is done; the secret is asked for where it is not known, and kept where a person says so.

        Raises LoginNeeded where nobody can give it, and what `RunaiApi` raises.
        """
        with self._connecting:
            try:
                self._ask(self.api.log_in)
            except (LoginNeeded, AuthenticationFailed):
                if prompter is None:
                    raise
                self._ask(self.api.reach)  # nobody is asked for the secret of a server that is not there
                if not self.secret.ask(prompter):
                    raise
                self._ask(lambda: self.api.log_in(just_given=True))
                self.secret.offer_to_keep(prompter)

    def asking_once(self) -> RunaiCluster:
        """The same for checks that follow each other at once: what was answered is not asked again."""
        once = copy(self)
        once.api = self.api.asking_once()
        return once

    def ping(self) -> None:
        """Ask for the project, which shows whether the login is good for anything."""
        self.project()

    def project(self) -> Project:
        """The profile's project. Raises Trouble (exit code 1) where the application sees none of its name."""
        project = self._ask(self.api.project)
        if project is None:
            raise Trouble(
                f"There is no project {self.profile.project} on {self.profile.place}, or {self.profile.app_id} may "
                "not see it.",
                "",
                "Name a project of yours in the profile, or ask for a role in it for the application.",
                exit_code=1,
            )
        return project

    def inventory(self) -> RunaiInventory:
        """What the project has to choose from. Raises Trouble where not even the project is seen."""
        project, not_asked = self.patiently(self.project), []

        def ask(question: Callable[[str], list[T]], about: str) -> tuple[T, ...]:
            try:
                return tuple(self.patiently(lambda: question(about)))
            except ApiTrouble as trouble:
                not_asked.append(f"{trouble.what} {trouble.why}".rstrip())
                return ()

        pools = ask(self.api.node_pools, project.cluster_id)
        claims = ask(self.api.claims, project.id)
        credentials = ask(self.api.credentials, project.id)
        return RunaiInventory(project, pools, claims, credentials, tuple(not_asked))

    def close(self) -> None:
        """Ask nothing more."""
        self._state = "closed"
        self.api.close()

    def look(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """These workloads as jobs; why one waits or failed is asked of its events."""
        return {
            workload_id: job_of(workload, self._events(workload), now=self.api.server_time)
            for workload_id, workload in self._ask(self.api.look, job_ids).items()
        }

    def bad_nodes(self, node_list: str) -> tuple[str, ...]:  # noqa: ARG002 - a `Cluster`'s
        """Not known: Run:ai moves a workload's pods by itself."""
        return ()

    def cancel(self, job_id: str) -> bool:
        """Delete a workload, which ends it; False for one that has ended already."""
        self.require_changes()
        workload = self._going(job_id)
        if workload is None:
            return False
        try:
            return self._ask(self.api.delete, workload.kind, job_id)
        except (Disconnected, Unanswered) as lost:
            raise CancelOpen("Run:ai", job_id, lost) from lost

    def suspend(self, job_id: str) -> None:
        """Suspend a workload: its pods end, and with them what they have not written to a volume."""
        self._change(job_id, self.api.suspend)

    def resume(self, job_id: str) -> None:
        """Resume a workload: new pods begin it again."""
        self._change(job_id, self.api.resume)

    def accounting(self, job_ids: Sequence[str]) -> str:
        """What Run:ai says of workloads that are over, and of their pods, as JSON."""
        kept = [self._ask(self.api.kept, job_id) for job_id in job_ids]
        return json.dumps(kept, indent=1) + "\n" if all(kept) else ""

    def output(self, log: JobLog, job_id: str) -> JobOutput:
        """What the workload's first pod writes."""
        return RunaiOutput(self.api, log.training, job_id)

    def _events(self, workload: Workload) -> list[Event]:
        """Those that may say why it is as it is; none where they are not told, as to who may not read them."""
        if not workload.has_reason or workload.phase == "Running":
            return []
        try:
            return self._ask(self.api.events, workload.id)
        except ApiTrouble:
            return []

    def _change(self, job_id: str, change: Callable[[WorkloadKind, str], None]) -> None:
        self.require_changes()
        workload = self._going(job_id)
        if workload is None:
            raise SchedulerTrouble(f"Workload {job_id} is over.", fix="Look at the run again.", exit_code=1)
        self._ask(change, workload.kind, job_id)

    def _going(self, job_id: str) -> Workload | None:
        workload = self._ask(self.api.look, [job_id]).get(job_id)
        return None if workload is None or workload.state in TERMINAL_STATES else workload

    def _ask(self, question: Callable[..., T], *about: object) -> T:
        """The answer, and by it the state of the connection."""
        if self.state == "closed":
            raise Disconnected(f"The connection to {self.profile.place} is closed.", may_have_run=False)
        try:
            answer = question(*about)
        except (LoginNeeded, AuthenticationFailed):
            self._turn("needs-login")
            raise
        except (Disconnected, Unanswered, Unreachable):
            self._turn("lost")
            raise
        self._turn("live")
        return answer

    def _turn(self, state: LinkState) -> None:
        if self.state != "closed":
            self._state = state


def runai_of(cluster: Cluster) -> RunaiCluster:
    """The cluster as one of this kind. Raises Trouble (exit code 1) for another."""
    if isinstance(cluster, RunaiCluster):
        return cluster
    raise Trouble(
        f"{cluster.profile.name} is no Run:ai cluster.",
        "This run is a workload, which only Run:ai can create.",
        "Choose the cluster that it was made for.",
        exit_code=1,
    )
