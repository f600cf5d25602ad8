"""Entering an API key by keyboard: masked, saved in a private file, never shown."""

from __future__ import annotations

import stat
import threading

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.preflight.access import SecretTest
from llmb_tui.preflight.secret import SecretNeed, SecretValue
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.keys import KeysDialog
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import choose, loaded, marks, on_screen, on_top, text_of, until

KEY = "nvapi-0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def _saved(services: Services, demo: DemoCluster) -> None:
    services.clusters.save(demo.profile)


async def open_keys(pilot: Pilot[None]) -> None:
    await loaded(pilot)
    await choose(pilot, "workload", "nemotron4@25.04/15b")
    await pilot.press("4", "enter")
    await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the cluster is checked")
    await pilot.press("5", "K")
    await on_top(pilot, KeysDialog)
    await until(pilot, lambda: "asking" not in text_of(pilot.app, "#key-status"), "the places of the keys")


async def test_api_key_is_saved_in_a_private_file(services: Services, demo: DemoCluster) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(100, 30)) as pilot:
        await open_keys(pilot)
        assert "not set" in str(app.screen.query_one("#needs").render_line(0).text)
        field = app.screen.query_one("#key", Input)
        assert field.has_focus
        assert field.password
        field.value = KEY
        await pilot.press("enter")
        await until(pilot, lambda: ".credentials" in text_of(pilot.app, "#key-status"), "the key is on the cluster")
        assert field.value == ""
        assert KEY not in app.export_screenshot()
    files = list((demo.root / "home").rglob(".credentials"))
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600]
    assert KEY in files[0].read_text(encoding="utf-8")
    kept_here = [path for path in (services.places.config, services.places.state) for _ in path.rglob("*")]
    assert all(KEY not in path.read_text(errors="replace") for path in kept_here if path.is_file())


async def test_api_key_is_removed_by_the_named_key_and_not_by_cutting(services: Services, demo: DemoCluster) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        await open_keys(pilot)
        field = app.screen.query_one("#key", Input)
        field.value = KEY
        await pilot.press("enter")
        await until(pilot, lambda: ".credentials" in text_of(pilot.app, "#key-status"), "the key is on the cluster")
        assert all(f"{key}: " in on_screen(app) for key in ("ctrl+t", "ctrl+o", "ctrl+r"))
        field.value = KEY
        field.select_all()
        await pilot.press("ctrl+x")
        assert (field.value, field.has_focus) == ("", True)
        assert list((demo.root / "home").rglob(".credentials"))
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "no longer on the cluster" in text_of(pilot.app, "#key-status"), "the removal")
    assert not list((demo.root / "home").rglob(".credentials"))


async def test_actions_on_an_api_key_run_one_at_a_time(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    tested, go = [], threading.Event()

    def slow(_session: object, need: SecretNeed, secret: SecretValue | None, _sources: object) -> SecretTest:
        tested.append(secret is not None)
        go.wait(60)
        return SecretTest(need.id, "refused", "The registry rejects this API key.")

    monkeypatch.setattr("llmb_tui.ui.screens.keys.try_secret", slow)
    app = LlmbApp(services)
    async with app.run_test(size=(100, 30)) as pilot:
        await open_keys(pilot)
        field = app.screen.query_one("#key", Input)
        field.value = KEY
        await pilot.press("enter")
        await until(pilot, lambda: tested, "the test of the key")
        field.value = KEY
        await pilot.press("ctrl+t", "ctrl+r", "enter")
        assert (tested, field.value) == ([True], KEY)
        go.set()
        await until(pilot, lambda: "rejects this API key" in text_of(app, "#key-status"), "the rejection")
        await pilot.press("ctrl+t")
        await until(pilot, lambda: tested == [True, False], "the next one")


async def test_invalid_api_key_is_refused_without_being_shown(services: Services, demo: DemoCluster) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(80, 24)) as pilot:
        await open_keys(pilot)
        app.screen.query_one("#key", Input).value = "two words"
        await pilot.press("enter")
        await until(pilot, lambda: "not a valid API key" in text_of(pilot.app, "#key-status"), "the reason")
        assert "two words" not in app.export_screenshot()
    assert not list((demo.root / "home").rglob(".credentials"))
