"""What comes from the cluster while a run is watched: two threads that post news into one inbox.

Either may hang in a command for as long as its deadline; who watches never waits for them. They end by
themselves after `stop`, and hold up nobody's exit.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from llmb_tui.cluster.failures import AuthenticationFailed, Disconnected, HostKeyChanged, HostKeyUnknown, Unreachable
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm import look
from llmb_tui.errors import Trouble
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.watch.follow import Follower, LogReplaced
from llmb_tui.watch.locallog import local_name, newest_restart
from llmb_tui.watch.state import Link

_PUMP_S = 0.2
_BETWEEN_PROOFS_S = 1.0
_AFTER_TROUBLE_S = 1.0
_SLOWEST_LOOK = 6
"""A look that fails is repeated after a pause that doubles up to this many times the normal one."""
_BATCH_TAIL = 65536
_CATCH_UP_S = 60.0

_LINK_TROUBLE = (Disconnected, Unreachable)
"""The link broke, or cannot be made for now."""
_LOGIN_TROUBLE = (AuthenticationFailed, HostKeyChanged, HostKeyUnknown)
"""Nothing that another try without a person would mend."""


@dataclass(frozen=True, slots=True)
class LinkNews:
    """The state of the connection, as the log's channel finds it."""

    link: Link
    note: str = ""


@dataclass(frozen=True, slots=True)
class JobNews:
    """What Slurm says; None if it knows no such job. `gone`: it has not known it for long, and the job is over."""

    job: Job | None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class LookFailed:
    """Slurm did not answer. It says nothing about the job."""

    note: str


@dataclass(frozen=True, slots=True)
class LogNews:
    """The copy of this restart's log has grown or was chosen."""

    restart: int


@dataclass(frozen=True, slots=True)
class LogTrouble:
    """The log cannot be copied, for now or for good."""

    note: str


@dataclass(frozen=True, slots=True)
class BatchTail:
    """The last lines of the batch script's own output."""

    text: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """A thread has ended; nothing more comes from it."""

    thread: str


News = LinkNews | JobNews | LookFailed | LogNews | LogTrouble | BatchTail | Ended
Post = Callable[[News], None]


class JobFeed(threading.Thread):
    """Looks at the job every so often, and whenever `wake` is set, until it is over."""

    def __init__(  # noqa: PLR0913 - each is a thing of its own
        self,
        session: Session,
        job_id: str,
        *,
        post: Post,
        stop: threading.Event,
        wake: threading.Event,
        every_s: float,
        gone_after_s: float,
    ) -> None:
        super().__init__(name="watch-job", daemon=True)
        self._session = session
        self._job_id = job_id
        self._post = post
        self._stop_event = stop
        self._every_s = every_s
        self._gone_after_s = gone_after_s
        self._wake = wake

    def run(self) -> None:
        """Post what each look finds."""
        try:
            self._look_on()
        finally:
            self._post(Ended(self.name))

    def _look_on(self) -> None:
        pause = self._every_s
        missing_since: float | None = None
        while True:
            try:
                job = look(self._session, [self._job_id]).get(self._job_id)
            except _LOGIN_TROUBLE as trouble:
                self._post(LinkNews("closed", trouble.what))
                return
            except Trouble as trouble:
                if self._session.state == "closed":
                    return
                self._post(LookFailed(f"{trouble.what} {trouble.why}".rstrip()))
                pause = min(2 * pause, _SLOWEST_LOOK * self._every_s)
            else:
                pause = self._every_s
                missing_since = None if job else missing_since or time.monotonic()
                gone = missing_since is not None and time.monotonic() - missing_since >= self._gone_after_s
                self._post(JobNews(job, gone))
                if gone or (job and job.finished):
                    return
            self._wake.wait(pause)
            self._wake.clear()
            if self._stop_event.is_set():
                return


