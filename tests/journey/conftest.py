"""A demo cluster, and `llmb-tui` as a program that knows it as a saved cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.profiles import save_profile
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.store.paths import Places
from tests.journey.journey_selections import Call

FAST = 600.0
"""Clock of the tests' cluster: a run of minutes takes about a second."""


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "config", tmp_path / "state")


@pytest.fixture
def cluster(tmp_path: Path, places: Places, request: pytest.FixtureRequest) -> Iterator[DemoCluster]:
    with DemoCluster(tmp_path / "cluster", speed=getattr(request, "param", FAST)) as demo:
        save_profile(places.clusters, demo.profile)
        yield demo


@pytest.fixture
def call(places: Places, tmp_path: Path) -> Call:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "TMPDIR": str(tmp_path),
        "LLMB_TUI_CONFIG_DIR": str(places.config),
        "LLMB_TUI_STATE_DIR": str(places.state),
    }

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "llmb_tui", *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=240, env=environment,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run
