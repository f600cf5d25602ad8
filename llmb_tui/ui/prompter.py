"""`ModalPrompter`: a connection's questions, asked in a dialog while the connecting thread waits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from textual.screen import ModalScreen

from llmb_tui.ui.key_order import KeyOrder


class ModalPrompter:
    """Asks through the app. Given to a connection that a person has asked for; one in the background has none."""

    def __init__(self, app: KeyOrder) -> None:
        self._app = app
        self._waiting: set[Future[Any]] = set()
        self._given_up = False

    def accept_host_key(self, host: str, key_type: str, fingerprint: str, note: str = "") -> bool:
        """True when the person says that the key of an unknown host is the right one."""
        from llmb_tui.ui.dialogs import HostKey

        return bool(self._ask(lambda: HostKey(host, key_type, fingerprint, note)))

    def answer(self, prompt: str, echo: bool) -> str | None:
        """A password, passphrase or code; None when the person gives none."""
        from llmb_tui.ui.dialogs import Secret

        text: str | None = self._ask(lambda: Secret(prompt, echo))
        return text

    def give_up(self) -> None:
        """The app ends: let every waiting thread go on without an answer, and ask nothing any more."""
        self._given_up = True
        for result in tuple(self._waiting):
            if not result.done():
                result.set_result(None)

    def _ask(self, dialog: Callable[[], ModalScreen[Any]]) -> Any:
        result: Future[Any] = Future()
        self._waiting.add(result)  # before the look whether all was given up, so that one of the two sees the other
        try:
            asked = not self._given_up and self._app.call_later(self._show, dialog, result)
            return result.result() if asked else None
        finally:
            self._waiting.discard(result)

    def _show(self, dialog: Callable[[], ModalScreen[Any]], result: Future[Any]) -> None:
        """In the app: the dialog's answer goes into `result`, unless all was given up meanwhile."""
        self._app.push_between_words(dialog, lambda answer: None if result.done() else result.set_result(answer))
