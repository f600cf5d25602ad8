"""`WizardState`: everything that the wizard knows at one moment. Frozen, and the only state there is.

The wizard is a pure state machine. What a person does, what a cluster says and that time has passed are events
(`events.py`); `update(state, event)` (`update.py`) answers with the next state and with the effects that it wants
(`effects.py`). The screen shows the state, hands every event to `update` and runs the effects, whose outcomes are
events again:

    key, thread, timer ── event ──► update ── state ───► screen, panes, widgets
             ▲                        └───── effects ──► connections, files, dialogs, timers
             └──────────────── events ─────────────────────────────────┘

So no step waits for anything: going back is never blocked, and answers stay until another one is given.

What was learned of a cluster was learned for one request: a selection, on a cluster, by a procedure. Another request
keeps the connection to the same cluster and forgets the rest (`ClusterState.of_connection`). What is still said of an
earlier request changes only what holds whatever is asked for: the connection, what stands against
a procedure there, and the one submission that may be on its way (`Launch`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from llmb_tui.language.states import ProbeState
from llmb_tui.plan.selection import ProcedureId, Selection
from llmb_tui.wizard.answers import Answers
from llmb_tui.wizard.steps import StepId

if TYPE_CHECKING:
    from llmb_tui.catalog.catalog import Catalog
    from llmb_tui.catalog.recipe import Recipe
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.errors import LlmbError
    from llmb_tui.launch.prepared import LaunchPreview, PreparedRun
    from llmb_tui.launch.procedure_facts import ProcedureFacts
    from llmb_tui.launch.run import Run
    from llmb_tui.launch.step_state import StepState
    from llmb_tui.plan.calibration import ClusterEstimate, ClusterResult
    from llmb_tui.plan.plan import Plan, Problem
    from llmb_tui.preflight.report import Check, Preflight
    from llmb_tui.preflight.secret import SecretId
    from llmb_tui.request import RunRequest

Task = Literal["probe", "install", "prepare", "prepare ahead", "submit"]
"""What a cluster is asked to do for the wizard, one of each kind at a time."""
ObjectionKey = tuple["ClusterProfile", str, str, ProcedureId]
"""What a cluster shows to stand against a procedure holds for a recipe and a GPU type there."""
Identity = tuple["ClusterProfile", Selection, ProcedureId]
"""Of a request."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the rooms below say without asking anybody, fast enough for every key; their modules load late."""

    catalog: Catalog
    preview: Callable[[ProcedureId, Recipe, RunRequest | None], LaunchPreview]
    """How a request would be started by a procedure; without one only whether the recipe can be at all."""
    objections: Callable[[RunRequest, Sequence[Check], Sequence[StepState]], Mapping[ProcedureId, Problem | None]]
    """What checks or install steps have shown to stand against procedures; None: that nothing does."""
    blockers: Callable[[RunRequest, Preflight | None, Sequence[StepState]], tuple[Problem, ...]]
    """Why a run may not start now."""
    observed: Callable[[ClusterProfile], tuple[Problem, ...]]
    """Why nothing on a cluster may be changed."""
    procedures: Mapping[ProcedureId, ProcedureFacts]
    offered: Callable[[ClusterProfile | None], tuple[ProcedureId, ...]]
    """Procedures that can start a run on a cluster, the usual one first; None: no cluster is chosen."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What follows from the answers without asking anybody: what would run, where, and how fast."""

    full: Answers
    """The answers, with defaults for what is not answered."""
    recipe: Recipe
    profile: ClusterProfile | None
    """Of the chosen cluster; None while none is chosen that is saved."""
    selection: Selection | None
    """None while what was typed is none."""
    plan: Plan | None
    """With what stands against the chosen procedure among its problems."""
    usual: Plan | None
    """The plan of the same selection with the recipe's own layout; the plan itself where nothing is set by hand."""
    request: RunRequest | None
    """None without a cluster or a plan."""
    previews: Mapping[ProcedureId, LaunchPreview]
    """How it would be started: by the chosen procedure, and by each at the step where that is chosen."""

    @property
    def launch(self) -> LaunchPreview:
        """How it would be started by the chosen procedure."""
        return self.previews[self.full.procedure]


