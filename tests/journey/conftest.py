"""A demo cluster, and verbs with that cluster as a saved cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.profiles import save_profile
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.store.paths import UserPaths
from tests.journey.journey_selections import Call
from tests.kit import verbs
from tests.kit.verbs import Completed

FAST = 600.0
"""Speed of the tests' cluster: a run of minutes takes about a second."""


@pytest.fixture
def places(tmp_path: Path) -> UserPaths:
    return UserPaths(tmp_path / "config", tmp_path / "state")


@pytest.fixture
def cluster(tmp_path: Path, places: UserPaths, request: pytest.FixtureRequest) -> Iterator[DemoCluster]:
    with DemoCluster(tmp_path / "cluster", speed=getattr(request, "param", FAST)) as demo:
        save_profile(places.clusters, demo.profile)
        yield demo


def make_call(run_verb: Callable[[tuple[str, ...], dict[str, str]], Completed], home: Path) -> Call:
    """A function that runs verbs with that home directory and checks their exit codes."""

    def run(*arguments: str, code: int = 0) -> Completed:
        done = run_verb(arguments, verbs.environment(home))
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def call(places: UserPaths, tmp_path: Path) -> Call:
    """Run verbs in this process."""
    assert places.config.parent == tmp_path
    return make_call(verbs.run, tmp_path)


@pytest.fixture
def program(places: UserPaths, tmp_path: Path) -> Call:
    """Run verbs as programs: each sees only the files on the disk, and imports NeMo-Run itself."""
    assert places.config.parent == tmp_path
    return make_call(verbs.start, tmp_path)
