"""Pictures of the wizard: each step on a small terminal, some on a usual one, themes and dialogs.

`python -m pytest tests/ui/wizard --snapshot-update` draws them again; look at each one before keeping it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input

from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Failure, HostKey, Secret
from llmb_tui.ui.screens.cluster_editor import ClusterEditor
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.texts import Paragraphs
from llmb_tui.wizard.events import RunSubmitted
from llmb_tui.wizard.state import ClusterState
from tests.kit.pilot import (
    NEMOTRON,
    choose,
    know,
    loaded,
    on_screen,
    on_top,
    plan_of,
    request_of,
    rows,
    until,
    wizard_of,
)
from tests.ui.wizard.found_states import CHECKED, EOS, INSTALLED, INSTALLING, PASSED, Still, draft_of

Drive = Callable[[Pilot[None]], Awaitable[object]]
SMALL, USUAL, WIDE = (80, 24), (120, 40), (200, 60)
READY = ClusterState(link="connected", preflight=PASSED, steps=INSTALLED)


@pytest.fixture
def services(places: UserPaths) -> Services:
    services = Services(places)
    services.clusters = Still(services.places.clusters, services.timing.look_every_s)
    return services


async def at_workload(pilot: Pilot[None]) -> None:
    await loaded(pilot)
    await choose(pilot, "workload", NEMOTRON)


async def at_hardware(pilot: Pilot[None]) -> None:
    await at_workload(pilot)
    await pilot.press("right")


async def at_scale(pilot: Pilot[None]) -> None:
    await at_hardware(pilot)
    await pilot.press("tab")
    await choose(pilot, "dtype", "fp8")
    await pilot.press("right")
    await choose(pilot, "scale", "64")


async def at_upstream_procedure(pilot: Pilot[None]) -> None:
    await at_scale(pilot)
    await pilot.press("P", "down")


async def at_new_cluster(pilot: Pilot[None]) -> None:
    await at_scale(pilot)
    await pilot.press("right", "enter")
    await on_top(pilot, ClusterEditor)
    for field in pilot.app.screen.query(Input):
        field.cursor_blink = False


async def on_eos(pilot: Pilot[None], step: str, cluster: ClusterState) -> WizardScreen:
    """Show a step with this state of the saved cluster."""
    await at_scale(pilot)
    await pilot.press("right", "c")
    wizard = wizard_of(pilot)
    link = wizard.query_one("#link", Paragraphs)
    await until(pilot, lambda: wizard.bar.link == "failed" and len(link.parts) > 1, "the probe has failed")
    await know(pilot, wizard, cluster)
    await pilot.press(step)
    await pilot.pause()
    return wizard


async def at_checked_cluster(pilot: Pilot[None]) -> None:
    banner = "Welcome to eos.\nAuthorised use only."
    await on_eos(pilot, "4", ClusterState(link="connected", preflight=CHECKED, banner=banner))


async def at_install(pilot: Pilot[None]) -> None:
    await on_eos(pilot, "5", replace(READY, steps=INSTALLING, tasks=frozenset({"install"})))


async def at_review(pilot: Pilot[None]) -> None:
    wizard = await on_eos(pilot, "5", READY)
    await know(pilot, wizard, replace(READY, prepared=draft_of(plan_of(wizard))))
    await pilot.press("6")


async def at_question(pilot: Pilot[None]) -> None:
    await at_review(pilot)
    await pilot.press("s")


async def at_run(pilot: Pilot[None]) -> None:
    wizard = await on_eos(pilot, "5", READY)
    run = replace(draft_of(plan_of(wizard)).run, submission="submitted", job_ids=("48123",))
    cast("LlmbApp", pilot.app).services.runs.save(replace(run, job_state="COMPLETED"))
    await pilot.press("6")
    wizard.dispatch(RunSubmitted(request_of(wizard), run))
    await until(pilot, lambda: pilot.app.screen is not wizard, "the run's screen opens by itself")
    await pilot.press("escape")
    await until(pilot, lambda: pilot.app.screen is wizard, "the wizard is back")
    await pilot.pause()


WITHOUT_CLUSTER: dict[str, Drive] = {
    "workload": at_workload,
    "hardware": at_hardware,
    "scale": at_scale,
    "upstream procedure": at_upstream_procedure,
    "new cluster": at_new_cluster,
}
ON_EOS: dict[str, Drive] = {
    "checked cluster": at_checked_cluster,
    "install": at_install,
    "review": at_review,
    "question": at_question,
    "run": at_run,
}


@pytest.mark.parametrize("name", [*WITHOUT_CLUSTER, *ON_EOS])
def test_small(snap_compare: Any, services: Services, name: str) -> None:
    if name in ON_EOS:
        services.clusters.save(EOS)
    drive = (WITHOUT_CLUSTER | ON_EOS)[name]
    assert snap_compare(LlmbApp(services), terminal_size=SMALL, run_before=drive)


@pytest.mark.parametrize("name", ["workload", "scale", "review"])
def test_usual(snap_compare: Any, services: Services, name: str) -> None:
    if name in ON_EOS:
        services.clusters.save(EOS)
    drive = (WITHOUT_CLUSTER | ON_EOS)[name]
    assert snap_compare(LlmbApp(services), terminal_size=USUAL, run_before=drive)


def test_wide(snap_compare: Any, services: Services) -> None:
    assert snap_compare(LlmbApp(services), terminal_size=WIDE, run_before=at_scale)


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark", "ansi-light"])
def test_themes(snap_compare: Any, services: Services, theme: str) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        pilot.app.theme = theme
        await at_scale(pilot)

    assert snap_compare(LlmbApp(services), terminal_size=USUAL, run_before=drive)


def test_no_color(snap_compare: Any, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(LlmbApp(services), terminal_size=USUAL, run_before=at_scale)


@pytest.mark.parametrize("key", ["p", "question_mark"], ids=["the whole preview", "help"])
def test_behind_a_key(snap_compare: Any, services: Services, key: str) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        await pilot.press(key)

    assert snap_compare(LlmbApp(services), terminal_size=SMALL, run_before=drive)


HOST_KEY = partial(HostKey, "login.eos.example", "ssh-ed25519", "SHA256:AbCdEfGhIjKlMnOpQrStUvWxYz0123456789+/AbCdE")
FAILURE = partial(Failure, LlmbError("The file [/home/x] was refused.", "Permission denied.", "Choose another."))


@pytest.mark.parametrize("dialog", [HOST_KEY, FAILURE], ids=["host key", "failure"])
def test_dialogs(snap_compare: Any, services: Services, dialog: Callable[[], ModalScreen[Any]]) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        pilot.app.push_screen(dialog())
        await pilot.pause()

    assert snap_compare(LlmbApp(services), terminal_size=SMALL, run_before=drive)


async def test_a_secret_is_dots(app: LlmbApp) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await loaded(pilot)
        app.push_screen(Secret("(operator@eos) [Password]: ", echo=False))
        await on_top(pilot, Secret)
        await pilot.press(*"secret")
        text = "\n".join(rows(app))
        assert "(operator@eos) [Password]:" in text
        assert "••••••" in text
        assert "secret" not in text


async def test_cluster_step_without_a_cluster_shows_how_to_add_one(app: LlmbApp) -> None:
    async with app.run_test(size=SMALL) as pilot:
        await at_scale(pilot)
        await pilot.press("right")
        await pilot.pause()
        assert rows(app)[2:5] == [" Saved clusters", "", " No cluster is chosen.   n: add a cluster"]


async def test_unreachable_cluster_shows_reason_and_fix(services: Services) -> None:
    services.clusters.save(EOS)
    error = LlmbError("eos does not answer.", "Connection refused.", "Check the host and the port, then press c.")
    app = LlmbApp(services)
    async with app.run_test(size=SMALL) as pilot:
        await on_eos(pilot, "4", ClusterState(link="failed", unreachable=error))
        assert rows(app)[0].endswith("simulated, clock x60   ✗ eos no connection")
        assert [row.strip() for row in rows(app)[5:9]] == ["✗ no connection", error.what, error.why, error.fix]


async def test_keys_are_visible_with_a_script_that_fills_the_screen(services: Services) -> None:
    services.clusters.save(EOS)
    app = LlmbApp(services)
    async with app.run_test(size=SMALL) as pilot:
        await at_review(pilot)
        await pilot.press("z")
        await pilot.pause()
        assert "band" not in on_screen(app)
        assert "z Zoom" in rows(app)[-1]
