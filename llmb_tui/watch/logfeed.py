"""`LogFeed`: copies the log of a job, restart by restart, and posts what happens to it.

A log may begin anew: where all starts of a job write to one file, Slurm begins it anew at each start, unless the site
has it append; and a log may be rotated, cut short or removed. What was copied stays. What the log is from then on is
copied into another file, from its first byte.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from llmb_tui.cluster.cluster import SchedulerTrouble
from llmb_tui.cluster.failures import Disconnected, GaveWay, LoginNeeded, Unreachable
from llmb_tui.cluster.remote_file import JobOutput, OutOfReach, Unreadable
from llmb_tui.errors import Trouble
from llmb_tui.language.instants import local_clock
from llmb_tui.language.quantities import count, duration
from llmb_tui.language.states import LinkState, RunLink
from llmb_tui.watch.events import LOGIN_TROUBLE, BatchTail, Ended, EventSink, LinkChanged, LogGrown, LogTrouble
from llmb_tui.watch.follow import Follower, LogGone, LogReplaced
from llmb_tui.watch.logcopy import LogCopy, newest_copy

# What comes is taken at once; this is how often it is seen that nobody wants more.
_PUMP_S = 0.5
_LINK_LOOK_S = 0.2
_BETWEEN_PROOFS_S = 1.0
_AFTER_TROUBLE_S = 1.0
_LOOK_EVERY_S = 5.0
"""How often the log of a restart is looked for that Slurm has counted already."""
_BATCH_TAIL = 65536
_CATCH_UP_S = 60.0
PATIENCE_S = 60.0
"""A log that cannot be read for this long after its job is over is left, and stays unread."""
_GOOD_NEWS_S = 60.0
"""How long it is said that a broken line is there again."""

_LINK_TROUBLE = (Disconnected, Unreachable, LoginNeeded)
"""The link broke, or cannot be made for now."""


class LogFeed(threading.Thread):
    """Copies the logs of all restarts, one after the other, until the job is over and the newest copy is whole.

    A log that is out of reach then, for as long as the patience lasts, ends it too, without a `BatchTail`.
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
        """`state`: of the connection to the cluster."""
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
        self._good_news_until: float | None = None
        self._in_trouble = False
        self._whole_since: float | None = None
        self._patience_s = patience_s
        self._unreadable_since: float | None = None
        """While the job is over."""
        self._copy = newest_copy(folder)
        self._follower = self._follow(self._copy)

    def job_moved(self, restarts: int, *, over: bool = False) -> None:
        """The job changed its state; Slurm has started it again so often, and each time there may be another log.

        If it is `over`, this ends when the copy is whole.
        """
        self._restarts = restarts
        self._look_for_restarts.set()
        if over:
            self._job_over.set()

    def catch_up(self, *, job_over: bool) -> None:
        """Copy, in the caller's thread, what the newest log holds now, for at most a minute.

        Of a job that is over, what stands beside the log is posted too.

        Raises LogReplaced, and what the cluster's questions raise.
        """
        try:
            try:
                whole = self._move_on() and self._copy_the_rest()
            except LogReplaced as replaced:
                self._begin_anew(replaced)
                whole = self._move_on() and self._copy_the_rest()
            if job_over and whole:
                self._post(BatchTail(self._output.beside(_BATCH_TAIL)))
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
            is_whole = self._copy_on()
        except LogReplaced as replaced:
            self._begin_anew(replaced)
        except LOGIN_TROUBLE as trouble:
            self._tell("closed", trouble.what)
            return True
        except GaveWay:
            pass
        except OutOfReach as trouble:
            self._tell_live()
            self._say(trouble)
            if self._job_over.is_set():
                return True
            self._stop_event.wait(_AFTER_TROUBLE_S)
        except (Unreadable, SchedulerTrouble) as trouble:  # the cluster answered, and may go on to refuse
            self._tell_live()
            return self._wait_for_log(trouble)
        except _LINK_TROUBLE as trouble:
            self._unreadable_since = None
            return self._wait_for_link(trouble)
        except Trouble as trouble:
            self._say(trouble)
            self._stop_event.wait(_AFTER_TROUBLE_S)
        else:
            self._unreadable_since = None
            self._tell_live()
            return is_whole
        return False

    def _copy_on(self) -> bool:
        awaited = self._restarts > self._copy.restart and time.monotonic() >= self._next_look
        if awaited or self._look_for_restarts.is_set():
            self._move_on()
        if self._follower.pump(_PUMP_S):
            self._whole_since = None
            self._in_trouble = False
            self._post(LogGrown(self._copy))
        elif self._job_over.is_set() and self._is_whole() and not self._look_for_restarts.is_set():
            self._post(BatchTail(self._output.beside(_BATCH_TAIL)))
            return True
        elif self._in_trouble and self._follower.follows:
            self._in_trouble = False
            self._post(LogGrown(self._copy))
        return False

    def _move_on(self) -> bool:
        """Turn to the logs of later restarts, if there are any, each after the rest of the one before.

        False if that is still on its way: nobody comes back to a log that was left, so it is left when it is whole.
        """
        self._look_for_restarts.clear()
        self._next_look = time.monotonic() + _LOOK_EVERY_S
        self._follower.retry_soon()
        try:
            there = [] if self._output.one_for_all else self._output.starts()
            for restart in (one for one in there if one > self._copy.restart):
                is_there = self._copy.restart in there
                if is_there and not self._copy_the_rest():
                    self._look_for_restarts.set()
                    return False
                self._turn_to(LogCopy(restart), "" if is_there else self._removed())
        except BaseException:
            self._look_for_restarts.set()
            raise
        return True

    def _begin_anew(self, replaced: LogReplaced) -> None:
        """Turn to what the log is now. The one of all starts is the next start's, whether or not Slurm counts them."""
        restart, part = self._copy
        kept = f"The {count(self._follower.copied)} bytes that came before are kept; what followed them may be lost."
        if self._output.one_for_all:
            note = f"The job's log began anew, as it does when the job is started again. {kept}"
            self._turn_to(LogCopy(max(restart + 1, self._restarts)), note)
        else:
            self._turn_to(LogCopy(restart, part + 1), f"{replaced.what} {replaced.why} {kept}")

    def _removed(self) -> str:
        """What is to be said of a log that is left though its rest never came; empty if there never was one."""
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
        """True if the copy was found whole twice, some time apart: what a node wrote last may come late."""
        if self._behind():
            self._whole_since = None
            return False
        if self._whole_since is None:
            self._whole_since = time.monotonic()
            self._stop_event.wait(_BETWEEN_PROOFS_S)
        return time.monotonic() - self._whole_since >= _BETWEEN_PROOFS_S

    def _copy_the_rest(self) -> bool:
        """Copy what the log holds at this moment; True unless that takes too long."""
        ends = time.monotonic() + _CATCH_UP_S
        missing = self._behind()
        while missing > 0 and not self._stop_event.is_set():
            if time.monotonic() > ends:
                self._post(LogTrouble("The log is not copied whole yet."))
                return False
            missing -= self._follower.pump(_PUMP_S)
        return missing <= 0

    def _behind(self) -> int:
        """As the follower's; nothing more can be had of a log that is gone for good."""
        try:
            return self._follower.behind()
        except LogGone:
            if self._output.may_come_back:
                raise
            return 0

    def _follow(self, copy: LogCopy) -> Follower:
        return Follower(self._output.log(copy.restart), self._folder / copy.name)

    def _wait_for_log(self, trouble: Unreadable | SchedulerTrouble) -> bool:
        """Say why the log cannot be read. True if the job is over and that has been so for long: it may never be."""
        if self._job_over.is_set():
            self._unreadable_since = self._unreadable_since or time.monotonic()
            if time.monotonic() - self._unreadable_since >= self._patience_s:
                self._post(replace(log_trouble(trouble), given_up=True))
                return True
        self._say(trouble)
        self._stop_event.wait(_AFTER_TROUBLE_S)
        return False

    def _wait_for_link(self, trouble: Trouble) -> bool:
        """Say that the link is lost, and since when. True if it is closed for good."""
        if self._state() == "closed":
            self._tell("closed", trouble.what)
            return True
        if self._link != "lost":
            self._lost_at = time.monotonic()
            so_far = f"The {count(self._follower.copied)} bytes of the log that came are kept, the rest is read later."
            self._tell("lost", f"{trouble.what} Since {local_clock(time.time())}. {so_far}")
        self._follower.retry_soon()
        self._stop_event.wait(_LINK_LOOK_S)  # the cluster itself waits longer and longer between its tries
        return False

    def _tell_live(self) -> None:
        """Say once that the link is there, and after it was lost, what that meant for the log."""
        if self._link == "lost":
            lasted = max(1.0, time.monotonic() - self._lost_at)
            note = f"Connected again at {local_clock(time.time())}, after {duration(lasted)}."
            if self._follower.follows:
                note += " The log goes on where it had stopped, no byte is lost."
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

    def _say(self, trouble: Trouble) -> None:
        self._in_trouble = True
        self._post(log_trouble(trouble))


def log_trouble(trouble: Trouble) -> LogTrouble:
    """Why the log is not copied, in one line."""
    words = " ".join(filter(None, (trouble.what, trouble.why, trouble.fix)))
    return LogTrouble(words, for_good=isinstance(trouble, OutOfReach))
