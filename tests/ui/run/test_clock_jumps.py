"""Lists whose clock jumps while they are open, as when a laptop wakes with a wrong time that is then corrected."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from textual.app import App

from llmb_tui.cluster.prompter import NonInteractivePrompter
from llmb_tui.services import Services
from llmb_tui.ui.screens.jobs import JobsScreen
from llmb_tui.ui.screens.results import ResultsScreen
from tests.kit.pilot import on_screen, until
from tests.kit.runs import CREATED_AT
from tests.ui.run.conftest import Host

DAY_S = 86_400.0
JUMPS_S = (-7200.0, 7200.0, -400 * DAY_S, 400 * DAY_S, 0.0)
NEGATIVE_AGE = re.compile(r"-\d+(?:s|m|h|d| s| min| h| d)\b")


@pytest.mark.parametrize(("screen", "two_hours_later"), [(JobsScreen, "2h"), (ResultsScreen, "3h")])
async def test_a_list_shows_no_negative_age_when_its_clock_jumps(
    open_jobs: Callable[..., tuple[App[None], Services]], screen: type[JobsScreen | ResultsScreen], two_hours_later: str
) -> None:
    _, services = open_jobs()
    now = [CREATED_AT]
    app = Host(lambda: screen(services, NonInteractivePrompter(), clock=lambda: now[0]))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: "nemotron4" in on_screen(app), "the list")
        for jump_s in JUMPS_S:
            now[0] = CREATED_AT + jump_s
            await pilot.resize_terminal(100, 30)  # draws the list anew
            await pilot.resize_terminal(120, 36)
            youngest = {400 * DAY_S: "400d", 7200.0: two_hours_later}.get(jump_s, "")
            await until(pilot, lambda age=youngest: age in on_screen(app), f"the age after {jump_s:.0f} s")
            assert not NEGATIVE_AGE.search(on_screen(app)), on_screen(app)
