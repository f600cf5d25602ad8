"""Text of any origin is shown unchanged: no markup is parsed, no escape sequence reaches the terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from textual.app import App
from textual.screen import Screen

from llmb_tui.errors import LlmbError
from llmb_tui.launch.step_state import StepState
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.dialogs import Failure, HostKey, Secret
from llmb_tui.ui.text import notify
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.wizard.events import TaskFailed
from llmb_tui.wizard.state import ClusterState
from tests.kit.pilot import choose, know, loaded, on_screen, request_of, until
from tests.ui.run.conftest import Host
from tests.ui.wizard.found_states import EOS, INSTALLED, PASSED, draft_of

SHOWN = "[/home/x] [rank0]"
NASTY = f"{SHOWN} \x1b[31mred\x1b[0m \x1b]52;c;AAAA\x07 \x9b2J"


def is_harmless(app: App[Any], sink: str) -> None:
    text = on_screen(app)
    assert SHOWN in text, sink
    assert not {"\x1b", "\x9b"} & set(text), sink
    assert "AAAA" not in text, sink


async def test_text_from_a_cluster_is_harmless(services: Services) -> None:
    services.clusters.save(EOS)
    app = LlmbApp(services)
    check = Check("disk", NASTY, "failed", NASTY, NASTY, NASTY)
    error = LlmbError(NASTY, NASTY, NASTY)
    async with app.run_test(size=(160, 50)) as pilot:
        wizard = await loaded(pilot)
        await choose(pilot, "workload", "nemotron4@25.04/15b")
        await pilot.press("4", "c")
        await until(pilot, lambda: wizard.bar.link == "failed", "the probe has failed")
        await pilot.pause()
        plan = wizard.query_one(Preview).figures.plan
        assert plan is not None
        ready = ClusterState(link="connected", preflight=PASSED, steps=INSTALLED)
        draft = replace(draft_of(plan), script=f"#!/bin/bash\n{NASTY}\n")
        known = {
            "banner": (replace(ready, banner=NASTY), "4"),
            "check": (replace(ready, preflight=Preflight((check,))), "4"),
            "probe": (ClusterState(link="failed", unreachable=error), "4"),
            "install": (replace(ready, steps=(StepState("a", NASTY, "failed", NASTY, NASTY),)), "5"),
            "install trouble": (replace(ready, error=error, failed_task="install"), "5"),
            "script": (replace(ready, prepared=draft), "6"),
        }
        for sink, (cluster, step) in known.items():
            await know(pilot, wizard, cluster)
            await pilot.press(step)
            await pilot.pause()
            is_harmless(app, sink)
        await know(pilot, wizard, ready)
        wizard.dispatch(TaskFailed(request_of(wizard), "submit", error))
        await pilot.pause()
        is_harmless(app, "submit")


async def test_dialogs_and_toasts() -> None:
    app = Host(Screen)
    dialogs = (Failure(LlmbError(NASTY)), HostKey(NASTY, "ssh-ed25519", "SHA256:abc"), Secret(NASTY, echo=True))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        for dialog in dialogs:
            app.push_screen(dialog)
            await pilot.pause()
            is_harmless(app, type(dialog).__name__)
            app.pop_screen()
        notify(app, NASTY)
        await pilot.pause()
        is_harmless(app, "toast")
