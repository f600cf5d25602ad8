"""Secrets that the operator wants to store on this computer: in the system's own keyring, and nowhere else."""

# ruff: noqa: PLC0415 - keyring looks for the system's services at import
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType

from llmb_tui.errors import LlmbError

_SERVICE = "llmb-tui"
# keyring's own scale: a backend below this is not recommended, such as one that writes plain text files.
_SAFE = 1


class SecretStoreError(LlmbError):
    """The keyring cannot store, read or delete a secret now."""


class KeyringMissingError(SecretStoreError):
    """The computer has no keyring, so nothing is stored."""


def keep(name: str, value: str) -> None:
    """Store a secret. Raises SecretStoreError if there is no safe keyring, or it stays locked."""
    with _keyring() as keyring:
        keyring.set_password(_SERVICE, name, value)


def read(name: str) -> str | None:
    """A stored secret; None if there is none. Raises SecretStoreError if the keyring cannot read it."""
    with _keyring() as keyring:
        value: str | None = keyring.get_password(_SERVICE, name)
        return value


def forget(name: str) -> None:
    """Delete a secret; a missing one is not an error. Raises SecretStoreError if the keyring stays locked."""
    with _keyring() as keyring:
        if keyring.get_password(_SERVICE, name) is not None:
            keyring.delete_password(_SERVICE, name)


@contextlib.contextmanager
def _keyring() -> Iterator[ModuleType]:
    import keyring
    from keyring.errors import NoKeyringError

    try:
        if keyring.get_keyring().priority < _SAFE:
            raise NoKeyringError
        yield keyring
    except Exception as error:  # noqa: BLE001 - each backend raises the errors of its service's library
        why = {
            "NoKeyringError": "This computer has no keyring, or no safe one.",
            "KeyringLocked": "The keyring is locked, and was not unlocked.",
            "InitError": "The keyring is locked, and was not unlocked.",
        }.get(type(error).__name__, f"The keyring failed ({type(error).__name__}).")
        # The backend's own message may contain the secret.
        kind = KeyringMissingError if type(error).__name__ == "NoKeyringError" else SecretStoreError
        raise kind("The secret is not stored on this computer.", why, "Enter it again when asked for it.") from None
