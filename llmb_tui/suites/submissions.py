"""`Submissions`: the suites that this program is submitting, each in its own thread, independent of the screens."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.crash import place_of
from llmb_tui.errors import LlmbError
from llmb_tui.suites.suite import Suite

Submit = Callable[[Suite, Callable[[str], None], threading.Event, Prompter | None], object]
"""Signature of `SuiteRunner.submit`."""


@dataclass(frozen=True, slots=True)
class SuiteSubmissionProgress:
    """State of the submission of one suite."""

    words: str = ""
    """Last message about it."""
    is_active: bool = True
    error: LlmbError | None = None
    """Why it ended early."""


"""Reason why it ended early."""


class Submissions:
    """One object for each program. Thread-safe. Rows that the program did not submit are submitted on the next try."""

    def __init__(self, submit: Submit) -> None:
        self._submit = submit
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._sending: dict[str, SuiteSubmissionProgress] = {}
        self._followers: dict[object, Callable[[str], object]] = {}

    def begin(self, suite: Suite, prompter: Prompter | None = None) -> None:
        """Submit the remaining rows, unless that is in progress. `prompter` answers questions of the connection."""
        with self._lock:
            if (known := self._sending.get(suite.id)) is not None and known.is_active:
                return
            self._sending[suite.id] = SuiteSubmissionProgress()
        threading.Thread(target=self._run, args=(suite, prompter), name=f"suite-{suite.id}", daemon=True).start()

    def of(self, suite_id: str) -> SuiteSubmissionProgress | None:
        """State of a suite's submission; None for a suite that this program has not submitted."""
        with self._lock:
            return self._sending.get(suite_id)

    def follow(self, post: Callable[[str], object]) -> Callable[[], None]:
        """Call `post` with the id of a suite whenever its submission changes, in any thread.

        The returned function ends that.
        """
        key = object()
        with self._lock:
            self._followers[key] = post

        def end() -> None:
            with self._lock:
                self._followers.pop(key, None)

        return end

    def end(self) -> None:
        """Stop all submissions; each ends between two rows."""
        self._stop.set()

    def _run(self, suite: Suite, prompter: Prompter | None) -> None:
        ended: LlmbError | None = None
        try:
            self._submit(suite, lambda words: self._tell(suite.id, words=words), self._stop, prompter)
        except LlmbError as failure:
            ended = failure
        except Exception as error:  # noqa: BLE001 - the screen of the suite shows a defect
            ended = LlmbError("Internal error (please report).", place_of(error))
        self._tell(suite.id, is_active=False, error=ended)

    def _tell(self, suite_id: str, **changes: Any) -> None:
        with self._lock:
            self._sending[suite_id] = replace(self._sending[suite_id], **changes)
            followers = list(self._followers.values())
        for post in followers:
            post(suite_id)
