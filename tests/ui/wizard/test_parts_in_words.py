"""Texts of the panes: a failed step, a profile that overrides the recipe, and a broken link."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.cluster.link import LinkHealth
from llmb_tui.errors import LlmbError
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.panes.install import progress, rows, step_parts
from llmb_tui.ui.panes.review import launch_facts
from llmb_tui.ui.widgets.texts import Paragraph
from llmb_tui.wizard.events import Answered
from llmb_tui.wizard.state import ClusterState
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import loaded
from tests.kit.runs import CATALOG
from tests.ui.wizard.found_states import EOS, INSTALLED, PASSED, draft_of, state_at


def words(parts: tuple[Paragraph, ...]) -> str:
    return "\n".join("".join(str(text) for text in part) for part in parts)


def test_failed_step_shows_reason_fix_and_api_key_hint() -> None:
    state = StepState(
        "a", "Image", "failed", "curl: (22) 401", reason="It was refused.", fix="Give a key.", key_would_help="ngc"
    )
    text = words(step_parts(state))
    assert all(word in text for word in ("curl: (22) 401", "It was refused.", "→ Give a key.", "K: enter the API key"))
    assert "K: enter the API key" not in words(step_parts(replace(state, key_would_help=None)))


def test_unreadable_install_shows_reason_and_fix() -> None:
    selection, lost = Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64), LlmbError("Slurm hangs.", "", "Wait.")
    failed = ClusterState(link="connected", preflight=PASSED, error=lost, failed_task="probe")
    text = words(progress(state_at(StepId.INSTALL, selection, cluster=failed)))
    assert "enter: install · c at step 4: check again" in text
    assert all(word in words(rows(failed)) for word in ("Slurm hangs.", "Wait."))
    assert "Slurm" not in words(rows(replace(failed, steps=INSTALLED)))
    read_only = state_at(StepId.INSTALL, selection, replace(EOS, read_only=True), cluster=failed)
    assert "enter: install" not in words(progress(read_only))
    probing = state_at(StepId.INSTALL, selection, cluster=replace(failed, tasks=frozenset({"probe"})))
    assert words(progress(probing)) == "checking the installation …"


def test_overridden_variable_is_shown_with_both_values() -> None:
    selection = Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64)
    prepared = replace(draft_of(plan(CATALOG, selection)), overridden=(("NCCL_NVLS_ENABLE", "0", "1"),))
    text = words(launch_facts(state_at(StepId.REVIEW, selection, cluster=ClusterState(prepared=prepared))))
    assert "NCCL_NVLS_ENABLE" in text
    assert "1, from the cluster's profile; the recipe has 0" in text
    assert "NCCL_NVLS_ENABLE" not in words(launch_facts(state_at(StepId.REVIEW, selection)))


@pytest.mark.parametrize(
    ("health", "said"),
    [
        (LinkHealth("live", 0.012, ""), "● eos 12 ms"),
        (LinkHealth("live", 0.012, "no answer for 7 s"), "◐ eos no answer for 7 s"),
        (LinkHealth("lost", None, "trying again in 4 s"), "✗ eos link lost, trying again in 4 s"),
        (
            LinkHealth("needs-login", None, "needs you to log in again"),
            "✗ eos needs you to log in again",
        ),
    ],
    ids=["well", "late", "lost", "needs-login"],
)
async def test_bar_shows_the_link_health(services: Services, health: LinkHealth, said: str) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 30)) as pilot:
        wizard = await loaded(pilot)
        wizard.bar.cluster, wizard.bar.link = EOS.name, "connected"
        wizard.bar.health = health
        assert said in str(wizard.bar.render())


async def test_bar_drops_the_link_health_of_the_previous_cluster(services: Services) -> None:
    services.clusters.save(EOS)
    services.clusters.save(replace(EOS, name="other"))
    app = LlmbApp(services)
    async with app.run_test(size=(120, 30)) as pilot:
        wizard = await loaded(pilot)
        wizard.dispatch(Answered("cluster", EOS.name))
        wizard.bar.health = LinkHealth("live", 0.012, "")
        wizard.dispatch(Answered("scale", "64"))
        assert "12 ms" in str(wizard.bar.render())
        wizard.dispatch(Answered("cluster", "other"))
        assert "other" in str(wizard.bar.render())
        assert "12 ms" not in str(wizard.bar.render())
