"""`KeyOrder`: an app that handles a key only after the previous one has taken effect."""

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

_CHECK_S = 0.05
"""Interval of the check whether the widget that handles the previous key still exists."""
PAUSE_S = 1.0
"""A pause of typing that is longer than any within a word, seconds."""
_EDITS = frozenset({"backspace", "delete"})
_LEAVES_FIELD = frozenset({"enter", "tab", "shift+tab", "escape"})


class KeyOrder(App[None]):
    """App in which keys that arrive in one burst take effect in their order.

    Textual 8 passes a printable key to the focused field at once, while any other key bubbles from widget to widget
    until the app finds its binding (Textual's issue 6605). If `1`, backspace and `2` arrive together, as over a slow
    SSH connection, the backspace would act last, and text typed after a tab would go into the field before it.
    """

    class Acted(Message, namespace="key"):
        """Bubbles after a key: when it reaches the app, the key has taken effect."""

    def __init__(self) -> None:
        super().__init__()
        self._acting: KeyOrder.Acted | None = None
        self._target: MessagePump = self
        self._pending: deque[Key | Paste] = deque()
        self._typed_at = -inf

    @property
    def remaining_typing_s(self) -> float:
        """Seconds for which a new dialog would still get keys meant for the focused field; 0.0 without typing."""
        return max(0.0, self._typed_at + PAUSE_S - time.monotonic())

    def push_after_typing(self, dialog: Callable[[], Screen[T]], answered: Callable[[T | None], None]) -> None:
        """Open a dialog that the user did not request, after a pause of typing: earlier keys belong to the field."""
        if rest_s := self.remaining_typing_s:
            self.set_timer(rest_s, partial(self.push_after_typing, dialog, answered))
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
            if not self._pending:
                self.set_timer(_CHECK_S, self._check_target)
            self._pending.append(event)
        else:
            await super().on_event(event)
            acted, self._target = self.Acted(), self.focused or self.screen
            self._acting = acted if self._target.post_message(acted) else None

    async def on_key_acted(self, event: Acted) -> None:
        if event is self._acting:
            self._acting = None
            while self._pending and not self._acting:
                await self.on_event(self._pending.popleft())

    async def _check_target(self) -> None:
        """Continue when a key has removed the widget that handled it: the message after the key is lost with it."""
        if self._acting and not self._target.is_running:
            await self.on_key_acted(self._acting)
        if self._pending:
            self.set_timer(_CHECK_S, self._check_target)
