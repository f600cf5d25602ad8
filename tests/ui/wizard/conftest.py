"""The app on empty places. Nothing here moves or tells the time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.services import Services
from llmb_tui.store.paths import Places
from llmb_tui.ui.app import LlmbApp
from tests.kit.demo import end_jobs


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "TEXTUAL_THEME", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")


@pytest.fixture(scope="session")
def presets_as_read(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a program that ran before has kept of the presets."""
    root = tmp_path_factory.mktemp("before")
    before = Services(Places(root / "config", root / "state"))
    assert before.catalog.recipes
    return before.places.catalog.read_bytes()


@pytest.fixture
def places(tmp_path: Path, presets_as_read: bytes) -> Places:
    """Empty but for the presets as they were read before."""
    places = Places(tmp_path / "config", tmp_path / "state")
    places.state.mkdir(mode=0o700)
    places.catalog.write_bytes(presets_as_read)
    return places


@pytest.fixture
def services(places: Places) -> Services:
    return Services(places)


@pytest.fixture
def app(services: Services) -> LlmbApp:
    return LlmbApp(services)


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DemoCluster]:
    """A simulated cluster on a fast clock, which only its own key opens."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    _keep_hosts_in(tmp_path / "hosts", monkeypatch)
    with DemoCluster(tmp_path / "cluster", speed=600.0) as cluster:
        yield cluster
        end_jobs(cluster)


def _keep_hosts_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSH asks the password database where a person's accepted keys are, whatever HOME says: theirs stay.

    The next cluster may get a port of one before it, and would be taken for that one with another key.
    """
    folder.mkdir()
    ssh = folder / "ssh"
    ssh.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -o UserKnownHostsFile={folder}/known_hosts "$@"\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
