"""Creation of the program's shared parts by several threads."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

import pytest

from llmb_tui.launch.runs import Runs
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit.waiting import DEADLINE_S


class WatchedLock:
    """The lock of the services; tells that a thread with this name is about to take it."""

    def __init__(self, name: str) -> None:
        self._lock, self._name = threading.RLock(), name
        self.wanted = threading.Event()

    def __enter__(self) -> None:
        if threading.current_thread().name == self._name:
            self.wanted.set()
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release()


def test_a_part_that_needs_another_is_created_while_another_thread_needs_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The feed needs the runs and then the clusters; the other thread needs the clusters in between."""
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    lock = WatchedLock("second")
    monkeypatch.setattr(services, "lock", lock)
    begun = threading.Event()

    def runs(places: UserPaths) -> Runs:
        begun.set()
        assert lock.wanted.wait(DEADLINE_S)
        return Runs(places)

    monkeypatch.setattr("llmb_tui.launch.runs.Runs", runs)
    first = threading.Thread(target=lambda: services.feed, daemon=True)
    second = threading.Thread(target=lambda: begun.wait(DEADLINE_S) and services.clusters, name="second", daemon=True)
    for thread in (first, second):
        thread.start()
    for thread in (first, second):
        thread.join(DEADLINE_S)
    assert not first.is_alive()
    assert not second.is_alive()
    assert services.feed is services.feed
