"""`ModalPrompter`: asks a connection's questions in a dialog while the connecting thread waits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from textual.screen import ModalScreen

from llmb_tui.ui.key_order import KeyOrder


class ModalPrompter:
    """Asks the user in dialogs. Only a connection that the user requested gets a prompter, no background one."""

    def __init__(self, app: KeyOrder) -> None:
        self._app = app
        self._waiting: set[Future[Any]] = set()
        self._given_up = False

    def accept_host_key(self, host: str, key_type: str, fingerprint: str, note: str = "") -> bool:
        """Whether the user trusts the key of an unknown host."""
        from llmb_tui.ui.dialogs import HostKey

        return bool(self._ask(lambda: HostKey(host, key_type, fingerprint, note)))

    def answer(self, prompt: str, echo: bool) -> str | None:
        """The password, passphrase or code that the user enters; None if they cancel."""
        from llmb_tui.ui.dialogs import Secret

        text: str | None = self._ask(lambda: Secret(prompt, echo))
        return text

    def give_up(self) -> None:
        """Release every waiting thread without an answer, and ask no more questions. Called when the app ends."""
        self._given_up = True
        for result in tuple(self._waiting):
            if not result.done():
                result.set_result(None)

    def _ask(self, dialog: Callable[[], ModalScreen[Any]]) -> Any:
        result: Future[Any] = Future()
        self._waiting.add(result)  # before `_given_up` is read, so that `give_up` cannot miss this question
        try:
            was_opened = not self._given_up and self._app.call_later(self._show, dialog, result)
            return result.result() if was_opened else None
        finally:
            self._waiting.discard(result)

    def _show(self, dialog: Callable[[], ModalScreen[Any]], result: Future[Any]) -> None:
        """Open the dialog, in the app's thread. Its answer goes into `result`, unless `give_up` has set that."""
        self._app.push_after_typing(dialog, lambda answer: None if result.done() else result.set_result(answer))
