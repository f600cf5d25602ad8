"""The app on empty places. Nothing here moves or tells the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmb_tui.services import Services
from llmb_tui.store.paths import Places
from llmb_tui.ui.app import LlmbApp


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return Services(Places(tmp_path / "config", tmp_path / "state"))


@pytest.fixture
def app(services: Services) -> LlmbApp:
    return LlmbApp(services)
