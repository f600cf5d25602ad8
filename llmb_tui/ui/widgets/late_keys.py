"""`LateKeys`: keys that were typed before the focus had moved go where it moved to."""

from __future__ import annotations

from textual.events import Key
from textual.widget import Widget


class LateKeys(Widget):
    """A widget with a key that opens a field.

    Textual hands each key to the widget that has the focus when the key arrives, so of `/word` typed in one burst
    all keys are this widget's; without this the letters would be its commands.
    """

    def on_key(self, event: Key) -> None:
        """Pass on what came for a widget that has no focus any more."""
        focused = self.screen.focused
        if focused is not None and focused is not self:
            event.stop()
            event.prevent_default()
            focused.post_message(Key(event.key, event.character))