class LogFeed(threading.Thread):
    """Copies the log of the newest restart, until the job is over and the copy is whole."""

    def __init__(  # noqa: PLR0913 - each is a thing of its own
        self, session: Session, spec: LaunchSpec, job_id: str, folder: Path, *, post: Post, stop: threading.Event
    ) -> None:
        super().__init__(name="watch-log", daemon=True)
        self._session = session
        self._spec = spec
        self._job_id = job_id
        self._folder = folder
        self._post = post
        self._stop_event = stop
        self._look_for_restarts = threading.Event()
        self._look_for_restarts.set()
        self._job_over = threading.Event()
        self._link: Link = "connecting"
        self._whole_since: float | None = None
        self._restart = newest_restart(folder)
        self._follower = self._follow(self._restart)

    def job_moved(self) -> None:
        """The job changed its state: there may be another log."""
        self._look_for_restarts.set()

    def job_ended(self) -> None:
        """The job is over: end when the copy is whole."""
        self._look_for_restarts.set()
        self._job_over.set()

    def catch_up(self) -> None:
        """Copy, in the caller's thread, what the newest log holds now, for at most a minute.

        Raises LogReplaced, and what a `Session` raises.
        """
        try:
            self._move_to_newest()
            self._copy_the_rest()
        finally:
            self._follower.close()

    def run(self) -> None:
        """Copy, and go on copying after every interruption that may pass."""
        try:
            while not self._stop_event.is_set() and not self._go_on():
                pass
        finally:
            self._follower.close()
            self._post(Ended(self.name))

    def _go_on(self) -> bool:
        """One turn; True if there is nothing left to do."""
        try:
            done = self._copy()
        except LogReplaced as trouble:
            self._post(LogTrouble(f"{trouble.what} {trouble.why}"))
            return True
        except _LOGIN_TROUBLE as trouble:
            self._tell("closed", trouble.what)
            return True
        except _LINK_TROUBLE as trouble:
            closed = self._session.state == "closed"
            self._tell("closed" if closed else "lost", trouble.what)
            self._stop_event.wait(_PUMP_S)  # the Session itself waits longer and longer between its tries
            return closed
        except Trouble as trouble:
            self._post(LogTrouble(f"{trouble.what} {trouble.why}".rstrip()))
            self._stop_event.wait(_AFTER_TROUBLE_S)
            return False
        self._tell("live")
        return done

    def _copy(self) -> bool:
        if self._look_for_restarts.is_set():
            self._move_to_newest()
        if self._follower.pump(_PUMP_S):
            self._whole_since = None
            self._post(LogNews(self._restart))
        elif self._job_over.is_set() and self._is_whole():
            self._post(BatchTail(self._batch_tail()))
            return True
        return False

    def _move_to_newest(self) -> None:
        """Turn to the log of a later restart, if there is one, after the rest of the one before."""
        self._look_for_restarts.clear()
        try:
            newest = self._newest_restart()
            if newest > self._restart:
                self._copy_the_rest()
                self._follower.close()
                self._restart, self._follower = newest, self._follow(newest)
                self._post(LogNews(newest))
        except BaseException:
            self._look_for_restarts.set()
            raise

    def _is_whole(self) -> bool:
        """True if the copy was found whole twice, some time apart: what a node wrote last may come late."""
        if self._follower.behind():
            self._whole_since = None
            return False
        if self._whole_since is None:
            self._whole_since = time.monotonic()
            self._stop_event.wait(_BETWEEN_PROOFS_S)
        return time.monotonic() - self._whole_since >= _BETWEEN_PROOFS_S

    def _copy_the_rest(self) -> None:
        """Copy what the log holds at this moment."""
        ends = time.monotonic() + _CATCH_UP_S
        missing = self._follower.behind()
        while missing > 0 and not self._stop_event.is_set():
            if time.monotonic() > ends:
                self._post(LogTrouble("The log is not copied whole yet."))
                return
            missing -= self._follower.pump(_PUMP_S)

    def _follow(self, restart: int) -> Follower:
        remote = f"{self._spec.task_dir}/{self._spec.log_name(self._job_id, restart)}"
        return Follower(self._session, remote, self._folder / local_name(restart))

    def _newest_restart(self) -> int:
        """The highest restart that has a log on the cluster, or the one that is known."""
        listed = self._session.run_script('cd "$1" 2> /dev/null && ls', [self._spec.task_dir]).stdout
        name = re.escape(self._spec.log_name(self._job_id, 0).removesuffix("0.out"))
        found = re.findall(rf"^{name}(\d+)\.out$", listed, re.MULTILINE)
        return max([self._restart, *map(int, found)])

    def _batch_tail(self) -> bytes:
        path = f"{self._spec.task_dir}/sbatch_{self._spec.job_name}_{self._job_id}.out"
        done = self._session.run(["tail", "-c", str(_BATCH_TAIL), path])
        return done.stdout.encode()

    def _tell(self, link: Link, note: str = "") -> None:
        if link != self._link:
            self._link = link
            self._post(LinkNews(link, note))
