"""What the tests of the published procedure do again and again, by keyboard, and a cluster that lets everybody in."""

from __future__ import annotations

from typing import Any, cast

from textual.pilot import Pilot

from llmb_tui.catalog.load import load_presets
from llmb_tui.cluster.preflight.report import Check, Preflight
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.launch.install import StepState
from llmb_tui.launch.secrets import SecretState
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import Procedure, Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import Places
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.published import published_launch
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.paragraphs import Paragraph
from llmb_tui.ui.widgets.preview import Preview
from llmb_tui.wizard.steps import StepId
from tests.ui_wizard.found_states import EOS, INSTALLED, PASSED
from tests.ui_wizard.wizard_pilot import choose, loaded, marks, until

LLAMA = "llama3.1@25.04/8b"
CHOSEN = Selection("llama3.1", "25.04", "8b", "h100", "bf16", 8)
RECIPE = load_presets().recipe("llama3.1", "25.04")
NOT_THERE = "Commit 111 is not in https://example.org/NeMo."
LOST = Check("commits", "Commits it takes", "failed", f"{NOT_THERE} It may not be public.", "2 commits", "Choose b200.")


class Open(Services):
    """Whose cluster lets everybody in; for which procedure it was asked is noted."""

    def __init__(self, places: Places) -> None:
        super().__init__(places)
        self.asked: list[tuple[str, Procedure]] = []
        self.banner = ""
        self.installed: tuple[StepState, ...] = ()
        self.public: Check | None = None
        """What an early look for commits finds, unless it has that trouble."""
        self.trouble: Trouble | None = None

    def session(self, profile_name: str) -> Any:  # noqa: ARG002 - the rooms'
        return self

    def connect(self, **_: object) -> None:
        pass

    def run(self, *_: object) -> tuple[StepState, ...]:
        return INSTALLED

    def look(self) -> tuple[StepState, ...]:
        return self.installed

    def preflight(self, *asked: Any, **_: Any) -> Preflight:
        self.asked.append(("preflight", asked[-1]))
        return Preflight((*PASSED.checks, *([self.public] if self.public and asked[-1] == "recipe" else [])))

    def commits(self, _: str, plan: Plan) -> Check | None:
        self.asked.append(("commits", "direct"))
        if self.trouble is not None:
            raise self.trouble
        return self.public if plan.selection.workload == "llama3.1" else None

    def installer(self, *asked: Any, **_: Any) -> Any:
        self.asked.append(("installer", asked[-1]))
        return self

    def secret_states(self, profile_name: str) -> tuple[SecretState, ...]:  # noqa: ARG002 - the rooms'
        return ()


async def at_procedures(pilot: Pilot[None], workload: str = LLAMA) -> WizardScreen:
    wizard = await loaded(pilot)
    await choose(pilot, "workload", workload)
    await pilot.press("3", "P")
    await pilot.pause()
    return wizard


async def at_review(pilot: Pilot[None], wizard: WizardScreen, *keys: str) -> None:
    """Review of the published procedure, once the cluster was looked at and the install is whole."""
    services = cast("LlmbApp", pilot.app).services
    assert isinstance(services, Open)
    services.installed = INSTALLED
    await pilot.press(*keys, "4", "c")
    await until(pilot, lambda: wizard.bar.link == "connected", "the cluster is looked at")
    await until(pilot, lambda: marks(wizard)[StepId.CLUSTER] == "done", "the checks are made")
    await until(pilot, lambda: marks(wizard)[StepId.INSTALL] == "done", "the install is whole")
    await pilot.press("6")
    await until(pilot, lambda: "copy" in actions(wizard) and "submit" in actions(wizard), "the command is there")
    await pilot.pause()


def made(wizard: WizardScreen) -> Plan:
    found = wizard.query_one(Preview).made
    assert found is not None
    return found


def command(profile: ClusterProfile = EOS) -> str:
    launch = published_launch(RECIPE, plan(load_presets(), CHOSEN), profile)
    assert launch.command is not None
    return launch.command.text


def chosen(wizard: WizardScreen) -> str:
    return wizard.query_one("#procedure", ChoiceList).chosen


def words(parts: tuple[Paragraph, ...]) -> dict[str, str]:
    return {str(head).strip(): str(body) for head, body in parts}


def actions(wizard: WizardScreen) -> set[str]:
    """Of the current pane, what its keys do now."""
    return {active.binding.action for active in wizard.active_bindings.values() if active.enabled}
