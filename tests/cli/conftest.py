"""The directories of who runs the verbs."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb_tui.store.paths import CONFIG_VARIABLE, STATE_VARIABLE, Places


@pytest.fixture
def user_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Those of the user in this test: the verbs find them by the environment."""
    places = Places(tmp_path / "config", tmp_path / "state")
    monkeypatch.setenv(CONFIG_VARIABLE, str(places.config))
    monkeypatch.setenv(STATE_VARIABLE, str(places.state))
    return places
