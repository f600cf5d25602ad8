"""The app with empty directories; no animation, no clock."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.pilot import Pilot
from textual.screen import Screen

from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from tests.kit.demo import end_jobs


@pytest.fixture(autouse=True)
def _frames_are_painted_when_looked_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paint a frame only when a test reads the screen, and when an app ends.

    They are a third of what these tests take. `tests/journey` paints each of them, and so does a test that is marked
    `every_frame`.
    """
    if request.node.get_closest_marker("every_frame"):
        return
    paint, run_test = Compositor.render_update, LlmbApp.run_test

    def paint_in_full(
        compositor: Compositor, full: bool = False, screen_stack: list[Screen[Any]] | None = None, **options: bool
    ) -> object:
        if full:
            return paint(compositor, full, screen_stack, **options)
        visible_screen_stack.set(screen_stack or [])
        compositor._dirty_regions.clear()
        return None

    @asynccontextmanager
    async def ends_painted(app: LlmbApp, **options: Any) -> AsyncIterator[Pilot[None]]:
        async with run_test(app, **options) as pilot:
            yield pilot
            if app.is_running:
                app.screen._compositor.render_update(full=True)

    monkeypatch.setattr(Compositor, "render_update", paint_in_full)
    monkeypatch.setattr(LlmbApp, "run_test", ends_painted)


@pytest.fixture(scope="session")
def presets_as_read(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Cache of the presets, as an earlier start wrote it."""
    root = tmp_path_factory.mktemp("before")
    before = Services(UserPaths(root / "config", root / "state"))
    assert before.catalog.recipes
    return before.places.catalog.read_bytes()


@pytest.fixture
def places(tmp_path: Path, presets_as_read: bytes) -> UserPaths:
    """Empty directories, apart from the cache of the presets."""
    places = UserPaths(tmp_path / "config", tmp_path / "state")
    places.state.mkdir(mode=0o700)
    places.catalog.write_bytes(presets_as_read)
    return places


@pytest.fixture
def services(places: UserPaths) -> Services:
    return Services(places)


@pytest.fixture
def app(services: Services) -> LlmbApp:
    return LlmbApp(services)


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DemoCluster]:
    """A simulated cluster with a fast clock that accepts only its own SSH key."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    _keep_hosts_in(tmp_path / "hosts", monkeypatch)
    with DemoCluster(tmp_path / "cluster", speed=600.0) as cluster:
        yield cluster
        end_jobs(cluster)


def _keep_hosts_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's known hosts out: OpenSSH finds them by the password database, not by HOME.

    The next cluster may get a port of one before it, and would be taken for that one with another key.
    """
    folder.mkdir()
    ssh = folder / "ssh"
    ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -o UserKnownHostsFile={folder}/known_hosts "$@"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
