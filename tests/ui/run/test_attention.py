"""Clusters are asked less often while the terminal's window is not in front."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual import events

from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp


async def test_the_clusters_receive_loss_and_return_of_focus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    heard: list[bool] = []
    monkeypatch.setattr(services.clusters, "set_focused", heard.append)
    app = LlmbApp(services)
    async with app.run_test() as pilot:
        for event in (events.AppBlur(), events.AppFocus()):
            app.post_message(event)
            await pilot.pause()
        assert heard[-2:] == [False, True]
