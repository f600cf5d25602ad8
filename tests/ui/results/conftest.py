"""The list of results over a simulated history, in a directory of the tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.services import Services
from llmb_tui.ui.screens.results import ResultsScreen
from tests.kit.history import PastRun, remember, weeks
from tests.ui.run.conftest import Host, LocalServices

NOW = 1_763_800_000.0


@pytest.fixture(scope="session")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve weeks of runs, which no test changes."""
    root = tmp_path_factory.mktemp("history")
    _remember(root, weeks())
    return root


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Days and times of day are in UTC, whatever the time zone of the tests' environment."""
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
def open_results(history: Path, tmp_path: Path) -> Callable[..., tuple[App[None], Services]]:
    """Function that makes an app with the results of twelve weeks, or of the given runs, and its services."""

    def make(past: Iterable[PastRun] | None = None) -> tuple[App[Any], Services]:
        root = history
        if past is not None:
            root = tmp_path
            _remember(root, past)
        services = LocalServices(root)
        return Host(lambda: ResultsScreen(services, NonInteractivePrompter(), clock=lambda: NOW)), services

    return make


def _remember(root: Path, past: Iterable[PastRun]) -> None:
    runs = LocalServices(root).runs
    for one in past:
        remember(runs, one, NOW)
