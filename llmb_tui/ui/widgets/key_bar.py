"""`KeyBar`: the keys that are valid now, at the bottom of each screen."""

from __future__ import annotations

from collections.abc import Iterator

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer


class KeyBar(Footer):
    """Textual's footer, made again only where it would look or act otherwise.

    Every change of focus and state asks for the keys again, and nearly always they are the same: some twenty widgets
    were mounted, styled and laid out each time, which was a third of what a key in the wizard cost.
    """

    _shown: tuple[object, ...] | None = None
    _is_due = False

    def __init__(self, show_command_palette: bool = False) -> None:
        super().__init__(compact=True, show_command_palette=show_command_palette)

    def on_mount(self) -> None:
        self.watch(self.screen, "stack_updates", self._on_stack, init=False)

    def compose(self) -> ComposeResult:
        self._shown = tuple(self._keys()) if self._bindings_ready else None
        for key in super().compose():
            yield key.add_class("-compact", update=False)  # else each is styled again when it is mounted

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Textual's signal; many before the next frame are answered once."""
        self._bindings_ready = True
        if screen.app.app_focus and self.is_attached and screen is self.screen and not self._is_due:
            self._is_due = self.call_after_refresh(self._update)

    def _on_stack(self) -> None:
        """The screen is covered, or seen again. What waited for a frame of the one above it may have gone with it."""
        self._is_due = False
        if self.is_attached:
            self.bindings_changed(self.screen)

    async def _update(self) -> None:
        self._is_due = False
        # Textual asks the screen on top what the keys of a pane do, so those of one that is covered are not known.
        if self.is_attached and self.screen is self.app.screen and self._shown != tuple(self._keys()):
            await self.recompose()

    def _keys(self) -> Iterator[object]:
        for _, binding, enabled, tooltip in self.screen.active_bindings.values():
            if binding.show:
                yield binding, enabled, tooltip
