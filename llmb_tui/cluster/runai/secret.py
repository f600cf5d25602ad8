"""`AppSecret`: what an application logs in with; known to this program while it runs, and to the system's keyring."""

from __future__ import annotations

import os
import threading

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.runai.profile import RunaiProfile, from_environment
from llmb_tui.store import secret_store

VARIABLE = "APP_SECRET"
"""The recipe's own variable."""
_known: dict[str, str] = {}
"""Those of all applications, so that nobody is asked again for a cluster whose profile was changed."""


class AppSecret:
    """The secret of one application, looked for in the environment, then in the keyring. It is in no repr.

    Where the environment names another application, or another server, its secret is that one's.
    """

    def __init__(self, profile: RunaiProfile) -> None:
        named = from_environment(os.environ)
        self._is_named = named.app_id in ("", profile.app_id) and named.place in ("", profile.place)
        self._who = f"{profile.app_id} at {profile.place}"
        self._name = f"runai {self._who}"
        self._lock = threading.Lock()
        self._looked = False

    def __call__(self) -> str | None:
        """It, if it is known."""
        with self._lock:
            if not self._looked and self._name not in _known:
                self._looked = True
                if found := (os.environ.get(VARIABLE) if self._is_named else None) or self._kept():
                    _known[self._name] = found
            return _known.get(self._name)

    def give(self, value: str) -> None:
        """It, as a person or the demo knows it, for as long as this program runs."""
        with self._lock:
            _known[self._name] = value

    def ask(self, prompter: Prompter) -> bool:
        """Ask a person for it; False where nobody gives it."""
        value = (prompter.answer(f"Secret of the application {self._who}:", False) or "").strip()
        if value:
            self.give(value)
        return bool(value)

    def offer_to_keep(self, prompter: Prompter) -> None:
        """Ask whether this computer's keyring shall keep it; where that cannot, the person is told."""
        question = "Keep this secret in the keyring of this computer? yes, or anything else for this time only:"
        value = self()
        if value and (prompter.answer(question, True) or "").strip().lower() in ("y", "yes"):
            try:
                secret_store.keep(self._name, value)
            except secret_store.NotKept as trouble:
                prompter.answer(f"{trouble.what} {trouble.why} {trouble.fix} Enter goes on.", True)

    def _kept(self) -> str | None:
        try:
            return secret_store.read(self._name)
        except secret_store.NotKept:
            return None
