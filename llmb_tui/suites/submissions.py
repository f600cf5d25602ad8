"""`Submissions`: the suites that this program is submitting, each in a thread of its own, whatever a screen shows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.crash import place_of
from llmb_tui.errors import Trouble
from llmb_tui.suites.suite import Suite

Submit = Callable[[Suite, Callable[[str], None], threading.Event, Prompter | None], object]
"""As `SuiteRunner.submit`."""


@dataclass(frozen=True, slots=True)
class Sending:
    """How the submission of one suite stands."""

    words: str = ""
    """The last that was said of it, as it came."""
    goes_on: bool = True
    trouble: Trouble | None = None
    """Why it ended early."""


class Submissions:
    """One for each program. Thread-safe. What is not sent when the program ends is sent when somebody goes on."""

    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._sending: dict[str, Sending] = {}
        self._followers: dict[object, Callable[[str], object]] = {}

    def begin(self, suite: Suite, prompter: Prompter | None = None) -> None:
        """Submit what was not yet, unless that goes on already. `prompter` answers what connecting asks."""
        with self._lock:
            if (known := self._sending.get(suite.id)) is not None and known.goes_on:
                return
            self._sending[suite.id] = Sending()
        threading.Thread(target=self._run, args=(suite, prompter), name=f"suite-{suite.id}", daemon=True).start()

    def of(self, suite_id: str) -> Sending | None:
        """How it stands; None for a suite that this program has not sent."""
        with self._lock:
            return self._sending.get(suite_id)

    def follow(self, post: Callable[[str], object]) -> Callable[[], None]:
        """Tell `post` the id of a suite whenever its submission stands otherwise, in any thread.

        What is returned ends that.
        """
        key = object()
        with self._lock:
            self._followers[key] = post

        def end() -> None:
            with self._lock:
                self._followers.pop(key, None)

        return end

    def end(self) -> None:
        """Send nothing more: each ends between two rows."""
        self._stop.set()

    def _run(self, suite: Suite, prompter: Prompter | None) -> None:
        ended: Trouble | None = None
        try:
            self._submit(suite, lambda words: self._tell(suite.id, words=words), self._stop, prompter)
        except Trouble as trouble:
            ended = trouble
        except Exception as error:  # noqa: BLE001 - a defect is told where the suite is shown
            ended = Trouble("This should not have happened.", place_of(error))
        self._tell(suite.id, goes_on=False, trouble=ended)

    def _tell(self, suite_id: str, **changes: Any) -> None:
        with self._lock:
            self._sending[suite_id] = replace(self._sending[suite_id], **changes)
            followers = list(self._followers.values())
        for post in followers:
            post(suite_id)
