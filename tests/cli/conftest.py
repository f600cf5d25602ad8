"""State and configuration directories for the verbs."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb_tui.store.paths import CONFIG_VARIABLE, STATE_VARIABLE, UserPaths


@pytest.fixture
def user_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserPaths:
    """Directories of the test, which the verbs find through the environment."""
    places = UserPaths(tmp_path / "config", tmp_path / "state")
    monkeypatch.setenv(CONFIG_VARIABLE, str(places.config))
    monkeypatch.setenv(STATE_VARIABLE, str(places.state))
    return places
