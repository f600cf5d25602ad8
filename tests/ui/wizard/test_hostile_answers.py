"""A login node whose commands return text that could reach the terminal, break a form or delay keys."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.geometry import Region

from llmb_tui.cluster.local import LocalConnection
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.cluster_editor import ClusterEditor
from llmb_tui.ui.screens.jobs import JobsScreen
from llmb_tui.ui.screens.run import RunScreen
from llmb_tui.ui.screens.wizard import WizardScreen
from tests.kit.pilot import SIZE, actions, at_scale, on_screen, on_top, state_of, until
from tests.kit.runs import make_run

COMMANDS = (
    "sinfo squeue sacct sacctmgr scontrol sbatch scancel srun enroot id df quota lfs curl git hostname uname python3 "
    "nvidia-smi uv conda nproc free findmnt getconf module getent"
)
# Clipboard, cursor, C1, direction, tag and zero-width characters, Textual's markup, invalid UTF-8, NUL.
HOSTILE = (
    rb"\033]52;c;ZXZpbA==\a\033[2J\033[31m\302\233\342\200\256|[/red][@click=app.quit]x[/]|[b|\000|\377\376|"
    rb"\363\240\201\201\342\200\213e\314\201\314\201\314\201|a b|x=y z=[/]|../../etc|-rf|$(id)|%s"
)
FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\U000e0000-\U000e007f]")


@pytest.fixture
def login_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> SlurmProfile:
    """This machine as its own login node, with hostile stand-ins for the programs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in COMMANDS.split():
        (programs / name).write_text(request.param)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    return SlurmProfile("here", "local", "acct", "batch", str(tmp_path / "install"), transport="local")


def script(*lines: str) -> str:
    return "\n".join(["#!/bin/sh", *lines, ""])


ANSWERS = {
    "on stdout": script(f"for i in 1 2 3; do printf '{HOSTILE.decode()}\\n'; done"),
    "on stderr": script(f"printf '{HOSTILE.decode()}\\n' >&2; exit 1"),
    "a long line": script("head -c 300000 /dev/zero | tr '\\0' '['; exit 0"),
    "nothing": script("exit 0"),
}


def shown(app: App[Any]) -> str:
    """Every character that would reach the terminal."""
    region = Region(0, 0, *app.size)
    rows = app.screen._compositor.render_strips(region.size) if app.screen.is_mounted else []
    return "".join(strip.text for strip in rows)


@pytest.mark.parametrize("login_node", [pytest.param(text, id=name) for name, text in ANSWERS.items()], indirect=True)
async def test_hostile_output_does_not_reach_the_terminal(services: Services, login_node: SlurmProfile) -> None:
    services.clusters.save(login_node)
    app = LlmbApp(services)
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        for keys in (("4", "enter"), ("5", "enter"), ("6",), ("7",)):
            await pilot.press(*keys)
            await until(pilot, lambda: not state_of(wizard).cluster.tasks, f"the answers to {keys}")
            await pilot.pause()
            assert not FORBIDDEN.search(shown(app))
        await pilot.press("4", "e")
        await on_top(pilot, ClusterEditor)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "reading" not in on_screen(app), "the form is read")
        assert not FORBIDDEN.search(shown(app))
        assert actions(app.screen)


@pytest.mark.parametrize("login_node", [ANSWERS["nothing"]], indirect=True)
async def test_slow_output_delays_no_key(
    services: Services, login_node: SlurmProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, stream, trickle = LocalConnection.run, LocalConnection.stream, ("sh", "-c", "while printf x; do sleep 5; done")
    monkeypatch.setattr(LocalConnection, "run", lambda link, _argv, **options: run(link, trickle, **options))
    monkeypatch.setattr(LocalConnection, "stream", lambda link, _argv: stream(link, trickle))
    services.clusters.save(login_node)
    services.runs.save(make_run("going", cluster=login_node.name, job_state="RUNNING"))
    services.runs.save(make_run("open", cluster=login_node.name, submission="unknown", job_ids=()))
    app = LlmbApp(services)
    before = set(threading.enumerate())
    async with app.run_test(size=SIZE) as pilot:
        wizard = await at_scale(pilot)
        await pilot.press("4", "enter")
        await until(pilot, lambda: state_of(wizard).cluster.tasks, "the cluster is asked")
        await pilot.press("e")
        await on_top(pilot, ClusterEditor)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: "connecting" in on_screen(app) or "reading" in on_screen(app), "the active query")
        await pilot.press("escape")
        await on_top(pilot, WizardScreen)
        for key, screen in (("J", JobsScreen), ("w", RunScreen)):
            await pilot.press(key)
            await on_top(pilot, screen)
            await pilot.press("escape")
            await on_top(pilot, WizardScreen)
        await pilot.press("1")
        await until(pilot, lambda: state_of(wizard).step.name == "WORKLOAD", "the first step")
        assert state_of(wizard).cluster.tasks, "the query is still active"
    assert all(thread.daemon for thread in threading.enumerate() if thread not in before)
