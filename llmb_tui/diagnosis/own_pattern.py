"""`OwnPattern`: a regular expression of a user's rule, which may take no more than a short time.

Some expressions need time that doubles with each further character, and `re` cannot be interrupted. The package regex
has the same syntax and a time limit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import regex

RESERVE_S = 0.5
"""Processor time that the searches of a pattern may take together, beyond their usual times."""
_USUAL_S = 0.001


class PatternMatch(Protocol):
    """Part of `re.Match` that rules use."""

    def groupdict(self) -> Mapping[str, str | None]:
        """Text of each named group; None if it took no part."""


class Pattern(Protocol):
    """Part of `re.Pattern` that rules use."""

    def search(self, text: str, /) -> PatternMatch | None:
        """Search for the first match."""

    def fullmatch(self, text: str, /) -> PatternMatch | None:
        """Match the whole text."""


class OwnPattern:
    """A pattern that is no longer used, and reported, once its searches have exceeded their time.

    A search usually takes some microseconds. The time beyond `_USUAL_S` is subtracted from `RESERVE_S`, and the unused
    part of a later search is added again: many slow searches end like one that would never return.
    """

    def __init__(self, pattern: str, flags: re.RegexFlag, on_slow: Callable[[], None]) -> None:
        import regex  # noqa: PLC0415 - most users have no rules

        self._pattern = regex.compile(pattern, regex.MULTILINE if flags & re.MULTILINE else 0)
        self._on_slow = on_slow
        self._left_s = RESERVE_S

    @property
    def is_slow(self) -> bool:
        """Whether the pattern has exceeded its time."""
        return self._left_s <= 0

    def search(self, text: str, /) -> PatternMatch | None:
        """Search for the first match; None if the pattern is too slow."""
        return self._timed(self._pattern.search, text)

    def fullmatch(self, text: str, /) -> PatternMatch | None:
        """Match the whole text; None if the pattern is too slow."""
        return self._timed(self._pattern.fullmatch, text)

    def _timed(self, search: Callable[..., regex.Match[str] | None], text: str) -> PatternMatch | None:
        if self.is_slow:
            return None
        began = time.thread_time()
        try:
            match = search(text, timeout=self._left_s + _USUAL_S)
        except TimeoutError:
            match, self._left_s = None, 0.0
        else:
            self._left_s = min(RESERVE_S, self._left_s + _USUAL_S - (time.thread_time() - began))
        if self._left_s <= 0:
            self._on_slow()
        return match
