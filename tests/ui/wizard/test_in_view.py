"""Small terminal: the focused widget stays visible, long text can be scrolled, disabled keys show the reason."""

from __future__ import annotations

from textual.widgets import Input

from llmb_tui.launch.policy import Policy
from llmb_tui.plan.selection import ON
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.panes.scale import ScalePane
from llmb_tui.ui.widgets.choices import Switches
from llmb_tui.wizard.events import Answered
from llmb_tui.wizard.state import ClusterState
from tests.kit.pilot import at_scale, know, on_screen
from tests.ui.wizard.found_states import EOS, INSTALLED

SMALL = (80, 24)


async def test_all_checks_of_a_cluster_can_be_scrolled_to(services: Services) -> None:
    services.clusters.save(EOS)
    checks = [Check("disk", f"Check {index}", "ok", "well", "", "") for index in range(40)]
    app = LlmbApp(services)
    async with app.run_test(size=SMALL) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("4")
        await know(pilot, wizard, ClusterState(link="connected", preflight=Preflight(tuple(checks))))
        assert "Check 39" not in on_screen(app)
        await pilot.press("tab", "end")
        await pilot.pause()
        assert "Check 39" in on_screen(app)


async def test_typed_field_stays_visible_with_its_errors(services: Services) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=SMALL) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("o")
        field = wizard.query_one("#load-checkpoint", Input)
        field.focus()
        await pilot.press(*"foo")
        await pilot.pause()
        assert "must be an absolute path" in on_screen(app)
        assert wizard.query_one(ScalePane).region.contains_region(field.region)


async def test_moved_switch_stays_visible(services: Services) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(80, 20)) as pilot:
        wizard = await at_scale(pilot)
        wizard.dispatch(Answered("save_checkpoint", ON))
        await pilot.press("o")
        switches, pane = wizard.query_one(Switches), wizard.query_one(ScalePane)
        for key in ("end", "home", "down", "down"):
            await pilot.press(key)
            await pilot.pause()
            row = switches.region.y + (switches.highlighted or 0) - switches.scroll_offset.y
            assert pane.region.y <= row < pane.region.bottom, key


async def test_disabled_key_shows_the_reason(services: Services) -> None:
    services.clusters.save(EOS)
    services.policy = Policy(True, None)
    app = LlmbApp(services)
    async with app.run_test(size=SMALL) as pilot:
        wizard = await at_scale(pilot)
        await know(pilot, wizard, ClusterState(link="connected", preflight=Preflight(()), steps=INSTALLED))
        await pilot.press("6", "s")
        assert any("read-only" in notification.message for notification in app._notifications), [*app._notifications]
