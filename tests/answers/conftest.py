"""Runs and suites that an older version stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.baseline.answers import copy_home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    copy_home(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def services(home: Path) -> Iterator[Services]:
    services = Services(UserPaths(home / "config", home / "state"))
    yield services
    services.close()
