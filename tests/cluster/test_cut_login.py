"""A line that breaks during a login is reported as such, and not as a refused key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import AuthenticationError, UnreachableError
from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.cluster.ssh import connect as connecting
from llmb_tui.cluster.ssh.connect import connect
from tests.cluster.login_node import LoginNode
from tests.rig.line import Line

PLACES = 24


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoginNode]:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr(connecting, "REFUSED_S", 0.0)
    server = LoginNode(tmp_path)
    yield server
    server.close()


@pytest.mark.parametrize("direction", ["bytes_up", "bytes_down"])
def test_a_cut_at_any_point_of_the_login_is_not_a_refusal(node: LoginNode, direction: str) -> None:
    profile = node.profile()
    assert profile.port is not None
    with Line(profile.port) as line:
        through = line.profile(profile)
        connect(through, NonInteractivePrompter()).close()
        whole = {"bytes_up": line.bytes_up, "bytes_down": line.bytes_down}[direction]
        outcomes = []
        for place in range(PLACES):
            line.cut_after(**{direction: whole * place // PLACES})
            try:
                connect(through, NonInteractivePrompter()).close()
                outcomes.append("connected")
            except UnreachableError:
                outcomes.append("unreachable")
            except AuthenticationError as refused:
                pytest.fail(f"after {place} of {PLACES} parts: {refused}")
    assert outcomes.count("unreachable") > PLACES // 2
