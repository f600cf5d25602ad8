"""`KeyBar`: the keys that are valid now, at the bottom of each screen."""

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
_WORDS = "$footer-description-foreground on $footer-description-background"
_POINTED = "on $block-hover-background"


class ShownKey(NamedTuple):
    """A key of the bar, as it is said there."""

    key: str
    words: Content
    enabled: bool
    tooltip: str


class KeyBar(Widget):
    """One line, painted again where one of its keys changes.

    Textual's Footer is a widget for each key, and mounts all of them anew for one that changes: half of what going to
    the next step took. As there, a click is the key. Keys for which there is no room are listed by `?`.
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
    """Stands at the right end, where there is room for it."""
    pointed: reactive[ShownKey | None] = reactive["ShownKey | None"](None)
    """The one under the mouse."""

    def __init__(self, show_command_palette: bool = False) -> None:
        super().__init__()
        self._has_palette = show_command_palette
        self._is_due = False

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._changed)
        self.watch(self.screen, "stack_updates", self._on_stack, init=False)

    def render(self) -> Content:
        row = Content("")
        for start, key in self._places():
            row = row.pad_right(start - row.cell_length)
            row += key.words.stylize(_POINTED) if key is self.pointed else key.words
        return row

    def on_mouse_down(self, event: events.MouseDown) -> None:
        key = self._at(event.x)
        if key is not None and key.enabled:
            self.app.simulate_key(key.key)
        elif key is not None:
            self.app.bell()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self.pointed = self._at(event.x)

    def on_leave(self) -> None:
        self.pointed = None

    def watch_keys(self) -> None:
        """Another key may stand under the mouse now."""
        self.pointed = None

    def watch_pointed(self, pointed: ShownKey | None) -> None:
        self.tooltip = pointed.tooltip if pointed is not None else None

    def _places(self) -> Iterator[tuple[int, ShownKey]]:
        """Each key with its first column."""
        end = 0
        for key in self.keys:
            yield end, key
            end += key.words.cell_length + 1
        if self.palette is not None and (start := self.size.width - self.palette.words.cell_length - 1) >= end:
            yield start, self.palette

    def _at(self, column: int) -> ShownKey | None:
        for start, key in self._places():
            if start <= column < start + key.words.cell_length:
                return key
        return None

    def _changed(self, screen: Screen[object]) -> None:
        """Many changes before the next frame are answered once."""
        if screen.app.app_focus and self.is_attached and screen is self.screen and not self._is_due:
            self._is_due = self.call_after_refresh(self._update)

    def _on_stack(self) -> None:
        """The screen is covered, or seen again. What waited for a frame of the one above it may have gone with it."""
        self._is_due = False
        if self.is_attached:
            self._changed(self.screen)

    def _update(self) -> None:
        self._is_due = False
        # Textual asks the screen on top what the keys of a pane do, so those of one that is covered are not known.
        if self.is_attached and self.screen is self.app.screen:
            active = self.screen.active_bindings
            self.keys = self.keys_of(active)
            palette = active.get(self.app.COMMAND_PALETTE_BINDING) if self._has_palette else None
            self.palette = self._shown(palette) if palette is not None else None

    def keys_of(self, active: Mapping[str, ActiveBinding]) -> tuple[ShownKey, ...]:
        """Those to be shown; where several keys do the same, the first."""
        shown: dict[str, ActiveBinding] = {}
        for one in active.values():
            if one.binding.show:
                shown.setdefault(one.binding.action, one)
        return tuple(map(self._shown, shown.values()))

    def _shown(self, active: ActiveBinding) -> ShownKey:
        """A key as the app's keymap has it, and as the screen allows it."""
        _, binding, enabled, tooltip = active
        words = line((self.app.get_key_display(binding), _KEY), (f" {binding.description}", _WORDS))
        return ShownKey(binding.key, words if enabled else words.stylize("dim"), enabled, tooltip)
