"""The preview on the screen: visible parts, the chart key, scrolling, and step times measured here."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import takewhile

import pytest
from textual.pilot import Pilot

from llmb_tui.plan.calibration import ClusterEstimate, ClusterResult
from llmb_tui.plan.make import plan
from llmb_tui.plan.over_scale import over_scale
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.figures import PlanFigures, TimeParts
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.ui.widgets.scale_chart import ScaleChart
from llmb_tui.ui.widgets.texts import ScrolledRemarks
from llmb_tui.watch.local_results import LocalResults
from tests.kit.pilot import SIZE, choose, loaded, on_screen, state_of, until
from tests.kit.runs import CATALOG
from tests.ui.wizard.found_states import EOS

NEMOTRON = Selection("nemotron4", "25.04", "15b", "h100", "bf16", 16)
GROK = "grok1@25.02/314b"


async def at_scale(pilot: Pilot[None], workload: str = "nemotron4@25.04/15b") -> WizardScreen:
    wizard = await loaded(pilot)
    await choose(pilot, "workload", workload)
    await pilot.press("3")
    await until(pilot, lambda: bool(wizard.query_one(Preview).points), "the chart is drawn")
    await pilot.pause()
    return wizard


def visible_parts(wizard: WizardScreen) -> set[str]:
    """Parts of the preview that are completely visible."""
    preview = wizard.query_one(Preview)
    parts = (PlanFigures, TimeParts, ScaleChart, ScrolledRemarks)
    inside = preview.content_region
    return {
        part.__name__
        for part in parts
        if preview.query_one(part).is_on_screen and inside.contains_region(preview.query_one(part).region)
    }


def form_is_seen(wizard: WizardScreen) -> bool:
    return bool(wizard.query_one("#form").display)


def actions(wizard: WizardScreen) -> set[str]:
    return {active.binding.action for active in wizard.active_bindings.values()}


async def test_all_parts_are_visible_if_there_is_room(app: LlmbApp) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        wizard = await at_scale(pilot)
        for size in ((120, 36), (120, 40), (160, 45), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert visible_parts(wizard) == {"PlanFigures", "TimeParts", "ScaleChart", "ScrolledRemarks"}, size
            assert "preview" not in actions(wizard), "no part is hidden"
            text = on_screen(app)
            assert "step time breakdown (modelled)" in text, size
            assert "● published ○ estimated ░ band" in text, size


async def test_long_remarks_leave_room_for_the_chart_and_scroll_by_keyboard(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot, GROK)
        await choose(pilot, "scale", "1024")
        await pilot.pause()
        assert {"PlanFigures", "TimeParts", "ScaleChart"} <= visible_parts(wizard)
        scroller = wizard.query_one(Preview).query_one(ScrolledRemarks)
        assert scroller.can_focus
        assert scroller.max_scroll_y > 0
        for _ in range(40):
            if scroller.has_focus:
                break
            await pilot.press("tab")
        assert scroller.has_focus
        await pilot.press("end")
        await pilot.pause()
        assert scroller.scroll_y == scroller.max_scroll_y


async def test_tab_skips_short_remarks(app: LlmbApp) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_scale(pilot)
        assert not wizard.query_one(Preview).query_one(ScrolledRemarks).can_focus


async def test_in_a_small_terminal_a_key_shows_form_figures_and_chart_in_turn(app: LlmbApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await at_scale(pilot)
        assert form_is_seen(wizard)
        assert visible_parts(wizard) == {"PlanFigures"}
        await pilot.press("p")
        await pilot.pause()
        assert not form_is_seen(wizard)
        assert {"PlanFigures", "ScrolledRemarks"} <= visible_parts(wizard)
        assert "ScaleChart" not in visible_parts(wizard)
        await pilot.press("p")
        await pilot.pause()
        assert visible_parts(wizard) == {"TimeParts", "ScaleChart"}
        assert "[16]" in on_screen(app)
        await pilot.press("p")
        await pilot.pause()
        assert form_is_seen(wizard)
        assert visible_parts(wizard) == {"PlanFigures"}


async def test_in_a_low_terminal_a_key_shows_the_chart_next_to_the_form(app: LlmbApp) -> None:
    async with app.run_test(size=(120, 24)) as pilot:
        wizard = await at_scale(pilot)
        assert "ScaleChart" not in visible_parts(wizard)
        assert "preview" in actions(wizard)
        await pilot.press("p")
        await pilot.pause()
        assert visible_parts(wizard) == {"TimeParts", "ScaleChart"}
        assert wizard.query_one("#form").display
        await pilot.press("p")
        await pilot.pause()
        assert "PlanFigures" in visible_parts(wizard)


async def test_another_step_shows_the_form_again(app: LlmbApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("p", "p", "2")
        await pilot.pause()
        assert wizard.query_one("#form").display
        assert not wizard.query_one(Preview).charted


async def test_an_estimate_after_a_key_does_not_restore_an_old_chart(app: LlmbApp) -> None:
    async with app.run_test(size=(120, 40)) as pilot:
        wizard = await at_scale(pilot)
        earlier, old_points = state_of(wizard), wizard.query_one(Preview).points
        await pilot.press("1")
        await choose(pilot, "workload", GROK)
        preview = wizard.query_one(Preview)
        await until(pilot, lambda: preview.points != old_points, "the other chart is drawn")
        wizard.state = earlier
        wizard.state = replace(earlier, measured=ClusterEstimate(2.7, 2.6, 2.8, "two runs", ("a", "b"), same=True))
        await pilot.pause()
        assert preview.points == old_points


async def test_the_chart_follows_the_answers(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        preview = wizard.query_one(Preview)
        await pilot.press("tab", *"96")
        await until(pilot, lambda: 96 in {point.gpus for point in preview.points}, "the point of the typed scale")
        assert "[96]" in on_screen(app)
        await pilot.press("escape", "l", "4")
        await until(pilot, lambda: not any(point.published for point in preview.points), "no point is published")
        run_plan = preview.figures.plan
        assert run_plan is not None
        assert preview.points == over_scale(CATALOG, run_plan.selection)


async def test_an_invalid_scale_has_no_chart(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("tab", "0")
        await until(pilot, lambda: not wizard.query_one(Preview).points, "no points")
        await pilot.pause()
        assert visible_parts(wizard) == {"PlanFigures"}


def result_of(run_id: str, step_time_s: float, ended_at: float = 1.0) -> ClusterResult:
    return ClusterResult(run_id, plan(CATALOG, NEMOTRON), step_time_s, ended_at, "direct", "our script")


class Measured(LocalResults):
    """Finished runs by cluster; those of a cluster in `delayed` are returned after its event is set."""

    def __init__(self, services: Services) -> None:
        super().__init__(services.feed.records, services.catalog)
        self.by_cluster: dict[str, tuple[ClusterResult, ...]] = {}
        self.read: list[str] = []
        self.delayed: dict[str, threading.Event] = {}
        self.done: list[str] = []

    def of(self, cluster: str) -> tuple[ClusterResult, ...]:
        self.read.append(cluster)
        if cluster in self.delayed:
            self.delayed[cluster].wait()
        self.done.append(cluster)
        return self.by_cluster.get(cluster, ())


@pytest.fixture
def measured(services: Services) -> Measured:
    services.local_results = results = Measured(services)
    services.clusters.save(EOS)
    results.by_cluster["eos"] = (result_of("250101-first", 2.71), result_of("250102-second", 2.73, 2.0))
    return results


def here(wizard: WizardScreen) -> str:
    """Rows of the step time by earlier runs; empty without such runs."""
    rows = [row.plain for row in wizard.query_one(PlanFigures).rows(90)]
    first = next((index for index, row in enumerate(rows) if row.startswith("cluster ")), None)
    if first is None:
        return ""
    wrapped = takewhile(lambda row: row.startswith(" "), rows[first + 1 :])
    return " ".join(" ".join([rows[first], *wrapped]).split())


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])
async def test_runs_on_the_chosen_cluster_have_a_separate_row(services: Services, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_scale(pilot)
        await until(pilot, lambda: wizard.query_one(Preview).figures.measured is not None, "the runs are read")
        await pilot.pause()
        text = on_screen(app)
        assert "measured here" in text
        assert "2.66 s" in text, "the published step time is also shown"
        if size == (80, 24):
            await pilot.press("p")
            await pilot.pause()
        assert "250102-second, 250101-first" in here(wizard)


async def test_runs_are_read_when_the_cluster_changes_and_not_at_each_key(
    services: Services, measured: Measured
) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await until(pilot, lambda: wizard.query_one(Preview).figures.measured is not None, "the runs are read")
        read = len(measured.read)
        await pilot.press("down", "down", "up", "up")
        assert len(measured.read) == read
        assert "2 runs of this configuration" in here(wizard)
        await pilot.press("down")
        assert "of other configurations" in here(wizard), "the other scale has no run"


async def test_late_runs_of_a_cluster_that_is_not_chosen_any_more_are_dropped(
    services: Services, measured: Measured
) -> None:
    services.clusters.save(replace(EOS, name="selene"))
    measured.delayed["eos"] = threading.Event()
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        assert measured.read == [], "no cluster of several is chosen automatically"
        await pilot.press("4")
        await choose(pilot, "clusters", "eos")
        await until(pilot, lambda: "eos" in measured.read, "the first cluster's runs are asked for")
        await choose(pilot, "clusters", "selene")
        await until(pilot, lambda: "selene" in measured.done, "the second one's are read")
        measured.delayed["eos"].set()
        await until(pilot, lambda: "eos" in measured.done, "the first one's come late")
        await pilot.pause()
        assert here(wizard) == ""


async def test_runs_are_read_again_on_return_from_another_screen(services: Services, measured: Measured) -> None:
    measured.by_cluster["eos"] = ()
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await until(pilot, lambda: "eos" in measured.done, "the answer without a run")
        assert here(wizard) == ""
        measured.by_cluster["eos"] = (result_of("250103-third", 2.70),)
        await pilot.press("J")
        await until(pilot, lambda: app.screen is not wizard, "the runs are shown")
        await pilot.press("q")
        await until(pilot, lambda: "250103-third" in here(wizard), "the new run")
