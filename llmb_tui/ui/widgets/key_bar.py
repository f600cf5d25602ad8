"""`KeyBar`: the currently valid keys, at the bottom of each screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from textual import events
from textual.binding import ActiveBinding
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from llmb_tui.ui.text import line

_KEY = "bold $footer-key-foreground on $footer-key-background"
_DESCRIPTION = "$footer-description-foreground on $footer-description-background"
_HOVERED = "on $block-hover-background"


class ShownKey(NamedTuple):
    """A key as the bar shows it."""

    key: str
    words: Content
    enabled: bool
    tooltip: str


class KeyBar(Widget):
    """One line, repainted when one of its keys changes.

    Textual's Footer has a widget for each key and mounts all of them again when one changes, which took half of the
    time of going to the next step. As in the Footer, a click acts like the key. `?` also lists keys that do not fit.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    KeyBar {
        dock: bottom;
        height: 1;
        color: $footer-foreground;
        background: $footer-background;
    }
    """

    keys: reactive[tuple[ShownKey, ...]] = reactive(())
    palette: reactive[ShownKey | None] = reactive["ShownKey | None"](None)
    """Key of the command palette, at the right end if there is room."""
    hovered: reactive[ShownKey | None] = reactive["ShownKey | None"](None)
    """Key under the mouse."""

    def __init__(self, show_command_palette: bool = False) -> None:
        super().__init__()
        self._has_palette = show_command_palette
        self._is_due = False

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._schedule_update)
        self.watch(self.screen, "stack_updates", self._on_stack, init=False)

    def render(self) -> Content:
        row = Content("")
        for start, key in self._places():
            row = row.pad_right(start - row.cell_length)
            row += key.words.stylize(_HOVERED) if key is self.hovered else key.words
        return row

    def on_mouse_down(self, event: events.MouseDown) -> None:
        key = self._key_at(event.x)
        if key is not None and key.enabled:
            self.app.simulate_key(key.key)
        elif key is not None:
            self.app.bell()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self.hovered = self._key_at(event.x)

    def on_leave(self) -> None:
        self.hovered = None

    def watch_keys(self) -> None:
        """Forget the hovered key: the mouse may be over a different key now."""
        self.hovered = None

    def watch_hovered(self, hovered: ShownKey | None) -> None:
        self.tooltip = hovered.tooltip if hovered is not None else None

    def _places(self) -> Iterator[tuple[int, ShownKey]]:
        """Yield the first column of each key, and the key."""
        end = 0
        for key in self.keys:
            yield end, key
            end += key.words.cell_length + 1
        if self.palette is not None and (start := self.size.width - self.palette.words.cell_length - 1) >= end:
            yield start, self.palette

    def _key_at(self, column: int) -> ShownKey | None:
        for start, key in self._places():
            if start <= column < start + key.words.cell_length:
                return key
        return None

    def _schedule_update(self, screen: Screen[object]) -> None:
        """Schedule one update for all changes before the next frame."""
        if screen.app.app_focus and self.is_attached and screen is self.screen and not self._is_due:
            self._is_due = self.call_after_refresh(self._update)

    def _on_stack(self) -> None:
        """Update when the screen is covered or shown again: a scheduled update may be lost with the screen above."""
        self._is_due = False
        if self.is_attached:
            self._schedule_update(self.screen)

    def _update(self) -> None:
        self._is_due = False
        # Textual asks the top screen for the actions of a pane, so the keys of a covered screen are unknown.
        if self.is_attached and self.screen is self.app.screen:
            active = self.screen.active_bindings
            self.keys = self.keys_of(active)
            palette = active.get(self.app.COMMAND_PALETTE_BINDING) if self._has_palette else None
            self.palette = self._shown_key(palette) if palette is not None else None

    def keys_of(self, active: Mapping[str, ActiveBinding]) -> tuple[ShownKey, ...]:
        """Keys to show; if several keys have the same action, the first one."""
        shown: dict[str, ActiveBinding] = {}
        for key in active.values():
            if key.binding.show:
                shown.setdefault(key.binding.action, key)
        return tuple(map(self._shown_key, shown.values()))

    def _shown_key(self, active: ActiveBinding) -> ShownKey:
        """A key by the app's keymap; dimmed if the screen disables it."""
        _, binding, enabled, tooltip = active
        words = line((self.app.get_key_display(binding), _KEY), (f" {binding.description}", _DESCRIPTION))
        return ShownKey(binding.key, words if enabled else words.stylize("dim"), enabled, tooltip)
