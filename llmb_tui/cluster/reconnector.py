"""`Reconnector`: makes a session's link, and makes a broken one again without asking the user."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable

from llmb_tui.cluster.failures import AuthenticationError, DisconnectedError, HostKeyUnknownError, LoginNeededError
from llmb_tui.cluster.link import Link
from llmb_tui.cluster.prompter import NonInteractivePrompter, Prompter
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import LinkState

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
# Programs that lost the same login node should not all reconnect at the same moment.
_JITTER = 0.3
LOOK_EVERY_S = 1.0
"""Interval of checks whether the link is alive, seconds."""
WANTED_S = 300.0
"""Time after its last use for which a lost link is connected again, seconds."""


class Reconnector:
    """Makes a link: one thread dials while others wait for the outcome. The pause after each failure grows.

    A try asks only the prompter of its caller. A broken link is made again automatically, without questions, for
    five minutes after its last use. After that, only the next use makes it again.
    """

    def __init__(self, dial: Callable[[Prompter], Link], name: str) -> None:
        self._dial = dial
        self._name = name
        self._dialling = threading.Lock()
        self._closed = threading.Event()
        self._failure: LlmbError | None = None
        self._failures = 0
        self._has_asked = False
        """Whether the last try had a prompter."""
        self._is_refused = False
        self._pause_s = FIRST_PAUSE_S
        self._not_before = 0.0
        self._wanted_at = 0.0
        self.link: Link | None = None
        """The last link, alive or not."""
        self.trying = False

    @property
    def state(self) -> LinkState:
        """`connecting` before the first try and during every try; `lost` if the link broke or the last try failed."""
        if self._closed.is_set():
            return "closed"
        if self._usable() is not None:
            return "live"
        if self.trying or (self.link is None and self._failure is None):
            return "connecting"
        return "needs-login" if self._needs_login else "lost"

    @property
    def next_try_s(self) -> float | None:
        """Seconds until the automatic retry of a broken link; None if there is none."""
        if self.link is None or self.state != "lost" or not self._is_wanted:
            return None
        return self._pause_left_s

    def live(self, prompter: Prompter | None = None) -> Link:
        """Return the live link. If there is none, wait for the pause and try once to make it.

        `prompter`: answers questions of the login, and skips the pause, because a user is waiting.
        Raises LoginNeededError, DisconnectedError after `close`, and the errors of dialling.
        """
        self._wanted_at = time.monotonic()
        return self._live(prompter)

    def close(self) -> None:
        """Close the link permanently."""
        self._closed.set()
        if self.link is not None:
            self.link.close()

    @property
    def _pause_left_s(self) -> float:
        return max(0.0, self._not_before - time.monotonic())

    @property
    def _needs_login(self) -> bool:
        link = self.link
        return link is not None and not link.alive and (self._is_refused or not link.asks_nobody)

    @property
    def _is_wanted(self) -> bool:
        return time.monotonic() - self._wanted_at < WANTED_S

    def _live(self, prompter: Prompter | None) -> Link:
        link = self._usable()
        if link is not None:
            return link
        if prompter is None and self._needs_login and not self.trying:
            raise self._login_needed()
        failures_before = self._failures
        if prompter is None:
            self._closed.wait(self._pause_left_s)
        with self._dialling:
            link = self._usable()
            if link is not None:
                return link
            if self._closed.is_set():
                raise DisconnectedError(
                    f"The connection to {self._name} was closed by this program.", may_have_run=False
                )
            if prompter is None and self._needs_login:
                raise self._login_needed()
            # Another thread may have tried meanwhile. Its failure counts for a caller with a prompter only if that try
            # had one, too.
            tried = self._failures != failures_before and (self._has_asked or prompter is None)
            if tried and self._failure is not None:
                raise self._failure
            return self._try(prompter)

    def _usable(self) -> Link | None:
        link = self.link
        return link if link is not None and link.alive and not self._closed.is_set() else None

    def _try(self, prompter: Prompter | None) -> Link:
        first = self.link is None
        self._has_asked = prompter is not None
        self.trying = True
        try:
            link = self._dial(prompter or NonInteractivePrompter())
        except LlmbError as failure:
            self._failed(failure)
            if not first and prompter is None and isinstance(failure, (AuthenticationError, HostKeyUnknownError)):
                self._is_refused = True
                raise self._login_needed() from failure
            raise
        finally:
            self.trying = False
        self._failure = None
        self._is_refused = False
        self._pause_s = FIRST_PAUSE_S
        self.link = link
        if self._closed.is_set():
            link.close()
        elif first:
            threading.Thread(target=self._keep, name="ssh-again", daemon=True).start()
        return link

    def _failed(self, failure: LlmbError) -> None:
        self._failure = failure
        self._failures += 1
        jitter = random.uniform(1.0, 1.0 + _JITTER)  # noqa: S311 - no secret
        self._not_before = time.monotonic() + self._pause_s * jitter
        self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)

    def _keep(self) -> None:
        """Dial again while the link was used recently; runs in a thread that ends with `close`."""
        while not self._closed.wait(LOOK_EVERY_S):
            if self.state == "lost" and self._is_wanted:
                with contextlib.suppress(LlmbError):
                    self._live(None)

    def _login_needed(self) -> LoginNeededError:
        return LoginNeededError(
            f"{self._name} needs you to log in again.",
            "The connection broke. The program asks for a password or code only when you connect.",
            "Connect again.",
        )
