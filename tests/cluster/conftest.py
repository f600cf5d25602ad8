from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.login_node import LoginNode


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoginNode]:
    """A login node; tests cannot reach the user's own agent and keys."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "no home"))
    server = LoginNode(tmp_path)
    yield server
    server.close()
