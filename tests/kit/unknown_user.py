"""`use_unknown_user_id`: a process without a home directory, as in a container that runs with any user id."""

from __future__ import annotations

import pwd

import pytest


def use_unknown_user_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove HOME, and the home directory of this user id."""

    def unknown(uid: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.delenv("HOME", raising=False)
