"""A wizard without a screen that records its effects, and a cluster with the states that it may report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.prepared import LaunchPreview, PreparedRun
from llmb_tui.launch.procedures import PROCEDURES, procedures_on
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.request import RunRequest
from llmb_tui.wizard.answers import Answers
from llmb_tui.wizard.effects import Effect
from llmb_tui.wizard.events import (
    ActionRequested,
    CheckDone,
    ConnectionChanged,
    Event,
    Prepared,
    StepsChanged,
    StepSelected,
    TaskEnded,
)
from llmb_tui.wizard.state import Rules, Task, WizardState
from llmb_tui.wizard.steps import StepId
from llmb_tui.wizard.update import open_wizard, update
from tests.kit.runs import intended_run

EOS = SlurmProfile("eos", "login.eos.example", "research", "batch", "/lustre/llmb")
SELENE = replace(EOS, name="selene", host="login.selene.example")
NEMOTRON = Answers(recipe="nemotron4@25.04", size="15b", gpu="h100", dtype="bf16", strong=False, scale=16)

PASSED = Preflight((Check("scheduler", "Scheduler", "ok", "Slurm 23.11.4", "Slurm", ""),))
REFUSING = Preflight((*PASSED.checks, Check("time", "Time limit", "failed", "00:20:00", "00:30:00", "Lower it.")))
MISSING = (StepState("image", "Container image", "missing"),)
INSTALLED = (StepState("image", "Container image", "done"),)
BROKEN = (StepState("image", "Container image", "failed", "No space left on device"),)
LOST = LlmbError("eos does not answer.", "Connection refused.", "Check the host.")
NOT_PUBLIC = Problem("procedure", "error", "Commit 111 is not public.", "Choose our script.")
COMMITS = Check("commits", "Required commits", "ok", "all exist", "2 commits", "")


def preview(name: ProcedureId, _: Recipe, request: RunRequest | None) -> LaunchPreview:
    """A launch without problems."""
    return LaunchPreview(way=name, command="true" if name == "upstream" and request else "")


def objections(_: RunRequest, checks: Sequence[Check], steps: Sequence[StepState]) -> dict[ProcedureId, Problem | None]:
    """A failed check or step raises the objection; a passed check removes it."""
    marks = [check.status for check in checks if check.id == COMMITS.id]
    if "failed" in marks or any(step.id == COMMITS.id for step in steps):
        return {"upstream": NOT_PUBLIC}
    return {"upstream": None} if "ok" in marks else {}


def blockers(request: RunRequest, preflight: Preflight | None, steps: Sequence[StepState]) -> tuple[Problem, ...]:
    """Errors of the plan, a cluster that is not ready, and an incomplete install."""
    errors = tuple(problem for problem in request.plan.problems if problem.severity == "error")
    ready = preflight is not None and preflight.passed
    installed = bool(steps) and all(step.status == "done" for step in steps)
    cluster, install = (Problem(field, "error", "Not yet.", "") for field in ("cluster", "install"))
    return (*observed(request.profile), *errors, *(() if ready else (cluster,)), *(() if installed else (install,)))


def observed(profile: ClusterProfile) -> tuple[Problem, ...]:
    """The problem of a read-only cluster."""
    return (
        (Problem("observer", "error", "The cluster is read-only.", "Change the profile."),) if profile.read_only else ()
    )


def draft_of(request: RunRequest, run_id: str = "250101120000abcd") -> PreparedRun:
    """A run with its script, ready to submit."""
    return PreparedRun(request, intended_run(request, run_id), "#!sh")


class Wizard:
    """The wizard's state, as its screen holds it, with the effects of the last events."""

    def __init__(
        self,
        catalog: Catalog,
        answers: Answers = NEMOTRON,
        cluster: str | None = EOS.name,
        profiles: tuple[ClusterProfile, ...] = (EOS, SELENE),
    ) -> None:
        rules = Rules(catalog, preview, objections, blockers, observed, PROCEDURES, procedures_on)
        self.state, self.effects = open_wizard(rules, replace(answers, cluster=cluster), profiles)

    def send(self, *new_events: Event) -> tuple[Effect, ...]:
        """Apply events; return all of their effects."""
        self.effects = ()
        for event in new_events:
            self.state, effects = update(self.state, event)
            self.effects += effects
        return self.effects

    @property
    def request(self) -> RunRequest:
        """The current request."""
        request = self.state.proposal.request
        assert request is not None
        return request

    @property
    def plan(self) -> Plan:
        """The current plan."""
        plan = self.state.proposal.plan
        assert plan is not None
        return plan

    def step(self) -> StepId:
        """The current step."""
        return self.state.step

    def against(self) -> tuple[Problem, ...]:
        """Problems of NVIDIA's scripts."""
        return self.state.proposal.previews["upstream"].problems

    def connected(self) -> Wizard:
        """Probe the cluster: it is connected, every check passed, and nothing is installed or prepared."""
        request = self.request
        self.send(
            ActionRequested("check"),
            ConnectionChanged(request, "connected"),
            CheckDone(request, PASSED, is_complete=True),
        )
        self.send(StepsChanged(request, MISSING), TaskEnded(request, "probe"), TaskEnded(request, "prepare ahead"))
        return self

    def installed(self) -> Wizard:
        """Probe the cluster and complete the install."""
        self.connected().send(StepsChanged(self.request, INSTALLED))
        return self

    def at_review(self) -> Wizard:
        """Go to Review, with the script made."""
        self.installed().send(StepSelected(StepId.REVIEW))
        self.send(Prepared(self.request, draft_of(self.request)), TaskEnded(self.request, "prepare"))
        return self

    def busy(self, task: Task) -> bool:
        """True if a task is active for the current request."""
        return task in self.state.cluster.tasks


def of_kind(effects: tuple[Effect, ...], *kinds: type) -> tuple[Effect, ...]:
    """The effects of these kinds."""
    return tuple(effect for effect in effects if isinstance(effect, kinds))


def state_of(catalog: Catalog, answers: Answers = Answers(), cluster: str | None = None) -> WizardState:  # noqa: B008
    """The state for these answers, without a cluster unless one is named."""
    return Wizard(catalog, answers, cluster).state