@dataclass(frozen=True, slots=True)
class Launch:
    """A submission on its way: by NVIDIA's own scripts that takes from seconds to minutes."""

    run: Run
    since: float
    """Monotonic time at which it began."""
    said: str = ""
    """The last line of its output, clean; empty where there is none."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What is known of the chosen cluster for the present request."""

    link: ProbeState = "none"
    banner: str = ""
    unreachable: LlmbError | None = None
    """Why there is no connection, while the link is failed."""
    tasks: frozenset[Task] = frozenset()
    """What is being done."""
    preflight: Preflight | None = None
    checked: Preflight | None = None
    """The checks that are known while others are still being made; gates nothing."""
    steps: tuple[StepState, ...] = ()
    """Of the install, as they were found."""
    prepared: PreparedRun | None = None
    """The run that could be submitted, with its script."""
    launched: Run | None = None
    error: LlmbError | None = None
    """What last went wrong, until it is tried again."""
    failed: Task | None = None
    """What it was that went wrong."""
    early: tuple[Check, ...] = ()
    """What only the procedures that are not chosen want to know."""

    def of_connection(self) -> ClusterState:
        """What still holds for another request to the same cluster."""
        return ClusterState(link=self.link, banner=self.banner, unreachable=self.unreachable)

    def error_with_remedy(self, task: Task) -> LlmbError | None:
        """What went wrong while this was done."""
        return self.error if self.failed == task else None

    @property
    def ready(self) -> bool:
        """It answers, and no check failed."""
        return self.link == "connected" and self.preflight is not None and self.preflight.passed

    @property
    def installed(self) -> bool:
        """Every install step is done."""
        return bool(self.steps) and all(step.status == "done" for step in self.steps)

    @property
    def installing(self) -> bool:
        """A step runs, or is about to."""
        return "install" in self.tasks or any(step.status == "running" for step in self.steps)

    @property
    def preparing(self) -> bool:
        """The script, or the command, is being made."""
        return bool(self.tasks & {"prepare", "prepare ahead"})

    @property
    def failed_step(self) -> StepState | None:
        """The first install step that failed, unless the install goes on."""
        return None if self.installing else next((step for step in self.steps if step.status == "failed"), None)

    @property
    def key_would_help(self) -> SecretId | None:
        """The key with which a step that failed may work."""
        return next((step.key_would_help for step in self.steps if step.key_would_help), None)


@dataclass(frozen=True, slots=True, eq=False)
class WizardState:
    """One moment of the wizard. Compared by identity: `update` answers with the very same where nothing changed."""

    rules: Rules
    answers: Answers
    proposal: Proposal
    step: StepId = StepId.WORKLOAD
    profiles: tuple[ClusterProfile, ...] = ()
    """The saved clusters."""
    active_runs: tuple[Run, ...] = ()
    """Runs that had not ended when they were last looked at, newest first."""
    results: tuple[ClusterResult, ...] = ()
    """What benchmarks that ended on the chosen cluster took."""
    measured: ClusterEstimate | None = None
    """What those say about the plan."""
    cluster: ClusterState = ClusterState()
    launch: Launch | None = None
    """For the present request or for another one; one at a time."""
    installs: frozenset[Identity] = frozenset()
    """For which requests an install goes on."""
    objections: Mapping[ObjectionKey, Problem] = field(default_factory=dict)
    """What clusters have shown to stand against procedures. It outlives a change of the answers; a later look may
    correct it."""
    checked_early: frozenset[ObjectionKey] = frozenset()
    """For what the checks of the other procedures were made, and need not be again."""
    probed: frozenset[str] = frozenset()
    """Names of the clusters that were looked at and have not answered: they are not tried again by themselves."""
    in_front: bool = True
    """No other screen is over the wizard's."""

    @property
    def procedure(self) -> ProcedureId:
        """By which a run would be installed and started."""
        return self.proposal.full.procedure

    @property
    def installs_here(self) -> bool:
        """An install for the present request goes on."""
        mine = self.proposal.request
        return mine is not None and identity(mine) in self.installs

    def concerns(self, request: RunRequest) -> bool:
        """Whether the request is the present one. Problems that were learned since do not make it another."""
        mine = self.proposal.request
        return mine is not None and identity(mine) == identity(request)


def identity(request: RunRequest) -> Identity:
    """What makes it the request that it is."""
    return request.profile, request.plan.selection, request.procedure
