"""`FailureDialogs`: an app that shows in a dialog what went wrong in a screen's work."""

from __future__ import annotations

from llmb_tui.ui.background import WorkFailed
from llmb_tui.ui.key_order import KeyOrder


class FailureDialogs(KeyOrder):
    """Shows each `WorkFailed` in a dialog. The dialog waits while the user types: they may be elsewhere by then."""

    def on_work_failed(self, event: WorkFailed) -> None:
        from llmb_tui.ui.dialogs import Failure  # not needed for the first frame

        self.push_between_words(lambda: Failure(event.error), lambda _: None)
