"""Secrets that the operator wants to be kept on this computer: in the system's own keyring, and nowhere else."""

# ruff: noqa: PLC0415 - keyring looks for the system's services when it is imported
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType

from llmb_tui.errors import Trouble

_SERVICE = "llmb-tui"
# keyring's own measure: below it a backend is not recommended, such as one that writes plain text files.
_SAFE = 1


class NotKept(Trouble):
    """The keyring cannot keep, show or forget a secret now."""


class NoKeyring(NotKept):
    """There is none here, so it keeps nothing."""


def keep(name: str, value: str) -> None:
    """Keep a secret. Raises NotKept where there is no safe keyring, or it stays locked."""
    with _keyring() as keyring:
        keyring.set_password(_SERVICE, name, value)


def read(name: str) -> str | None:
    """A secret that was kept; None where there is none. Raises NotKept where the keyring cannot show it."""
    with _keyring() as keyring:
        value: str | None = keyring.get_password(_SERVICE, name)
        return value


def forget(name: str) -> None:
    """Forget a secret; one that is not there is no error. Raises NotKept where the keyring stays locked."""
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
    except Exception as error:  # noqa: BLE001 - a backend raises what its service's library does
        why = {
            "NoKeyringError": "This computer has no keyring, or none that is safe.",
            "KeyringLocked": "The keyring is locked, and was not opened.",
            "InitError": "The keyring is locked, and was not opened.",
        }.get(type(error).__name__, f"The keyring failed ({type(error).__name__}).")
        # The backend's own words may hold what it was given.
        kind = NoKeyring if type(error).__name__ == "NoKeyringError" else NotKept
        raise kind("The secret is not kept on this computer.", why, "Give it again when it is asked for.") from None
