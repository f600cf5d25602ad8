"""A user id that the system knows nothing of, as in a container that is started with any."""

from __future__ import annotations

import pwd

import pytest


def make_homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process have no home directory, by HOME or by its user id."""

    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.delenv("HOME", raising=False)
