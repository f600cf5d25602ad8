"""`Event`: what a person did, what a cluster said, what was read, and that time has passed."""

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

# What the person does.


@dataclass(frozen=True, slots=True)
class Answered:
    """A field has another value: a choice's, or a text as it was typed. Empty takes the answer back."""

    field: str
    """As `answer` knows it."""
    value: str


@dataclass(frozen=True, slots=True)
class StepTaken:
    """The person goes straight to a step."""

    step: StepId


Action = Literal["check", "install", "keys", "back", "next", "enter", "submit", "again"]
"""What a key asks for: connect to the cluster and check it; run the missing install steps; show the keys that an
install may need; a step back; on; what the step is for, then on; submit the run that is shown; start over with the same
answers."""


@dataclass(frozen=True, slots=True)
class ActionRequested:
    """A person asked for something."""

    action: Action


@dataclass(frozen=True, slots=True)
class RunAgain:
    """What a run was is the answer to every question, so that any of it can be changed."""

    run: Run


@dataclass(frozen=True, slots=True)
class ProfileSaved:
    """A cluster was entered or changed."""

    profile: ClusterProfile


@dataclass(frozen=True, slots=True)
class SubmitAgreed:
    """GPUs may be spent on this."""

    prepared: PreparedRun
    at: float
    """Monotonic time."""


@dataclass(frozen=True, slots=True)
class FailureRead:
    """What went wrong with the submission was read."""


@dataclass(frozen=True, slots=True)
class ScreenActive:
    """The wizard's screen is in front again, or another one is over it."""

    now: bool


# What time and this machine's files say.


@dataclass(frozen=True, slots=True)
class InputIdle:
    """Nothing was answered for a moment."""


@dataclass(frozen=True, slots=True)
class RunsRead:
    """Which runs go on, and how the launched one is now."""

    active_runs: tuple[Run, ...]
    launched: Run | None


@dataclass(frozen=True, slots=True)
class OwnResultsRead:
    """What the benchmarks of one cluster took."""

    cluster: str
    """Name of its profile."""
    results: tuple[ClusterResult, ...]


# What is said of a cluster while something is done there for a request.


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """The request need not be the present one any more."""

    request: RunRequest


@dataclass(frozen=True, slots=True)
class ConnectionChanged(ClusterEvent):
    """How the cluster answers."""

    link: ProbeState
    banner: str | None = None
    """What the login node said; None: nothing new."""


@dataclass(frozen=True, slots=True)
class CheckDone(ClusterEvent):
    """Checks were made: one more, or all."""

    report: Preflight
    whole: bool


@dataclass(frozen=True, slots=True)
class EarlyChecked(ClusterEvent):
    """Checks that only the procedures that are not chosen want were made."""

    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class StepsChanged(ClusterEvent):
    """How the install steps are."""

    steps: tuple[StepState, ...]


@dataclass(frozen=True, slots=True)
class Prepared(ClusterEvent):
    """The script, or the command, is there."""

    prepared: PreparedRun


@dataclass(frozen=True, slots=True)
class LaunchSaid(ClusterEvent):
    """What a launch script is doing, one clean line."""

    words: str


@dataclass(frozen=True, slots=True)
class Submitted(ClusterEvent):
    """The run was submitted, as far as is known."""

    run: Run


@dataclass(frozen=True, slots=True)
class Failed(ClusterEvent):
    """A task could not be done."""

    task: Task
    error: LlmbError
    run_over: bool = False
    """A run that was refused is over: who tries again does so with another id, and so with another script."""


@dataclass(frozen=True, slots=True)
class TaskEnded(ClusterEvent):
    """A task is over, whatever came of it."""

    task: Task


UserEvent = RunAgain | Answered | StepTaken | ActionRequested | ProfileSaved | SubmitAgreed | FailureRead
TaskEvent = (
    ConnectionChanged | CheckDone | EarlyChecked | StepsChanged | Prepared | LaunchSaid | Submitted | Failed | TaskEnded
)
Event = UserEvent | ScreenActive | InputIdle | RunsRead | OwnResultsRead | TaskEvent
