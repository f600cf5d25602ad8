"""`FailureDialogs`: an app that shows errors of background work in a dialog."""

from __future__ import annotations

from llmb_tui.ui.background import WorkFailed
from llmb_tui.ui.themes import ThemedApp


class FailureDialogs(ThemedApp):
    """Shows each `WorkFailed` in a dialog, once the user has stopped typing."""

    def on_work_failed(self, event: WorkFailed) -> None:
        from llmb_tui.ui.dialogs import Failure  # not needed for the first frame

        self.push_after_typing(lambda: Failure(event.error), lambda _: None)
