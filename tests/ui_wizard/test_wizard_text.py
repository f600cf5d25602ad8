"""Text of any origin is shown as it is: no markup is read, nothing reaches the terminal as an escape."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from textual.pilot import Pilot

from llmb_tui.cluster.preflight.report import Check, Preflight
from llmb_tui.errors import Trouble
from llmb_tui.launch.install import StepState
from llmb_tui.services import Draft, Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Failure, HostKey, Secret
from llmb_tui.ui.found import Doing, Subject
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.text import tell
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.ui.work import Learned
from tests.ui_wizard.found_states import EOS, INSTALLED, PASSED, draft_of
from tests.ui_wizard.wizard_pilot import choose, loaded, until

SHOWN = "[/home/x] [rank0]"
NASTY = f"{SHOWN} \x1b[31mred\x1b[0m \x1b]52;c;AAAA\x07 \x9b2J"


def on_screen(app: LlmbApp) -> str:
    """The text of the screen, without the breaks between styles."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", app.export_screenshot())
    return html.unescape("".join(texts)).replace("\u00a0", " ")


async def reported(pilot: Pilot[None], job: Doing, changes: dict[str, Any]) -> None:
    wizard = pilot.app.screen
    assert isinstance(wizard, WizardScreen)
    plan = wizard.query_one(Preview).made
    assert plan is not None
    wizard.post_message(Learned(Subject(EOS, plan.selection), job, changes, over=True))
    await pilot.pause()


@pytest.mark.parametrize("sink", ["banner", "check", "look", "install", "install trouble", "script", "submit"])
async def test_what_a_cluster_says(services: Services, sink: str) -> None:
    services.save_profile(EOS)
    app = LlmbApp(services)
    check = Check("disk", NASTY, "failed", NASTY, NASTY, NASTY)
    trouble = Trouble(NASTY, NASTY, NASTY)
    async with app.run_test(size=(160, 50)) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", "nemotron4@25.04/15b")
        await pilot.press("4", "c")
        await until(pilot, lambda: wizard.bar.link == "failed", "the look at nothing has failed")
        await pilot.pause()
        plan = wizard.query_one(Preview).made
        assert plan is not None
        ready = {"link": "connected", "trouble": None, "preflight": PASSED, "steps": INSTALLED}
        draft = Draft(draft_of(plan).run, f"#!/bin/bash\n{NASTY}\n")
        found: dict[str, tuple[Doing, dict[str, Any], str]] = {
            "banner": ("look", {**ready, "banner": NASTY}, "4"),
            "check": ("look", {**ready, "preflight": Preflight((check,))}, "4"),
            "look": ("look", {"link": "failed", "trouble": trouble, "failed": "look"}, "4"),
            "install": ("install", {**ready, "steps": (StepState("a", NASTY, "failed", NASTY, NASTY),)}, "5"),
            "install trouble": ("install", {**ready, "trouble": trouble, "failed": "install"}, "5"),
            "script": ("render", {**ready, "draft": draft}, "6"),
            "submit": ("submit", {**ready, "draft": draft, "trouble": trouble, "failed": "submit"}, "4"),
        }
        job, changes, step = found[sink]
        await reported(pilot, job, changes)
        await pilot.press(step)
        await pilot.pause()
        text = on_screen(app)
        assert SHOWN in text
        assert "\x1b" not in text
        assert "\x9b" not in text
        assert "AAAA" not in text


@pytest.mark.parametrize("sink", ["toast", "failure", "host key", "secret"])
async def test_dialogs_and_toasts(app: LlmbApp, sink: str) -> None:
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await loaded(pilot)
        if sink == "toast":
            tell(app, NASTY)
        elif sink == "failure":
            app.push_screen(Failure(Trouble(NASTY)))
        elif sink == "host key":
            app.push_screen(HostKey(NASTY, "ssh-ed25519", "SHA256:abc"))
        else:
            app.push_screen(Secret(NASTY, echo=True))
        await pilot.pause()
        text = on_screen(app)
        assert SHOWN in text
        assert "\x1b" not in text
        assert "AAAA" not in text
