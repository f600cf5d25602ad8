"""Keyboard steps and stand-ins that the tests of NVIDIA's scripts share."""

from __future__ import annotations

import threading
from typing import Any, cast

from textual.pilot import Pilot

from llmb_tui.cluster.link import Completed
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.direct.render import render
from llmb_tui.launch.launcher import Launcher
from llmb_tui.launch.procedure_loader import preview
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import ProcedureId, Selection
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.request import RunRequest
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.wizard.steps import StepId
from tests.kit.pilot import actions, choose, loaded, marks, until
from tests.kit.runs import CATALOG
from tests.ui.wizard.found_states import EOS, INSTALLED, PASSED, Still

LLAMA = "llama3.1@25.04/8b"
CHOSEN = Selection("llama3.1", "25.04", "8b", "h100", "bf16", 8)
RECIPE = CATALOG.recipe("llama3.1", "25.04")
NOT_THERE = "Commit 111 is not in https://example.org/NeMo."
LOST = Check("commits", "Required commits", "failed", f"{NOT_THERE} It may not be public.", "2 commits", "Choose b200.")


class OpenSession:
    """A session that accepts every login unless it is `lost`, and records the prompters that it got."""

    banner = ""
    profile = EOS

    def __init__(self) -> None:
        self.lost: LlmbError | None = None
        self.prompters: list[Prompter | None] = []

    def connect(self, prompter: Prompter | None = None) -> None:
        self.prompters.append(prompter)
        if self.lost is not None:
            raise self.lost

    def ping(self) -> None:
        """Answer."""

    def run_script(self, *_: object, **__: object) -> Completed:
        """Report that no API key exists."""
        return Completed(0, "none none\nnone none\n", "")


class OpenClusters(Still):
    """Clusters that all share one session."""

    def __init__(self, places: UserPaths) -> None:
        super().__init__(places.clusters, look_every_s=10.0)
        self.opened = OpenSession()

    def cluster(self, ref: object) -> SlurmCluster:  # noqa: ARG002 - the rooms'
        return cast("SlurmCluster", self.opened)

    login_node = cluster


class OpenLauncher(Launcher):
    """A launcher with the findings that a test sets. It records the procedures that it was called for."""

    def __init__(self, services: Services) -> None:
        super().__init__(
            services.clusters.cluster,
            services.catalog,
            services.runs,
            services.journal,
            services.policy,
            services.sources,
            render,
        )
        self.asked: list[tuple[str, ProcedureId]] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.installed: tuple[StepState, ...] = ()
        self.public: Check | None = None
        """Result of the early check of commits, unless `trouble` is set."""
        self.error: LlmbError | None = None

    def run(self, *_: object) -> tuple[StepState, ...]:
        return INSTALLED

    def probe(self) -> tuple[StepState, ...]:
        return self.installed

    def preflight(self, target: Any, on_progress: object = None) -> Preflight:  # noqa: ARG002 - the rooms'
        self.asked.append(("preflight", target.procedure))
        self.may_answer.wait()
        return Preflight((*PASSED.checks, *([self.public] if self.public and target.procedure == "upstream" else [])))

    def early_checks(self, request: RunRequest) -> tuple[Check, ...]:
        if request.procedure == "upstream":
            return ()
        self.asked.append(("commits", "direct"))
        if self.error is not None:
            raise self.error
        return (self.public,) if self.public and request.plan.selection.workload == "llama3.1" else ()

    def installer(self, request: RunRequest) -> Any:
        self.asked.append(("installer", request.procedure))
        return self


class Open(Services):
    """Services whose cluster accepts every login."""

    def __init__(self, places: UserPaths) -> None:
        super().__init__(places)
        self.clusters = OpenClusters(places)
        self.launcher = self.stand_in = OpenLauncher(self)


async def at_procedures(pilot: Pilot[None], workload: str = LLAMA) -> WizardScreen:
    wizard = await loaded(pilot)
    await choose(pilot, "workload", workload)
    await pilot.press("3", "P")
    await pilot.pause()
    return wizard


async def at_review(pilot: Pilot[None], wizard: WizardScreen, *keys: str) -> None:
    """Go to Review of NVIDIA's scripts, with the cluster checked and the install complete."""
    services = cast("LlmbApp", pilot.app).services
    assert isinstance(services, Open)
    services.stand_in.installed = INSTALLED
    await pilot.press(*keys, "4", "c")
    await until(pilot, lambda: wizard.bar.link == "connected", "the cluster is connected")
    await until(pilot, lambda: marks(pilot)[StepId.CLUSTER] == "done", "the checks are made")
    await until(pilot, lambda: marks(pilot)[StepId.INSTALL] == "done", "the install is complete")
    await pilot.press("6")
    await until(pilot, lambda: "copy" in actions(wizard) and "submit" in actions(wizard), "the command is there")
    await pilot.pause()


def command(profile: SlurmProfile = EOS) -> str:
    return preview(RunRequest(RECIPE, plan(CATALOG, CHOSEN), profile, "upstream")).command


def chosen(wizard: WizardScreen) -> str:
    return wizard.query_one("#procedure", ChoiceList).chosen
