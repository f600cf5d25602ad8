"""`LogFeed`: copies the logs of a job, one for each start, and posts events about them.

A log may be replaced. If all starts of a job write to one file, Slurm truncates it at each start, unless the site has
configured append mode; a log may also be rotated, cut short or removed. The bytes that were copied are kept. The new
log is copied into another file, from its first byte.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from llmb_tui.cluster.cluster import SchedulerError
from llmb_tui.cluster.failures import DisconnectedError, LoginNeededError, StreamPreemptedError, UnreachableError
from llmb_tui.cluster.remote_file import JobOutput, OutputUnreachableError, UnreadableFileError
from llmb_tui.errors import LlmbError
from llmb_tui.language.instants import local_clock
from llmb_tui.language.quantities import count, duration
from llmb_tui.language.states import LinkState, RunLink
from llmb_tui.watch.events import LOGIN_ERRORS, BatchTail, Ended, EventSink, LinkChanged, LogGrown, LogProblem
from llmb_tui.watch.follow import Follower, LogMissingError, LogReplacedError
from llmb_tui.watch.logcopy import LogCopy, newest_copy

PUMP_S = 0.5
"""Interval at which a request to stop is noticed, seconds. New data is copied immediately."""
_FIRST_LINK_PAUSE_S, _LONGEST_LINK_PAUSE_S = 0.2, 5.0
"""Pauses after a broken connection, seconds. They grow only while the cluster itself answers: otherwise its object
increases the pause between its attempts to connect."""
BETWEEN_PROOFS_S = 1.0
AFTER_ERROR_S = 1.0
"""Pauses between two proofs that a log is complete, and after an error, seconds."""
_LOOK_EVERY_S = 5.0
"""Interval of searching for the log of a restart that Slurm has already counted."""
_BATCH_TAIL = 65536
CATCH_UP_S = 60.0
"""Time in which a log must be copied to its end after its job has ended, seconds."""
PATIENCE_S = 60.0
"""If a log stays unreadable for this long after its job has ended, copying ends without it."""
_GOOD_NEWS_S = 60.0
"""Duration of the message that a lost connection works again."""

_LINK_ERRORS = (DisconnectedError, UnreachableError, LoginNeededError)
"""The connection broke, or cannot be made at present."""


class LogFeed(threading.Thread):
    """Copies the logs of all starts, one after the other, until the job has ended and the newest copy is complete.

    If a log stays out of reach for `patience_s` after the end of the job, copying ends without a `BatchTail`.
    """

    def __init__(  # noqa: PLR0913 - a setting with a default
        self,
        output: JobOutput,
        folder: Path,
        *,
        state: Callable[[], LinkState],
        post: EventSink,
        stop: threading.Event,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`state`: returns the state of the connection to the cluster."""
        super().__init__(name="watch-log", daemon=True)
        self._output = output
        self._state = state
        self._folder = folder
        self._post = post
        self._stop_event = stop
        self._look_for_restarts = threading.Event()
        self._look_for_restarts.set()
        self._restarts = 0
        self._next_look = 0.0
        self._job_over = threading.Event()
        self._link: RunLink = "connecting"
        self._lost_at = 0.0
        self._link_pause_s = _FIRST_LINK_PAUSE_S
        self._good_news_until: float | None = None
        self._with_errors = False
        self._whole_since: float | None = None
        self._patience_s = patience_s
        self._unreadable_since: float | None = None
        """Time since which the log is unreadable; only set after the end of the job."""
        self._copy = newest_copy(folder)
        self._follower = self._follow(self._copy)

    def job_moved(self, restarts: int, *, over: bool = False) -> None:
        """Note a change of the job's state. `restarts`: number of restarts by Slurm; each may have another log.

        `over`: the job has ended, and the feed ends when the copy is complete.
        """
        self._restarts = restarts
        self._look_for_restarts.set()
        if over:
            self._job_over.set()

    def catch_up(self, *, job_over: bool) -> None:
        """Copy the current content of the newest log in the caller's thread, for at most a minute.

        If the job has ended, post the end of the batch script's output too.

        Raises LogReplacedError, and whatever the cluster's queries raise.
        """
        try:
            try:
                whole = self._move_on() and self._copy_the_rest()
            except LogReplacedError as replaced:
                self._begin_anew(replaced)
                whole = self._move_on() and self._copy_the_rest()
            if job_over and whole:
                self._post(BatchTail(self._output.other_output(_BATCH_TAIL)))
        finally:
            self._follower.close()

    def run(self) -> None:
        """Copy until the log is complete, through every interruption that may pass."""
        try:
            while not self._stop_event.is_set() and not self._turn():
                pass
        finally:
            self._follower.close()
            self._post(Ended(self.name))

    def _turn(self) -> bool:
        """Do one turn of copying; True if copying is finished."""
        try:
            is_whole = self._copy_on()
        except LogReplacedError as replaced:
            self._begin_anew(replaced)
        except LOGIN_ERRORS as error:
            self._tell("closed", error.what)
            return True
        except StreamPreemptedError:
            pass
        except OutputUnreachableError as error:
            self._tell_live()
            self._say(error)
            if self._job_over.is_set():
                return True
            self._stop_event.wait(AFTER_ERROR_S)
        except (UnreadableFileError, SchedulerError) as error:  # the cluster answered, and may refuse again
            self._tell_live()
            return self._wait_for_log(error)
        except _LINK_ERRORS as error:
            self._unreadable_since = None
            return self._wait_for_link(error)
        except LlmbError as error:
            self._say(error)
            self._stop_event.wait(AFTER_ERROR_S)
        else:
            self._unreadable_since = None
            self._link_pause_s = _FIRST_LINK_PAUSE_S
            self._tell_live()
            return is_whole
        return False

    def _copy_on(self) -> bool:
        awaited = self._restarts > self._copy.restart and time.monotonic() >= self._next_look
        if awaited or self._look_for_restarts.is_set():
            self._move_on()
        if self._follower.copy_available(PUMP_S):
            self._whole_since = None
            self._with_errors = False
            self._post(LogGrown(self._copy))
        elif self._job_over.is_set() and self._is_whole() and not self._look_for_restarts.is_set():
            self._post(BatchTail(self._output.other_output(_BATCH_TAIL)))
            return True
        elif self._with_errors and self._follower.follows:
            self._with_errors = False
            self._post(LogGrown(self._copy))
        return False

    def _move_on(self) -> bool:
        """Advance to the logs of later starts, if there are any, each after the rest of the previous log.

        False if that rest is not complete yet: a log is never opened again, so it is left only when it is complete.
        """
        self._look_for_restarts.clear()
        self._next_look = time.monotonic() + _LOOK_EVERY_S
        self._follower.retry_soon()
        try:
            restarts = [] if self._output.one_for_all else self._output.starts()
            for restart in (restart for restart in restarts if restart > self._copy.restart):
                still_exists = self._copy.restart in restarts
                if still_exists and not self._copy_the_rest():
                    self._look_for_restarts.set()
                    return False
                self._turn_to(LogCopy(restart), "" if still_exists else self._removed())
        except BaseException:
            self._look_for_restarts.set()
            raise
        return True

    def _begin_anew(self, replaced: LogReplacedError) -> None:
        """Start a new copy. A log of all starts is then the next start's, even if Slurm has not counted that yet."""
        restart, part = self._copy
        copied = count(self._follower.copied)
        kept = (
            f"`{self._copy.name}` keeps its {copied} copied bytes; bytes that followed them in the old log may be lost."
        )
        if self._output.one_for_all:
            note = f"The job's log began anew, which is usual when a job is started again. {kept}"
            self._turn_to(LogCopy(max(restart + 1, self._restarts)), note)
        else:
            self._turn_to(LogCopy(restart, part + 1), f"{replaced.what} {replaced.why} {kept}")

    def _removed(self) -> str:
        """Message about an old log that was removed before it was copied to its end; empty if nothing was copied."""
        copied = self._follower.copied
        return (
            f"The log of an earlier start was removed on the cluster; {count(copied)} bytes are copied."
            if copied
            else ""
        )

    def _turn_to(self, copy: LogCopy, note: str = "") -> None:
        self._follower.close()
        self._copy, self._follower = copy, self._follow(copy)
        self._post(LogGrown(copy, note))

    def _is_whole(self) -> bool:
        """Whether the copy was found complete twice, some time apart, because a node's last writes may arrive late."""
        if self._behind():
            self._whole_since = None
            return False
        if self._whole_since is None:
            self._whole_since = time.monotonic()
            self._stop_event.wait(BETWEEN_PROOFS_S)
        return time.monotonic() - self._whole_since >= BETWEEN_PROOFS_S

    def _copy_the_rest(self) -> bool:
        """Copy the current content of the log; False if that takes too long."""
        ends = time.monotonic() + CATCH_UP_S
        missing = self._behind()
        while missing > 0 and not self._stop_event.is_set():
            if time.monotonic() > ends:
                self._post(LogProblem("The log is not completely copied yet."))
                return False
            missing -= self._follower.copy_available(PUMP_S)
        return missing <= 0

    def _behind(self) -> int:
        """Missing bytes, as `Follower.behind` counts them; 0 for a log that is permanently gone."""
        try:
            return self._follower.behind()
        except LogMissingError:
            if self._output.may_come_back:
                raise
            return 0

    def _follow(self, copy: LogCopy) -> Follower:
        return Follower(self._output.log(copy.restart), self._folder / copy.name)

    def _wait_for_log(self, error: UnreadableFileError | SchedulerError) -> bool:
        """Report why the log cannot be read. True if the job has ended and the patience is used up."""
        if self._job_over.is_set():
            self._unreadable_since = self._unreadable_since or time.monotonic()
            if time.monotonic() - self._unreadable_since >= self._patience_s:
                self._post(replace(log_problem(error), given_up=True))
                return True
        self._say(error)
        self._stop_event.wait(AFTER_ERROR_S)
        return False

    def _wait_for_link(self, error: LlmbError) -> bool:
        """Report that the connection is lost, and since when. True if it is closed permanently."""
        state = self._state()
        if state == "closed":
            self._tell("closed", error.what)
            return True
        if self._link != "lost":
            self._lost_at = time.monotonic()
            so_far = f"The {count(self._follower.copied)} copied bytes of the log are kept; the rest is copied later."
            self._tell("lost", f"{error.what} Since {local_clock(time.time())}. {so_far}")
        self._follower.retry_soon()
        self._stop_event.wait(self._link_pause_s)
        grown_s = min(2 * self._link_pause_s, _LONGEST_LINK_PAUSE_S)
        self._link_pause_s = grown_s if state == "live" else _FIRST_LINK_PAUSE_S
        return False

    def _tell_live(self) -> None:
        """Report once that the connection works, and after a loss, the consequence for the log."""
        if self._link == "lost":
            lasted = max(1.0, time.monotonic() - self._lost_at)
            note = f"Connected again at {local_clock(time.time())}, after {duration(lasted)}."
            if self._follower.follows:
                note += " Copying of the log continues after the last copied byte."
            self._tell("live", note)
            self._good_news_until = time.monotonic() + _GOOD_NEWS_S
        elif self._link != "live":
            self._tell("live")
        elif self._good_news_until is not None and time.monotonic() >= self._good_news_until:
            self._good_news_until = None
            self._post(LinkChanged("live"))

    def _tell(self, link: RunLink, note: str = "") -> None:
        if link != self._link:
            self._link = link
            self._post(LinkChanged(link, note))

    def _say(self, error: LlmbError) -> None:
        self._with_errors = True
        self._post(log_problem(error))


def log_problem(error: LlmbError) -> LogProblem:
    """The reason why the log is not copied, in one line."""
    words = " ".join(filter(None, (error.what, error.why, error.fix)))
    return LogProblem(words, for_good=isinstance(error, OutputUnreachableError))
