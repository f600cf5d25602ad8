"""`AppSecret`: the secret of an application, kept in this program's memory and, on request, in the keyring."""

from __future__ import annotations

import os
import threading

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.runai.profile import RunaiProfile, from_environment
from llmb_tui.store import secret_store

VARIABLE = "APP_SECRET"
"""Environment variable of the recipes for the secret."""
known_secrets: dict[str, str] = {}
"""Known secrets of all applications, so that a change of a profile does not cause a new question."""


class AppSecret:
    """The secret of one application, from the environment or the keyring. It is not in the repr.

    The environment's secret is not used if the environment names another application or another server.
    """

    def __init__(self, profile: RunaiProfile) -> None:
        environment = from_environment(os.environ)
        self._may_use_environment = environment.app_id in ("", profile.app_id) and environment.place in (
            "",
            profile.place,
        )
        self._application = f"{profile.app_id} at {profile.place}"
        self._name = f"runai {self._application}"
        self._lock = threading.Lock()
        self._was_searched = False

    def __call__(self) -> str | None:
        """Return the secret; None if it is unknown."""
        with self._lock:
            if not self._was_searched and self._name not in known_secrets:
                self._was_searched = True
                if secret := (os.environ.get(VARIABLE) if self._may_use_environment else None) or self._from_keyring():
                    known_secrets[self._name] = secret
            return known_secrets.get(self._name)

    def give(self, value: str) -> None:
        """Set the secret as long as this program runs."""
        with self._lock:
            known_secrets[self._name] = value

    def ask(self, prompter: Prompter) -> bool:
        """Ask the user for the secret; False if none was entered."""
        value = (prompter.answer(f"Secret of the application {self._application}:", False) or "").strip()
        if value:
            self.give(value)
        return bool(value)

    def offer_to_keep(self, prompter: Prompter) -> None:
        """Ask the user whether to store the secret in the keyring, and report if that fails."""
        question = (
            "Store this secret in this computer's keyring? Type yes; any other answer keeps it for this time only:"
        )
        value = self()
        if value and (prompter.answer(question, True) or "").strip().lower() in ("y", "yes"):
            try:
                secret_store.keep(self._name, value)
            except secret_store.SecretStoreError as error:
                prompter.answer(f"{error.what} {error.why} {error.fix} Press enter to continue.", True)

    def _from_keyring(self) -> str | None:
        try:
            return secret_store.read(self._name)
        except secret_store.SecretStoreError:
            return None
