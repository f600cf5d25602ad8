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

    def compose(self) -> ComposeResult:
        self._is_due = False
        self._shown = tuple(self._keys()) if self._bindings_ready else None
        yield from super().compose()

    def bindings_changed(self, screen: Screen[object]) -> None:
        """Textual's signal. The keys of a pane ask the screen on top; another one may not be built yet."""
        if self._bindings_ready and (self._is_due or self._is_same(screen)):
            return
        self._is_due = screen.app.app_focus and self.is_attached and screen is self.screen
        super().bindings_changed(screen)

    def _is_same(self, screen: Screen[object]) -> bool:
        return screen is screen.app.screen and self._shown == tuple(self._keys())

    def _keys(self) -> Iterator[object]:
        for _, binding, enabled, tooltip in self.screen.active_bindings.values():
            if binding.show:
                yield binding, enabled, tooltip
