"""Suites by keyboard on the embedded cluster: chosen, submitted, left and opened again, watched to their verdicts."""

from __future__ import annotations

import pytest

from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import ConfirmDialog
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.screens.suite import DraftRows, SuiteScreen
from llmb_tui.ui.screens.suite_watch import SuiteRows, SuiteWatchScreen
from llmb_tui.ui.screens.suites import SuitesScreen
from llmb_tui.watch.timing import Timing
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import SIZE, at_scale, choose, marks, on_top, shown_run_state, text_of, until

QUICK = Timing(read_every_s=0.5, look_every_s=0.5, settle_every_s=0.5)


@pytest.mark.usefixtures("cluster")
async def test_from_choices_to_verdicts(places: UserPaths) -> None:
    services = Services(places, timing=QUICK)
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        await at_scale(pilot)
        await choose(pilot, "scale", "16")
        await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the saved cluster answers and is ticked")
        await pilot.press("5", "enter")
        await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is whole")
        await pilot.press("3", "S")
        await on_top(pilot, SuiteScreen)
        await until(pilot, lambda: "on 288 free nodes" in text_of(app, "#suite-sums"), "the cluster was asked")
        await pilot.press("down", "space")
        await until(pilot, lambda: app.screen.query_one(DraftRows).row_count == 2, "two rows")

        await pilot.press("s")
        await on_top(pilot, ConfirmDialog)
        await pilot.press("y")
        await on_top(pilot, SuiteWatchScreen)
        await pilot.press("q", "o")
        await on_top(pilot, SuitesScreen)
        await until(pilot, lambda: "of 2 runs done" in text_of(app, "#list-about"), "it is listed")
        await pilot.press("enter")
        await on_top(pilot, SuiteWatchScreen)
        await until(pilot, lambda: "2 of 2 runs done: 2 PASS" in text_of(app, "#watch-sums"), "both verdicts")
        table = app.screen.query_one(SuiteRows)
        assert [str(cell) for cell in table.get_column("verdict")] == ["✓ PASS", "✓ PASS"]

        await pilot.press("enter")
        await on_top(pilot, RunScreen)
        await until(pilot, lambda: shown_run_state(pilot).progress.steps_done == 50, "the run itself")
        await pilot.press("q")
        await on_top(pilot, SuiteWatchScreen)
        await pilot.press("q")
        await on_top(pilot, SuiteScreen)

        # A ready-made one: two short runs, then the full run of the faster layout. What comes of it the verbs show.
        app.screen.query_one("#suite-kind").focus()
        await pilot.press("end")
        app.screen.query_one("#suite-count").focus()
        await pilot.press("2")
        await until(pilot, lambda: "3 runs: " in text_of(app, "#suite-sums"), "the tune is planned")
        await pilot.press("escape", "s")
        await on_top(pilot, ConfirmDialog)
    (scales,) = services.suites.all()
    assert scales.kind == "custom"
    assert sorted(run.id for run in services.runs.all()) == sorted(scales.run_ids)
