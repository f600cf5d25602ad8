"""Pictures of Review with NVIDIA's scripts: command, confirmation, active launch, and commits that are not public.

`python -m pytest tests/ui/wizard --snapshot-update` draws them again; look at each one before keeping it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import ConfirmDialog
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.wizard.state import Launch
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import marks, on_top, state_of, until
from tests.ui.wizard.found_states import EOS
from tests.ui.wizard.upstream_pilot import LOST, Open, at_procedures, at_review

SMALL = (80, 24)


@pytest.fixture
def services(places: UserPaths) -> Open:
    result = Open(places)
    result.clusters.save(EOS)
    return result


async def reviewed(pilot: Pilot[None]) -> WizardScreen:
    wizard = await at_procedures(pilot)
    await at_review(pilot, wizard, "down")
    return wizard


def test_review(snap_compare: Any, services: Open) -> None:
    assert snap_compare(LlmbApp(services), terminal_size=SMALL, run_before=reviewed)


def test_the_question(snap_compare: Any, services: Open) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        await reviewed(pilot)
        await pilot.press("s")
        await on_top(pilot, ConfirmDialog)

    assert snap_compare(LlmbApp(services), terminal_size=SMALL, run_before=drive)


def test_a_launch_on_its_way(snap_compare: Any, services: Open) -> None:
    async def drive(pilot: Pilot[None]) -> None:
        wizard = await reviewed(pilot)
        draft = state_of(wizard).cluster.prepared
        assert draft is not None
        # The start is an hour in the future, so that the picture shows 0 seconds.
        launch = Launch(draft.run, time.monotonic() + 3600, "[NeMo I 2025-04-30] Importing nemo.collections.llm")
        wizard.state = replace(state_of(wizard), launch=launch)
        await pilot.pause()

    assert snap_compare(LlmbApp(services), terminal_size=SMALL, run_before=drive)


def test_commits_that_are_not_public(snap_compare: Any, services: Open) -> None:
    commit = "Commit f260da5d65fccdf9c78283647f7497d9428fb654 is not in https://github.com/NVIDIA/NeMo.git."
    fix = "Choose another GPU type, or our script."

    async def drive(pilot: Pilot[None]) -> None:
        await at_procedures(pilot)
        await pilot.press("down")
        services.stand_in.public = replace(LOST, found=f"{commit} It may not be public.", fix=fix)
        await pilot.press("4", "c")
        await until(pilot, lambda: marks(pilot)[StepId.SCALE] == "flagged", "the commits were looked for")
        await pilot.press("6")

    assert snap_compare(LlmbApp(services), terminal_size=SMALL, run_before=drive)
