"""A started simulated site whose clock moves only when a test sets it, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.demo.runai.runai_client import Client
from tests.kit.runai import FaultySite, runai_site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FaultySite]:
    with runai_site(tmp_path / "runai", speed=1.0) as started:
        yield started


@pytest.fixture
def client(site: FaultySite) -> Iterator[Client]:
    connected = Client(site)
    assert connected.login() == 200
    yield connected
    connected.close()
