"""`JobPoller`: asks the scheduler about all followed jobs of a cluster, at intervals.

The interval is 10 seconds while something changes. It is longer while nothing changes, while jobs only wait, while the
terminal is not in focus, and after a query that failed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from llmb_tui.cluster.call_rate import CallRate
from llmb_tui.cluster.cluster import Cluster, PartialAnswerError
from llmb_tui.cluster.failures import DisconnectedError, LoginNeededError, UnreachableError
from llmb_tui.cluster.job import Job
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import LinkState
from llmb_tui.watch.events import LOGIN_ERRORS, Ended, EventSink, JobUpdated, LinkChanged, PollFailed, WatchEvent
from llmb_tui.watch.timing import Timing

GONE_AFTER_S = 60.0
"""A job that Slurm has not known for this long, although Slurm answers, has ended."""
JOB_ENDED = Ended("watch-job")

_RUNNING_LONGEST, _LONGEST = 3, 6
"""Longest pauses, as multiples of the normal one: while a job runs and the terminal is in focus, and in any case."""
_SLOWER = 1.5
SOONEST = 0.1
"""Shortest pause between two requested queries, as a fraction of the normal one."""


@dataclass(eq=False)
class Following:
    """One follower of a job, until `end` is called or the job ends."""

    poller: JobPoller
    job_id: str
    post: EventSink
    gone_after_s: float
    ended: bool = False
    """Nothing more is posted, whether the follower or the job ended it."""

    def end(self) -> None:
        """Stop following; nothing is posted after this."""
        self.poller._unfollow(self)


@dataclass(eq=False)
class _FollowedJob:
    """A followed job, with its last known state."""

    followers: list[Following] = field(default_factory=list)
    job: Job | None = None
    missing_since: float | None = None


class JobPoller:
    """Asks about the jobs of one cluster, in one thread that runs while there are followers. Thread-safe.

    That thread posts a `JobUpdated` after each query, a `PollFailed` after one that failed, and `JOB_ENDED` as the last
    event.
    """

    def __init__(self, cluster: Cluster, *, every_s: float = Timing().look_every_s) -> None:
        self._cluster = cluster
        self._every_s = every_s
        self._changed = threading.Condition()
        self._followed: dict[str, _FollowedJob] = {}
        self._thread: threading.Thread | None = None
        self._focused = True
        self._soon = False
        self._pause_s = every_s
        self._looked_at = float("-inf")
        self._calls = CallRate()

    def follow(self, job_id: str, post: EventSink, *, gone_after_s: float = GONE_AFTER_S) -> Following:
        """Post the result of every query about this job, beginning with the last known state.

        `post` is called while the poller is locked, so it must hand the event on and return.
        """
        following = Following(self, job_id, post, gone_after_s)
        with self._changed:
            followed = self._followed.setdefault(job_id, _FollowedJob())
            followed.followers.append(following)
            if followed.job is not None:
                post(JobUpdated(followed.job))
            else:
                self._look_now()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="poller", daemon=True)
                self._thread.start()
        return following

    def follow_all(
        self, job_ids: Iterable[str], post: EventSink, *, gone_after_s: float = GONE_AFTER_S
    ) -> list[Following]:
        """Follow several jobs; the next query asks about all of them."""
        with self._changed:
            return [self.follow(job_id, post, gone_after_s=gone_after_s) for job_id in job_ids]

    def poll_soon(self) -> None:
        """Query soon: a job was cancelled, or its log shows that it has advanced."""
        with self._changed:
            self._look_now()

    def set_focused(self, focused: bool) -> None:
        """Set whether the terminal is in focus; gaining focus starts a query."""
        with self._changed:
            if focused and not self._focused:
                self._look_now()
            self._focused = focused

    @property
    def state(self) -> LinkState:
        """State of the connection to the cluster."""
        return self._cluster.state

    @property
    def calls_last_minute(self) -> int:
        """Number of remote commands about Slurm's jobs in the last 60 seconds."""
        return self._calls.last_minute

    def close(self) -> None:
        """End all followings."""
        with self._changed:
            self._end_all()

    def _unfollow(self, following: Following) -> None:
        with self._changed:
            following.ended = True
            followed = self._followed.get(following.job_id)
            if followed is not None and following in followed.followers:
                followed.followers.remove(following)
                if not followed.followers:
                    del self._followed[following.job_id]
                self._changed.notify_all()

    def _run(self) -> None:
        while (job_ids := self._wait_for_turn()) is not None:
            self._turn(job_ids)

    def _wait_for_turn(self) -> list[str] | None:
        """Wait for the next query, and return the jobs to ask about; None if there are none any more."""
        with self._changed:
            while self._followed and (wait := self._due() - time.monotonic()) > 0:
                self._changed.wait(wait)
            if not self._followed:
                self._thread = None
                return None
            self._soon = False
            return list(self._followed)

    def _turn(self, job_ids: list[str]) -> None:
        try:
            jobs, silent = self._look(job_ids)
        except LOGIN_ERRORS as error:
            self._shut_out(error)
        except LlmbError as error:
            self._failed(error)
        else:
            self._learn(job_ids, jobs, silent)
        finally:
            self._looked_at = time.monotonic()

    def _look(self, job_ids: list[str]) -> tuple[dict[str, Job], str]:
        """Current jobs, merged with earlier states; and the reason why Slurm could not answer in full."""
        self._calls.count()
        silent = ""
        try:
            jobs = self._cluster.query_jobs(job_ids)
        except PartialAnswerError as error:
            jobs = {job_id: error.queued[job_id] for job_id in job_ids if job_id in error.queued}
            silent = f"{error.what} {error.why}"
        with self._changed:
            earlier = {job_id: followed.job for job_id, followed in self._followed.items()}
        return {job_id: self._with_past(job, earlier.get(job_id)) for job_id, job in jobs.items()}, silent

    def _with_past(self, job: Job, before: Job | None) -> Job:
        """Add earlier facts: accounting has no restarts, and a job that is queued again no longer has its nodes."""
        if before is not None:
            job = replace(job, restarts=max(job.restarts, before.restarts), bad_nodes=before.bad_nodes)
        past = before.node_list if before is not None else ""
        failed = job.state in ("NODE_FAIL", "BOOT_FAIL") and (before is None or before.state != job.state)
        again = before is not None and job.restarts > before.restarts
        nodes = past if again and not failed else job.node_list or past  # a restarted job has other nodes by now
        if not nodes or not (failed or again):
            return job
        try:
            self._calls.count()
            return replace(job, bad_nodes=self._cluster.bad_nodes(nodes))
        except LlmbError:
            return job  # the name of the node is worth one query only

    def _learn(self, job_ids: list[str], jobs: dict[str, Job], silent: str) -> None:
        with self._changed:
            changed = False
            for job_id in job_ids:
                followed = self._followed.get(job_id)
                if followed is not None:
                    changed |= self._tell(followed, jobs.get(job_id), silent)
            running = any(followed.job and not followed.job.waiting for followed in self._followed.values())
            self._pause_s = next_pause_s(
                self._pause_s, self._every_s, changed=changed, running=running, focused=self._focused
            )

    def _tell(self, followed: _FollowedJob, job: Job | None, silent: str) -> bool:
        """Post the result of a query about one job, or why there is none; True if the job's state changed."""
        changed = job is not None and _moved(followed.job, job)
        now = time.monotonic()
        followed.missing_since = None if job else followed.missing_since or now
        followed.job = job or followed.job
        for following in list(followed.followers):
            missing_s = now - followed.missing_since if followed.missing_since else -1.0
            gone = missing_s >= following.gone_after_s
            open_question = silent and job is None and not gone
            following.post(PollFailed(silent) if open_question else JobUpdated(job, gone))
            if gone or (job and job.finished):
                following.post(JOB_ENDED)
                self._unfollow(following)
        return changed

    def _failed(self, error: LlmbError) -> None:
        with self._changed:
            if self._cluster.state == "closed":
                self._end_all()
                return
            self._pause_s = min(self._pause_s * 2, self._every_s * _LONGEST)
            slurm = not isinstance(error, (DisconnectedError, UnreachableError, LoginNeededError))
            self._post_to_all(PollFailed(f"{error.what} {error.why}".rstrip(), slurm))

    def _shut_out(self, error: LlmbError) -> None:
        """End all followings: another login without a user would fail as well, and might lock the account."""
        with self._changed:
            self._post_to_all(LinkChanged("closed", error.what))
            self._end_all()

    def _end_all(self) -> None:
        self._post_to_all(JOB_ENDED)
        for followed in self._followed.values():
            for following in followed.followers:
                following.ended = True
        self._followed.clear()
        self._changed.notify_all()

    def _post_to_all(self, news: WatchEvent) -> None:
        for followed in self._followed.values():
            for following in followed.followers:
                following.post(news)

    def _look_now(self) -> None:
        self._soon = True
        self._pause_s = self._every_s
        self._changed.notify_all()

    def _due(self) -> float:
        return self._looked_at + (self._every_s * SOONEST if self._soon else self._pause_s)


def next_pause_s(pause_s: float, every_s: float, *, changed: bool, running: bool, focused: bool) -> float:
    """Pause after a query, computed from the previous pause and the normal one."""
    longest_s = every_s * (_RUNNING_LONGEST if running and focused else _LONGEST)
    if not focused:
        return longest_s
    return every_s if changed else min(pause_s * _SLOWER, longest_s)


def _moved(before: Job | None, job: Job) -> bool:
    """Whether a job has a visible change; its elapsed time does not count."""
    return before is None or replace(before, elapsed_s=None) != replace(job, elapsed_s=None)
