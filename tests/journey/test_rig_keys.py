"""A registry that wants a key: the screen asks for one, and the install goes on with it."""

from __future__ import annotations

from pathlib import Path

from textual.widgets import Input, Static

from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.keys import KeysDialog
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import SIZE, choose, loaded, marks, on_top, until
from tests.rig.cluster import Rig

KEY = "nvapi-0123456789abcdef0123456789abcdef"


async def test_an_image_that_is_refused_is_fetched_with_a_key_typed_on_the_screen(rig: Rig, places: UserPaths) -> None:
    rig.set("needs-key", KEY)
    services = Services(places)
    services.clusters.save(rig.profile(name="rig", install_dir=str(rig.new_dir())))
    app = LlmbApp(services)
    with rig.fresh_home():
        async with app.run_test(size=SIZE) as pilot:
            await loaded(pilot)
            await choose(pilot, "workload", "nemotron4@25.04/15b")
            await pilot.press("5", "enter")
            await on_top(pilot, KeysDialog)
            message = app.screen.query_one("#key-status", Static)
            await until(pilot, lambda: "asking" not in str(message.render()), "it is known where the keys are")
            app.screen.query_one("#key", Input).value = KEY
            await pilot.press("enter")
            await until(pilot, lambda: ".credentials" in str(message.render()), "the key is on the cluster")
            await pilot.press("escape")
            await on_top(pilot, WizardScreen)
            await pilot.press("enter")
            await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is whole", deadline_s=180)
            assert KEY not in app.export_screenshot()
    assert not [path for path in kept(places) if KEY in path.read_text(errors="replace")]


def kept(places: UserPaths) -> list[Path]:
    return [path for root in (places.config, places.state) for path in root.rglob("*") if path.is_file()]
