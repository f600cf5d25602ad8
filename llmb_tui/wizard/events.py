"""`Event`: an action of the user, news of a cluster, the result of a read, or the end of a timer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from llmb_tui.wizard.steps import StepId

if TYPE_CHECKING:
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.errors import LlmbError
    from llmb_tui.language.states import ProbeState
    from llmb_tui.launch.prepared import PreparedRun
    from llmb_tui.launch.run import Run
    from llmb_tui.launch.step_state import StepState
    from llmb_tui.plan.calibration import ClusterResult
    from llmb_tui.preflight.report import Check, Preflight
    from llmb_tui.request import RunRequest
    from llmb_tui.wizard.state import Task

# Actions of the user.


@dataclass(frozen=True, slots=True)
class Answered:
    """A field has a new value: a choice's value, or the typed text. An empty value removes the answer."""

    field: str
    """A field name as in `answers.answer`."""
    value: str


@dataclass(frozen=True, slots=True)
class StepSelected:
    """The user selected a step."""

    step: StepId


Action = Literal["check", "install", "keys", "back", "next", "enter", "submit", "again"]
"""Action of a key.

`check`: connect to the cluster and check it. `install`: run the missing install steps. `keys`: show the API keys that
an install may need. `back`, `next`: go to the step before or after. `enter`: do what the step is for, or go to the next
step once that is done. `submit`: submit the run that is shown. `again`: start a new run with the same answers."""


@dataclass(frozen=True, slots=True)
class ActionRequested:
    """The user requested an action."""

    action: Action


@dataclass(frozen=True, slots=True)
class RunAgain:
    """The user requested a run again: its settings become the answers, and each can be changed."""

    run: Run


@dataclass(frozen=True, slots=True)
class ProfileSaved:
    """A cluster was added or edited."""

    profile: ClusterProfile


@dataclass(frozen=True, slots=True)
class SubmitConfirmed:
    """The user confirmed the submission."""

    prepared: PreparedRun
    monotonic_s: float
    """Monotonic time of the confirmation."""


@dataclass(frozen=True, slots=True)
class FailureDismissed:
    """The user closed the dialog about a failed submission."""


@dataclass(frozen=True, slots=True)
class ScreenActive:
    """The wizard's screen became the active one, or another screen covers it."""

    active: bool


# Timers, and reads of this machine's files.


@dataclass(frozen=True, slots=True)
class InputIdle:
    """The answers have not changed for a moment."""


@dataclass(frozen=True, slots=True)
class RunsRead:
    """The active runs, and the current state of the submitted one."""

    active_runs: tuple[Run, ...]
    launched: Run | None


@dataclass(frozen=True, slots=True)
class OwnResultsRead:
    """The results of finished runs on one cluster."""

    cluster: str
    """Name of the cluster's profile."""
    results: tuple[ClusterResult, ...]


# News of a task on a cluster.


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """News of a task for a request, which may not be the current one any more."""

    request: RunRequest


@dataclass(frozen=True, slots=True)
class ConnectionChanged(ClusterEvent):
    """The state of the connection to the cluster changed."""

    link: ProbeState
    banner: str | None = None
    """Login banner; None if it was not read again."""


@dataclass(frozen=True, slots=True)
class CheckDone(ClusterEvent):
    """Checks of the preflight finished."""

    report: Preflight
    is_complete: bool


@dataclass(frozen=True, slots=True)
class EarlyChecked(ClusterEvent):
    """The checks that only the other launch methods need finished."""

    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class StepsChanged(ClusterEvent):
    """The states of the install steps changed."""

    steps: tuple[StepState, ...]


@dataclass(frozen=True, slots=True)
class Prepared(ClusterEvent):
    """The script or the command is ready."""

    prepared: PreparedRun


@dataclass(frozen=True, slots=True)
class LaunchOutput(ClusterEvent):
    """A launch script printed a line; escape sequences are removed."""

    line: str


@dataclass(frozen=True, slots=True)
class RunSubmitted(ClusterEvent):
    """The submission ended; the run's submission state may be unknown."""

    run: Run


@dataclass(frozen=True, slots=True)
class TaskFailed(ClusterEvent):
    task: Task
    error: LlmbError
    run_ended: bool = False
    """True if the run was rejected or withdrawn. The next attempt then needs another run id, and so another script."""


@dataclass(frozen=True, slots=True)
class TaskEnded(ClusterEvent):
    """A task ended, with or without success."""

    task: Task


UserEvent = RunAgain | Answered | StepSelected | ActionRequested | ProfileSaved | SubmitConfirmed | FailureDismissed
TaskEvent = (
    ConnectionChanged
    | CheckDone
    | EarlyChecked
    | StepsChanged
    | Prepared
    | LaunchOutput
    | RunSubmitted
    | TaskFailed
    | TaskEnded
)
Event = UserEvent | ScreenActive | InputIdle | RunsRead | OwnResultsRead | TaskEvent
