"""`AsksOnce`: what does not repeat its questions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import copy
from typing import Any, TypeVar

T = TypeVar("T")
A = TypeVar("A", bound="AsksOnce")


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
