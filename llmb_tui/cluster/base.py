"""`ClusterBase`: what clusters of every kind have in common; `AsksOnce`: what does not repeat its questions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import copy
from typing import Any, TypeVar

from llmb_tui.cluster.failures import Disconnected, ObserverMode, Unreachable
from llmb_tui.cluster.link import LinkState
from llmb_tui.cluster.profile import ClusterProfile

T = TypeVar("T")
A = TypeVar("A", bound="AsksOnce")
_ASKED_AGAIN = 2


class AsksOnce:
    """Answers questions, each time anew unless it is one that is `asking_once`."""

    answers: dict[Hashable, Any] | None = None
    """What was answered so far; None: nothing is kept."""

    def asking_once(self: A) -> A:
        """The same for checks that follow each other at once: a question that was answered is not asked again."""
        once = copy(self)
        once.answers = {}
        return once

    def once(self, question: Hashable, ask: Callable[[], T]) -> T:
        """What `ask` answers to a question, or has answered."""
        if self.answers is None:
            return ask()
        if question not in self.answers:
            self.answers[question] = ask()
        answer: T = self.answers[question]
        return answer


class ClusterBase:
    """Observer mode, and patience with a connection that breaks."""

    profile: ClusterProfile
    read_only: bool

    @property
    def state(self) -> LinkState:
        """Of the connection."""
        raise NotImplementedError

    def require_changes(self) -> None:
        """Raise `ObserverMode` where the cluster is only looked at: called by whatever would change it."""
        if self.read_only:
            raise ObserverMode(self.profile)

    def patiently(self, ask: Callable[[], T]) -> T:
        """What `ask` answers, which only looks: asked again, twice at most, where the connection breaks meanwhile.

        Raises what `ask` raises.
        """
        for _ in range(_ASKED_AGAIN):
            try:
                return ask()
            except (Disconnected, Unreachable):
                if self.state == "closed":
                    raise
        return ask()
