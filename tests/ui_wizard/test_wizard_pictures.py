"""Pictures of every step, small and large, dark, light, ANSI and without colours.

`python -m pytest tests/ui_wizard --snapshot-update` draws them again; look at each one before keeping it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import Input

from llmb_tui.cluster.health import LinkHealth
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.plan.plan import Plan
from llmb_tui.services import Services
from llmb_tui.store.paths import Places
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Failure, HostKey, Secret
from llmb_tui.ui.found import Doing, Subject
from llmb_tui.ui.screens.cluster_editor import ClusterEditor
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.paragraphs import Paragraphs
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.ui.work import Learned
from tests.ui_wizard.found_states import CHECKED, EOS, INSTALLED, INSTALLING, PASSED, draft_of
from tests.ui_wizard.wizard_pilot import choose, loaded, on_top, until


class Still(Services):
    """Its connections have no heartbeat: what a picture shows of a link was put there."""

    def health(self, profile: ClusterProfile) -> LinkHealth | None:  # noqa: ARG002 - the rooms'
        return None


Drive = Callable[[Pilot[None]], Awaitable[None]]
SIZES = [(80, 24), (120, 40)]


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return Still(Places(tmp_path / "config", tmp_path / "state"))


def picture(snap_compare: Any, services: Services, size: tuple[int, int], drive: Drive) -> bool:
    return bool(snap_compare(LlmbApp(services), terminal_size=size, run_before=drive))


async def at_hardware(pilot: Pilot[None]) -> None:
    await loaded(pilot)
    await choose(pilot, "workload", "nemotron4@25.04/15b")
    await pilot.press("right")


async def at_scale(pilot: Pilot[None]) -> None:
    await at_hardware(pilot)
    await pilot.press("tab")
    await choose(pilot, "dtype", "fp8")
    await pilot.press("right")
    await choose(pilot, "scale", "64")


def made(pilot: Pilot[None]) -> Plan:
    plan = pilot.app.screen.query_one(Preview).made
    assert plan is not None
    return plan


async def on_eos(pilot: Pilot[None], step: str, job: Doing = "look", over: bool = True, **found: Any) -> None:
    """A step after the cluster was looked at, and these things were found."""
    await at_scale(pilot)
    await pilot.press("right", "c")
    wizard = pilot.app.screen
    assert isinstance(wizard, WizardScreen)
    link = wizard.query_one("#link", Paragraphs)
    await until(pilot, lambda: wizard.bar.link == "failed" and len(link.parts) > 1, "the look at nothing has failed")
    changes = {"link": "connected", "trouble": None, **found}
    wizard.post_message(Learned(Subject(EOS, made(pilot).selection), job, changes, over=over))
    await pilot.pause()
    await pilot.press(step)
    await pilot.pause()


@pytest.fixture
def on_cluster(services: Services) -> Services:
    services.save_profile(EOS)
    return services


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
class TestSteps:
    def test_workload(self, snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
        async def drive(pilot: Pilot[None]) -> None:
            await loaded(pilot)
            await choose(pilot, "workload", "nemotron4@25.04/15b")

        assert picture(snap_compare, services, size, drive)

    def test_workload_found_by_typing(self, snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
        async def drive(pilot: Pilot[None]) -> None:
            await loaded(pilot)
            await pilot.press("slash", *"405b")

        assert picture(snap_compare, services, size, drive)

    def test_hardware(self, snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
        assert picture(snap_compare, services, size, at_hardware)

    def test_scale(self, snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
        assert picture(snap_compare, services, size, at_scale)

    def test_scale_that_is_not_listed(self, snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
        async def drive(pilot: Pilot[None]) -> None:
            await at_scale(pilot)
            await pilot.press("tab", *"96")

        assert picture(snap_compare, services, size, drive)

    def test_new_cluster(self, snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
        async def drive(pilot: Pilot[None]) -> None:
            await at_scale(pilot)
            await pilot.press("right", "enter")
            await on_top(pilot, ClusterEditor)
            for field in pilot.app.screen.query(Input):
                field.cursor_blink = False

        assert picture(snap_compare, services, size, drive)

    def test_no_cluster(self, snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
        async def drive(pilot: Pilot[None]) -> None:
            await at_scale(pilot)
            await pilot.press("right")

        assert picture(snap_compare, services, size, drive)

    def test_cluster_checked(self, snap_compare: Any, on_cluster: Services, size: tuple[int, int]) -> None:
        async def drive(pilot: Pilot[None]) -> None:
            await on_eos(pilot, "4", preflight=CHECKED, banner="Welcome to eos.\nAuthorised use only.")

        assert picture(snap_compare, on_cluster, size, drive)

    def test_cluster_that_does_not_answer(self, snap_compare: Any, on_cluster: Services, size: tuple[int, int]) -> None:
        trouble = Trouble("eos does not answer.", "Connection refused.", "Check the host and the port, then press c.")

        async def drive(pilot: Pilot[None]) -> None:
            await on_eos(pilot, "4", link="failed", trouble=trouble, failed="look")

        assert picture(snap_compare, on_cluster, size, drive)

    def test_install(self, snap_compare: Any, on_cluster: Services, size: tuple[int, int]) -> None:
        async def drive(pilot: Pilot[None]) -> None:
            await on_eos(pilot, "5", preflight=PASSED, steps=INSTALLING, job="install", over=False)

        assert picture(snap_compare, on_cluster, size, drive)

    def test_review(self, snap_compare: Any, on_cluster: Services, size: tuple[int, int]) -> None:
        async def drive(pilot: Pilot[None]) -> None:
            await on_eos(pilot, "5", preflight=PASSED, steps=INSTALLED)
            wizard = pilot.app.screen
            wizard.post_message(
                Learned(Subject(EOS, made(pilot).selection), "render", {"draft": draft_of(made(pilot))}, over=True)
            )
            await pilot.pause()
            await pilot.press("6")

        assert picture(snap_compare, on_cluster, size, drive)

    def test_published_procedure(self, snap_compare: Any, services: Services, size: tuple[int, int]) -> None:
        async def drive(pilot: Pilot[None]) -> None:
            await at_scale(pilot)
            await pilot.press("P", "down")

        assert picture(snap_compare, services, size, drive)

    def test_published_procedure_that_cannot_be(
        self, snap_compare: Any, services: Services, size: tuple[int, int]
    ) -> None:
        services.save_profile(replace(EOS, mounts=("/data:/data",)))

        async def drive(pilot: Pilot[None]) -> None:
            await at_scale(pilot)
            await pilot.press("P")

        assert picture(snap_compare, services, size, drive)

    def test_submit_asks(self, snap_compare: Any, on_cluster: Services, size: tuple[int, int]) -> None:
        async def drive(pilot: Pilot[None]) -> None:
            await on_eos(pilot, "5", preflight=PASSED, steps=INSTALLED)
            wizard = pilot.app.screen
            wizard.post_message(
                Learned(Subject(EOS, made(pilot).selection), "render", {"draft": draft_of(made(pilot))}, over=True)
            )
            await pilot.pause()
            await pilot.press("6", "s")

        assert picture(snap_compare, on_cluster, size, drive)

    def test_run(self, snap_compare: Any, on_cluster: Services, size: tuple[int, int]) -> None:
        async def drive(pilot: Pilot[None]) -> None:
            await on_eos(pilot, "5", preflight=PASSED, steps=INSTALLED)
            wizard = pilot.app.screen
            run = replace(draft_of(made(pilot)).run, submission="submitted", job_ids=("48123",))
            on_cluster.runs().save(replace(run, job_state="COMPLETED"))
            await pilot.press("6")
            wizard.post_message(Learned(Subject(EOS, made(pilot).selection), "submit", {"launched": run}, over=True))
            await until(pilot, lambda: pilot.app.screen is not wizard, "the run's screen opens by itself")
            await pilot.press("escape")
            await until(pilot, lambda: pilot.app.screen is wizard, "the wizard is back")
            await pilot.pause()

        assert picture(snap_compare, on_cluster, size, drive)


@pytest.mark.parametrize("theme", ["textual-light", "ansi-dark", "ansi-light"])
def test_themes(snap_compare: Any, services: Services, theme: str) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        pilot.app.theme = theme
        await at_scale(pilot)

    assert picture(snap_compare, services, (120, 40), drive)


def test_no_color(snap_compare: Any, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert picture(snap_compare, services, (120, 40), at_scale)


def test_a_wide_terminal(snap_compare: Any, services: Services) -> None:
    assert picture(snap_compare, services, (200, 60), at_scale)


def test_the_whole_preview_in_a_small_terminal(snap_compare: Any, services: Services) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        await pilot.press("p")

    assert picture(snap_compare, services, (80, 24), drive)


def test_help(snap_compare: Any, services: Services) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        await pilot.press("question_mark")

    assert picture(snap_compare, services, (80, 24), drive)


@pytest.mark.parametrize("name", ["host key", "password", "failure"])
def test_dialogs(snap_compare: Any, services: Services, name: str) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        await loaded(pilot)
        dialogs: dict[str, ModalScreen[Any]] = {
            "host key": HostKey(
                "login.eos.example", "ssh-ed25519", "SHA256:AbCdEfGhIjKlMnOpQrStUvWxYz0123456789+/AbCdE"
            ),
            "password": Secret("(operator@eos) [Password]: ", echo=False),
            "failure": Failure(Trouble("The file [/home/x] was refused.", "Permission denied.", "Choose another.")),
        }
        pilot.app.push_screen(dialogs[name])
        await pilot.pause()
        for field in pilot.app.screen.query(Input):
            field.cursor_blink = False
            await pilot.press(*"secret")

    assert picture(snap_compare, services, (80, 24), drive)
