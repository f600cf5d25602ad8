"""The preview on the screen: visible parts, the preview key, scrolling, and local results."""

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
    """The parts of the preview that are completely visible."""
    preview = wizard.query_one(Preview)
    parts = (PlanFigures, TimeParts, ScaleChart, ScrolledRemarks)
    inside = preview.content_region
    return {
        part.__name__
        for part in parts
        if preview.query_one(part).is_on_screen and inside.contains_region(preview.query_one(part).region)
    }


def is_form_visible(wizard: WizardScreen) -> bool:
    return bool(wizard.query_one("#form").display)


def actions(wizard: WizardScreen) -> set[str]:
    return {one.binding.action for one in wizard.active_bindings.values()}


async def test_all_parts_are_visible_on_a_large_terminal(app: LlmbApp) -> None:
    async with app.run_test(size=(120, 36)) as pilot:
        wizard = await at_scale(pilot)
        for size in ((120, 36), (120, 40), (160, 45), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert visible_parts(wizard) == {"PlanFigures", "TimeParts", "ScaleChart", "ScrolledRemarks"}, size
            assert "preview" not in actions(wizard), "there is nothing to turn to"
            text = on_screen(app)
            assert "where the time goes (a model)" in text, size
            assert "● published ○ estimated ░ band" in text, size


async def test_long_remarks_leave_room_for_the_chart_and_can_be_scrolled(app: LlmbApp) -> None:
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


async def test_preview_key_cycles_form_figures_and_chart_on_a_small_terminal(app: LlmbApp) -> None:
    async with app.run_test(size=(80, 24)) as pilot:
        wizard = await at_scale(pilot)
        assert is_form_visible(wizard)
        assert visible_parts(wizard) == {"PlanFigures"}
        await pilot.press("p")
        await pilot.pause()
        assert not is_form_visible(wizard)
        assert {"PlanFigures", "ScrolledRemarks"} <= visible_parts(wizard)
        assert "ScaleChart" not in visible_parts(wizard)
        await pilot.press("p")
        await pilot.pause()
        assert visible_parts(wizard) == {"TimeParts", "ScaleChart"}
        assert "[16]" in on_screen(app)
        await pilot.press("p")
        await pilot.pause()
        assert is_form_visible(wizard)
        assert visible_parts(wizard) == {"PlanFigures"}


async def test_preview_key_shows_the_chart_on_a_low_terminal(app: LlmbApp) -> None:
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


async def test_event_right_after_a_key_updates_the_chart(app: LlmbApp) -> None:
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
        await until(pilot, lambda: 96 in {point.gpus for point in preview.points}, "the typed scale has its point")
        assert "[96]" in on_screen(app)
        await pilot.press("escape", "l", "4")
        await until(pilot, lambda: not any(point.published for point in preview.points), "nothing of it is published")
        made = preview.figures.plan
        assert made is not None
        assert preview.points == over_scale(CATALOG, made.selection)


async def test_invalid_scale_has_no_chart(app: LlmbApp) -> None:
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("tab", "0")
        await until(pilot, lambda: not wizard.query_one(Preview).points, "there is nothing to draw")
        await pilot.pause()
        assert visible_parts(wizard) == {"PlanFigures"}


def result_of(run_id: str, step_time_s: float, ended_at: float = 1.0) -> ClusterResult:
    return ClusterResult(run_id, plan(CATALOG, NEMOTRON), step_time_s, ended_at, "direct", "our script")


class Measured(LocalResults):
    """Finished runs by cluster; those of a cluster in `held` are read late."""

    def __init__(self, services: Services) -> None:
        super().__init__(services.feed.records, services.catalog)
        self.by_cluster: dict[str, tuple[ClusterResult, ...]] = {}
        self.read: list[str] = []
        self.held: dict[str, threading.Event] = {}
        self.done: list[str] = []

    def of(self, cluster: str) -> tuple[ClusterResult, ...]:
        self.read.append(cluster)
        if cluster in self.held:
            self.held[cluster].wait()
        self.done.append(cluster)
        return self.by_cluster.get(cluster, ())


@pytest.fixture
def measured(services: Services) -> Measured:
    services.local_results = found = Measured(services)
    services.clusters.save(EOS)
    found.by_cluster["eos"] = (result_of("250101-first", 2.71), result_of("250102-second", 2.73, 2.0))
    return found


def local_row(wizard: WizardScreen) -> str:
    """The row of local results; empty if there is none."""
    rows = [row.plain for row in wizard.query_one(PlanFigures).rows(90)]
    at = next((index for index, row in enumerate(rows) if row.startswith("here ")), None)
    if at is None:
        return ""
    folded = takewhile(lambda row: row.startswith(" "), rows[at + 1 :])
    return " ".join(" ".join([rows[at], *folded]).split())


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("size", [(80, 24), (120, 36)], ids=["80x24", "120x36"])
async def test_results_of_the_chosen_cluster_have_their_row(services: Services, size: tuple[int, int]) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=size) as pilot:
        wizard = await at_scale(pilot)
        await until(pilot, lambda: wizard.query_one(Preview).figures.measured is not None, "the runs are read")
        await pilot.pause()
        text = on_screen(app)
        assert "measured here" in text
        assert "2.66 s" in text, "the published number stays"
        if size == (80, 24):
            await pilot.press("p")
            await pilot.pause()
        assert "250102-second, 250101-first" in local_row(wizard)


async def test_results_are_read_per_cluster_and_not_per_key(services: Services, measured: Measured) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await until(pilot, lambda: wizard.query_one(Preview).figures.measured is not None, "the runs are read")
        read = len(measured.read)
        await pilot.press("down", "down", "up", "up")
        assert len(measured.read) == read
        assert "2 runs of this configuration" in local_row(wizard)
        await pilot.press("down")
        assert "of other configurations" in local_row(wizard), "they are less certain for another scale"


async def test_results_of_a_cluster_that_is_no_longer_chosen_are_dropped(
    services: Services, measured: Measured
) -> None:
    services.clusters.save(replace(EOS, name="selene"))
    measured.held["eos"] = threading.Event()
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        assert measured.read == [], "of several clusters none is chosen by itself"
        await pilot.press("4")
        await choose(pilot, "clusters", "eos")
        await until(pilot, lambda: "eos" in measured.read, "the first cluster's runs are asked for")
        await choose(pilot, "clusters", "selene")
        await until(pilot, lambda: "selene" in measured.done, "the second one's are read")
        measured.held["eos"].set()
        await until(pilot, lambda: "eos" in measured.done, "the first one's come late")
        await pilot.pause()
        assert local_row(wizard) == ""


async def test_run_that_ended_meanwhile_counts_after_the_return(services: Services, measured: Measured) -> None:
    measured.by_cluster["eos"] = ()
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await until(pilot, lambda: "eos" in measured.done, "there is none yet")
        assert local_row(wizard) == ""
        measured.by_cluster["eos"] = (result_of("250103-third", 2.70),)
        await pilot.press("J")
        await until(pilot, lambda: app.screen is not wizard, "the runs are shown")
        await pilot.press("q")
        await until(pilot, lambda: "250103-third" in local_row(wizard), "the results are read again")
