"""`WizardState`: the complete state of the wizard at one moment, immutable.

The wizard is a pure state machine. Actions of the user, news of a cluster and timers are events (`events.py`);
`update(state, event)` (`update.py`) returns the next state and the effects that it requests (`effects.py`). The screen
shows the state, passes every event to `update` and runs the effects, whose outcomes are events again:

    key, thread, timer ── event ──► update ── state ───► screen, panes, widgets
             ▲                        └───── effects ──► connections, files, dialogs, timers
             └──────────────── events ─────────────────────────────────┘

So no step waits for a thread: going back is never blocked, and an answer stays until the user changes it.

Facts about a cluster belong to one request: a selection, a cluster and a launch method. A new request keeps the
connection to the same cluster and drops the other facts (`ClusterState.of_connection`). News of an earlier request
changes only what does not depend on the request: the connection, the cluster's objections to launch methods, and the
one submission that may be in progress (`Launch`).
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
"""A task on a cluster; at most one of each kind is active."""
ObjectionKey = tuple["ClusterProfile", str, str, ProcedureId]
"""Scope of a cluster's objection: (profile, recipe id, GPU type, launch method)."""
Identity = tuple["ClusterProfile", Selection, ProcedureId]
"""Identity of a request: (profile, selection, launch method)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Functions of the lower layers that need no I/O and are fast enough for every key. Their modules load late."""

    catalog: Catalog
    preview: Callable[[ProcedureId, Recipe, RunRequest | None], LaunchPreview]
    """Preview of a launch method for a request; without a request, only whether it supports the recipe."""
    objections: Callable[[RunRequest, Sequence[Check], Sequence[StepState]], Mapping[ProcedureId, Problem | None]]
    """Objections to launch methods, found by checks or install steps; None if the check passed."""
    blockers: Callable[[RunRequest, Preflight | None, Sequence[StepState]], tuple[Problem, ...]]
    """Problems that prevent a submission now."""
    read_only_problems: Callable[[ClusterProfile], tuple[Problem, ...]]
    """Reasons why a cluster is read-only; empty if it may be changed."""
    procedures: Mapping[ProcedureId, ProcedureFacts]
    offered: Callable[[ClusterProfile | None], tuple[ProcedureId, ...]]
    """Launch methods for a cluster, the default one first; None if no cluster is chosen."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would run, on which cluster and how fast, derived from the answers without I/O."""

    full: Answers
    """The answers, with defaults for missing ones."""
    recipe: Recipe
    profile: ClusterProfile | None
    """Profile of the chosen cluster; None if no saved cluster is chosen."""
    selection: Selection | None
    """None while a typed value is invalid."""
    plan: Plan | None
    """The plan; its problems include the chosen launch method's."""
    usual: Plan | None
    """The plan of the same selection with the recipe's layout; the plan itself if there are no manual overrides."""
    request: RunRequest | None
    """None without a cluster or a plan."""
    previews: Mapping[ProcedureId, LaunchPreview]
    """Preview of the chosen launch method; at Scale, options the previews of all launch methods."""

    @property
    def launch(self) -> LaunchPreview:
        """Preview of the chosen launch method."""
        return self.previews[self.full.procedure]


@dataclass(frozen=True, slots=True)
class Launch:
    """A submission in progress. With NVIDIA's scripts it takes from seconds to minutes."""

    run: Run
    since: float
    """Monotonic time of its start."""
    last_line: str = ""
    """Last line of its output without escape sequences; empty if there is none."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """Facts about the chosen cluster for the current request."""

    link: ProbeState = "none"
    banner: str = ""
    unreachable: LlmbError | None = None
    """Why the connection failed, while `link` is failed."""
    tasks: frozenset[Task] = frozenset()
    """Active tasks."""
    preflight: Preflight | None = None
    checked: Preflight | None = None
    """Checks that have finished while others are still active; only shown."""
    steps: tuple[StepState, ...] = ()
    """Install steps as they were last found; empty until then."""
    prepared: PreparedRun | None = None
    """The run to submit, with its script."""
    launched: Run | None = None
    error: LlmbError | None = None
    """Error of the last task that failed, until the next attempt."""
    failed_task: Task | None = None
    early: tuple[Check, ...] = ()
    """Checks that only the other launch methods need."""

    def of_connection(self) -> ClusterState:
        """The facts that also hold for another request on the same cluster."""
        return ClusterState(link=self.link, banner=self.banner, unreachable=self.unreachable)

    def task_error(self, task: Task) -> LlmbError | None:
        """Error of this task, if it was the last one that failed."""
        return self.error if self.failed_task == task else None

    @property
    def ready(self) -> bool:
        """Whether the cluster is connected and passed its checks."""
        return self.link == "connected" and self.preflight is not None and self.preflight.passed

    @property
    def installed(self) -> bool:
        """Whether every install step is done."""
        return bool(self.steps) and all(step.status == "done" for step in self.steps)

    @property
    def installing(self) -> bool:
        """Whether an install step is active or will start."""
        return "install" in self.tasks or any(step.status == "running" for step in self.steps)

    @property
    def preparing(self) -> bool:
        """Whether the script or command is being made."""
        return bool(self.tasks & {"prepare", "prepare ahead"})

    @property
    def failed_step(self) -> StepState | None:
        """The first install step that failed; None while the install is active."""
        return None if self.installing else next((step for step in self.steps if step.status == "failed"), None)

    @property
    def key_would_help(self) -> SecretId | None:
        """The API key with which a failed step may succeed; None if no step needs one."""
        return next((step.key_would_help for step in self.steps if step.key_would_help), None)


@dataclass(frozen=True, slots=True, eq=False)
class WizardState:
    """State of the wizard. Compared by identity: `update` returns the same object if nothing changed."""

    rules: Rules
    answers: Answers
    proposal: Proposal
    step: StepId = StepId.WORKLOAD
    profiles: tuple[ClusterProfile, ...] = ()
    """Profiles of the saved clusters."""
    active_runs: tuple[Run, ...] = ()
    """Runs that were active at the last read, newest first."""
    results: tuple[ClusterResult, ...] = ()
    """Results of finished runs on the chosen cluster."""
    measured: ClusterEstimate | None = None
    """The estimate that those results give for the plan."""
    cluster: ClusterState = ClusterState()
    launch: Launch | None = None
    """The submission in progress, for the current request or an earlier one; at most one."""
    installs: frozenset[Identity] = frozenset()
    """Requests with an active install."""
    objections: Mapping[ObjectionKey, Problem] = field(default_factory=dict)
    """Objections of clusters to launch methods. They outlive a change of the answers, until a later check refutes
    them."""
    checked_early: frozenset[ObjectionKey] = frozenset()
    """Scopes for which the checks of the other launch methods have finished; they are not repeated."""
    probed: frozenset[str] = frozenset()
    """Names of clusters that did not answer a probe. Only the user starts a new probe."""
    in_front: bool = True
    """Whether the wizard's screen is the active one."""

    @property
    def procedure(self) -> ProcedureId:
        """The launch method of the run."""
        return self.proposal.full.procedure

    @property
    def installs_here(self) -> bool:
        """Whether an install for the current request is active."""
        current = self.proposal.request
        return current is not None and identity(current) in self.installs

    def concerns(self, request: RunRequest) -> bool:
        """Whether the request is the current one. Problems that were found later make no difference."""
        current = self.proposal.request
        return current is not None and identity(current) == identity(request)


def identity(request: RunRequest) -> Identity:
    """The identity of a request. Its problems are not part of it."""
    return request.profile, request.plan.selection, request.procedure
