"""What the panes say of a step that failed, of a profile that changes the recipe, and of a link that is not well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmb_tui.catalog.load import load_presets
from llmb_tui.cluster.health import LinkHealth
from llmb_tui.launch.install import StepState
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.found import Found
from llmb_tui.ui.panes.install import step_parts
from llmb_tui.ui.panes.review import changes
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.paragraphs import Paragraph
from llmb_tui.wizard.answers import Answers
from tests.ui_wizard.found_states import EOS, draft_of
from tests.ui_wizard.wizard_pilot import loaded


def words(parts: tuple[Paragraph, ...]) -> str:
    return "\n".join("".join(str(text) for text in part) for part in parts)


def test_a_step_that_failed_says_why_what_to_do_and_that_a_key_may_help() -> None:
    state = StepState(
        "a", "Image", "failed", "curl: (22) 401", reason="It was refused.", fix="Give a key.", key_would_help="ngc"
    )
    said = words(step_parts(state))
    assert all(word in said for word in ("curl: (22) 401", "It was refused.", "→ Give a key.", "K gives a key"))
    assert "K gives a key" not in words(step_parts(replace(state, key_would_help=None)))


def test_a_variable_of_the_recipe_that_the_profile_changes_is_named_with_both_values() -> None:
    catalog = load_presets()
    made = plan(catalog, Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64))
    draft = draft_of(made)
    spec = replace(draft.run.direct, overridden=(("NCCL_NVLS_ENABLE", "0", "1"),))
    draft = replace(draft, run=replace(draft.run, spec=spec))
    view = View(catalog, Answers(), Answers(), made, Found(profile=EOS, draft=draft))
    assert "NCCL_NVLS_ENABLE" in words(changes(view))
    assert "1, from the cluster's profile; the recipe has 0" in words(changes(view))
    assert changes(replace(view, found=Found(profile=EOS))) == ()


@pytest.mark.parametrize(
    ("health", "said"),
    [
        (LinkHealth("live", 0.012, 0.2, "", "own"), "● eos 12 ms"),
        (LinkHealth("live", 0.012, 7.0, "no answer for 7 s", "own"), "◐ eos no answer for 7 s"),
        (LinkHealth("lost", None, 0.0, "trying again in 4 s", "shared"), "✗ eos link lost, trying again in 4 s"),
        (
            LinkHealth("needs-login", None, 0.0, "needs you to log in again", "shared"),
            "✗ eos needs you to log in again",
        ),
    ],
    ids=["well", "late", "lost", "needs-login"],
)
async def test_the_bar_says_how_the_link_is(services: Services, health: LinkHealth, said: str) -> None:
    app = LlmbApp(services)
    async with app.run_test(size=(120, 30)) as pilot:
        wizard = await loaded(pilot)
        wizard.bar.cluster, wizard.bar.link = EOS.name, "connected"
        wizard.bar.health = health
        assert said in str(wizard.bar.render())
