from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.preflight.needs import Sources
from llmb_tui.store.paths import UserPaths
from tests.recipes.outside import Outside
from tests.rig.install.web import Web
from tests.rig.upstream.upstream_operator import Operator

MakeOperator = Callable[..., Operator]


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes hours on a cluster takes seconds here."""
    monkeypatch.setattr("llmb_tui.launch.install.LOOK_EVERY_S", 0.5)
    monkeypatch.setattr("llmb_tui.launch.install.ASK_SLURM_EVERY_S", 1.0)


@pytest.fixture
def _reachable(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Servers on loopback that answer to the preflight as the real ones do."""
    with Web() as web:
        web.images = {f"nvidia/nemo:{tag}" for tag in ("24.09", "24.12", "25.02.01", "25.09.00")}
        web.token = outside.hub_token
        monkeypatch.setattr("llmb_tui.services.Sources", lambda: Sources(web.url, web.url, web.url))
        yield


@pytest.fixture
def make_operator(
    outside: Outside,
    _reachable: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[MakeOperator]:
    """Makes the operator; keyword arguments are fields of the cluster's profile."""
    outside.use_presets(monkeypatch)
    places = UserPaths(tmp_path / "config", tmp_path / "state")
    monkeypatch.setenv("LLMB_TUI_CONFIG_DIR", str(places.config))
    monkeypatch.setenv("LLMB_TUI_STATE_DIR", str(places.state))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)

    made: list[Operator] = []

    def make(**profile: Any) -> Operator:
        made.append(Operator(outside, places, capsys.readouterr, **profile))
        return made[-1]

    yield make
    for operator in made:
        operator.leave()
    outside.rig.cancel_jobs()
    outside.rig.as_operator("cd && rm -rf .llmb-tui", check=True)
