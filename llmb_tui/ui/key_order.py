"""`KeyOrder`: an app in which a key acts only when the one before it has."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TypeVar

from textual.app import App
from textual.events import Event, Key, Paste
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widgets import Input

T = TypeVar("T")

_LOOK_S = 0.05
"""Interval of the check whether the widget that handles the previous key still exists."""
PAUSE_S = 1.0
"""A pause of typing that is longer than any within a word, seconds."""
_EDITS = frozenset({"backspace", "delete"})
_LEAVES_FIELD = frozenset({"enter", "tab", "shift+tab", "escape"})


class KeyOrder(App[None]):
    """Keys that come in one burst act in their order.

    Textual 8 hands a printable key to the focused field at once, while any other climbs from widget to widget until
    the app finds its binding (Textual's issue 6605). Of `1`, backspace, `2` that come together, as over a slow SSH
    line, the backspace would act last; what is typed behind a tab would land before it.
    """

    class Acted(Message, namespace="key"):
        """Climbs behind a key: where it arrives at the app, the key has acted."""

    def __init__(self) -> None:
        super().__init__()
        self._acting: KeyOrder.Acted | None = None
        self._at: MessagePump = self
        self._behind: deque[Key | Paste] = deque()
        self._typed_at = -inf

    @property
    def types_for_s(self) -> float:
        """For how long yet a dialog would get keys that are meant for the field below it; 0.0 while nobody types."""
        return max(0.0, self._typed_at + PAUSE_S - time.monotonic())

    def push_between_words(self, dialog: Callable[[], Screen[T]], answered: Callable[[T | None], None]) -> None:
        """Open a dialog that no key has asked for: it waits for who types, whose next keys are meant for the field."""
        if rest_s := self.types_for_s:
            self.set_timer(rest_s, partial(self.push_between_words, dialog, answered))
        else:
            self.push_screen(dialog(), answered)

    async def on_event(self, event: Event) -> None:
        if not isinstance(event, Key | Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        if isinstance(self.focused, Input):
            if isinstance(event, Key) and event.key in _LEAVES_FIELD:
                self._typed_at = -inf
            elif isinstance(event, Paste) or event.is_printable or event.key in _EDITS:
                self._typed_at = time.monotonic()
        if self._acting:
            if not self._behind:
                self.set_timer(_LOOK_S, self._look)
            self._behind.append(event)
        else:
            await super().on_event(event)
            acted, self._at = self.Acted(), self.focused or self.screen
            self._acting = acted if self._at.post_message(acted) else None

    async def on_key_acted(self, event: Acted) -> None:
        if event is self._acting:
            self._acting = None
            while self._behind and not self._acting:
                await self.on_event(self._behind.popleft())

    async def _look(self) -> None:
        """A widget that its key removes takes with it what climbs behind."""
        if self._acting and not self._at.is_running:
            await self.on_key_acted(self._acting)
        if self._behind:
            self.set_timer(_LOOK_S, self._look)
