"""`RunaiCluster`: a cluster with Run:ai, which is reached over HTTPS."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TypeVar

from llmb_tui.cluster.cluster import CancelUnconfirmedError, Cluster, SchedulerError
from llmb_tui.cluster.failures import (
    AuthenticationError,
    DisconnectedError,
    LoginNeededError,
    NoAnswerError,
    UnreachableError,
)
from llmb_tui.cluster.job import TERMINAL_STATES, Job
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.link import LinkHealth, Pulse, note
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.remote_file import JobOutput
from llmb_tui.cluster.runai.api import RunaiApi
from llmb_tui.cluster.runai.failures import ApiError
from llmb_tui.cluster.runai.pod_log import RunaiOutput
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.runai.secret import AppSecret
from llmb_tui.cluster.runai.values import (
    Claim,
    Credential,
    Event,
    NodePool,
    Project,
    Workload,
    WorkloadKind,
    job_from_workload,
)
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import LinkState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunaiInventory:
    """Project and choices that the application may read."""

    project: Project
    node_pools: tuple[NodePool, ...] = ()
    claims: tuple[Claim, ...] = ()
    credentials: tuple[Credential, ...] = ()
    not_asked: tuple[str, ...] = ()
    """One sentence for each list that the application may not read."""


class RunaiCluster(Cluster):
    """A `Cluster` with Run:ai, with the permissions of one application. For use by any thread."""

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
        """State after the last request."""
        return self._state

    @property
    def health(self) -> LinkHealth:
        """Health after the last request. Never waits."""
        return LinkHealth(self.state, None, note(self.state, Pulse(), trying_again=False, next_try_s=None))

    def connect(self, prompter: Prompter | None = None) -> None:
        """Log in unless logged in. Ask for an unknown secret, and store it if the user agrees.

        Raises LoginNeededError if the secret is unknown, and the errors of `RunaiApi`.
        """
        with self._connecting:
            try:
                self._ask(self.api.log_in)
            except (LoginNeededError, AuthenticationError):
                if prompter is None:
                    raise
                self._ask(self.api.reach)  # do not ask for the secret of a server that does not answer
                if not self.secret.ask(prompter):
                    raise
                self._ask(lambda: self.api.log_in(is_new_secret=True))
                self.secret.offer_to_keep(prompter)

    def with_answer_cache(self) -> RunaiCluster:
        """Return this cluster with a cache of answers, for a series of checks."""
        cached = copy(self)
        cached.api = self.api.with_answer_cache()
        return cached

    def ping(self) -> None:
        """Read the project, which shows that the login has its permissions."""
        self.project()

    def project(self) -> Project:
        """Read the profile's project. Raises LlmbError (exit code 1) if the application does not see it."""
        project = self._ask(self.api.project)
        if project is None:
            raise LlmbError(
                f"The project {self.profile.project} was not found on {self.profile.place}.",
                f"It does not exist, or {self.profile.app_id} has no role in it.",
                "Set one of your projects in the profile, or ask for a role of the application in this project.",
                exit_code=1,
            )
        return project

    def inventory(self) -> RunaiInventory:
        """Read the choices of the project. Raises LlmbError if the application does not see the project."""
        project, not_asked = self.retry_after_disconnect(self.project), []

        def ask(question: Callable[[str], list[T]], about: str) -> tuple[T, ...]:
            try:
                return tuple(self.retry_after_disconnect(lambda: question(about)))
            except ApiError as error:
                not_asked.append(f"{error.what} {error.why}".rstrip())
                return ()

        pools = ask(self.api.node_pools, project.cluster_id)
        claims = ask(self.api.claims, project.id)
        credentials = ask(self.api.credentials, project.id)
        return RunaiInventory(project, pools, claims, credentials, tuple(not_asked))

    def close(self) -> None:
        """Send no more requests."""
        self._state = "closed"
        self.api.close()

    def query_jobs(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """Read these workloads as jobs, with the reasons of waits and failures from their events."""
        return {
            workload_id: job_from_workload(workload, self._events(workload), now=self.api.server_time)
            for workload_id, workload in self._ask(self.api.read_workloads, job_ids).items()
        }

    def bad_nodes(self, node_list: str) -> tuple[str, ...]:  # noqa: ARG002 - part of `Cluster`
        """Return none: Run:ai moves a workload's pods by itself."""
        return ()

    def cancel(self, job_id: str) -> bool:
        """Delete a workload, which ends it; False if it has already ended."""
        self.require_changes()
        workload = self._active(job_id)
        if workload is None:
            return False
        try:
            return self._ask(self.api.delete, workload.kind, job_id)
        except (DisconnectedError, NoAnswerError) as lost:
            raise CancelUnconfirmedError("Run:ai", job_id, lost) from lost

    def suspend(self, job_id: str) -> None:
        """Suspend a workload: its pods end, and lose all files outside of volumes."""
        self._change(job_id, self.api.suspend)

    def resume(self, job_id: str) -> None:
        """Resume a workload: new pods start it from its beginning."""
        self._change(job_id, self.api.resume)

    def accounting(self, job_ids: Sequence[str]) -> str:
        """Records of ended workloads and their pods, as JSON."""
        records = [self._ask(self.api.record, job_id) for job_id in job_ids]
        return json.dumps(records, indent=1) + "\n" if all(records) else ""

    def output(self, log: JobLog, job_id: str) -> JobOutput:
        """Open the log of the workload's first pod."""
        return RunaiOutput(self.api, log.training, job_id)

    def _events(self, workload: Workload) -> list[Event]:
        """Events that may explain the state; none if the application may not read them."""
        if not workload.has_reason or workload.phase == "Running":
            return []
        try:
            return self._ask(self.api.events, workload.id)
        except ApiError:
            return []

    def _change(self, job_id: str, change: Callable[[WorkloadKind, str], None]) -> None:
        self.require_changes()
        workload = self._active(job_id)
        if workload is None:
            raise SchedulerError(f"Workload {job_id} has ended.", fix="Look at the run again.", exit_code=1)
        self._ask(change, workload.kind, job_id)

    def _active(self, job_id: str) -> Workload | None:
        workload = self._ask(self.api.read_workloads, [job_id]).get(job_id)
        return None if workload is None or workload.state in TERMINAL_STATES else workload

    def _ask(self, question: Callable[..., T], *arguments: object) -> T:
        """Send a request, and set the state of the connection by its outcome."""
        if self.state == "closed":
            raise DisconnectedError(f"The connection to {self.profile.place} is closed.", may_have_run=False)
        try:
            answer = question(*arguments)
        except (LoginNeededError, AuthenticationError):
            self._set_state("needs-login")
            raise
        except (DisconnectedError, NoAnswerError, UnreachableError):
            self._set_state("lost")
            raise
        self._set_state("live")
        return answer

    def _set_state(self, state: LinkState) -> None:
        if self.state != "closed":
            self._state = state


def runai_of(cluster: Cluster) -> RunaiCluster:
    """Return a Run:ai cluster with its own type. Raises LlmbError (exit code 1) for other clusters."""
    if isinstance(cluster, RunaiCluster):
        return cluster
    raise LlmbError(
        f"{cluster.profile.name} is not a Run:ai cluster.",
        "This run is a workload, which only Run:ai can create.",
        "Choose the cluster that the run was made for.",
        exit_code=1,
    )
