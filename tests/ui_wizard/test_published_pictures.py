"""Pictures of Review with the published procedure: the command, the question, a launch on its way, what cannot be.

`python -m pytest tests/ui_wizard --snapshot-update` draws them again; look at each one before keeping it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from llmb_tui.store.paths import Places
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Confirm
from llmb_tui.ui.found import Subject
from llmb_tui.ui.launching import Launching
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.work import Learned
from llmb_tui.wizard.steps import StepId
from tests.ui_wizard.found_states import EOS
from tests.ui_wizard.published_pilot import LOST, Open, at_procedures, at_review, made
from tests.ui_wizard.wizard_pilot import marks, on_top, until

SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])
Drive = Callable[[Pilot[None]], Awaitable[None]]


@pytest.fixture
def services(tmp_path: Path) -> Open:
    found = Open(Places(tmp_path / "config", tmp_path / "state"))
    found.save_profile(EOS)
    return found


def picture(snap_compare: Any, services: Open, size: tuple[int, int], drive: Drive) -> bool:
    return bool(snap_compare(LlmbApp(services), terminal_size=size, run_before=drive))


async def reviewed(pilot: Pilot[None]) -> WizardScreen:
    wizard = await at_procedures(pilot)
    await at_review(pilot, wizard, "down")
    return wizard


@SIZES
def test_review(snap_compare: Any, services: Open, size: tuple[int, int]) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        await reviewed(pilot)

    assert picture(snap_compare, services, size, drive)


@SIZES
def test_the_question(snap_compare: Any, services: Open, size: tuple[int, int]) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        await reviewed(pilot)
        await pilot.press("s")
        await on_top(pilot, Confirm)

    assert picture(snap_compare, services, size, drive)


@SIZES
def test_a_launch_on_its_way(snap_compare: Any, services: Open, size: tuple[int, int]) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        wizard = await reviewed(pilot)
        draft = wizard._found.draft
        assert draft is not None
        # It has begun in an hour: the clock of the picture stands still.
        on_its_way = Launching(draft.run, time.monotonic() + 3600, "[NeMo I 2025-04-30] Importing nemo.collections.llm")
        subject = Subject(EOS, made(wizard).selection, "recipe")
        wizard.post_message(Learned(subject, "submit", {"launching": on_its_way}))
        await until(pilot, lambda: wizard._found.launching is not None, "it is on its way")
        await pilot.pause()

    assert picture(snap_compare, services, size, drive)


@SIZES
def test_commits_that_are_not_public(snap_compare: Any, services: Open, size: tuple[int, int]) -> None:
    commit = "Commit f260da5d65fccdf9c78283647f7497d9428fb654 is not in https://github.com/NVIDIA/NeMo.git."
    mend = "Choose another GPU type, or the direct procedure."

    async def drive(pilot: Pilot[None]) -> None:
        wizard = await at_procedures(pilot)
        await pilot.press("down")
        services.public = replace(LOST, found=f"{commit} It may not be public.", mend=mend)
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(wizard)[StepId.SCALE] == "flagged", "the commits were looked for")
        await pilot.press("6")

    assert picture(snap_compare, services, size, drive)
