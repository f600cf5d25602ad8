"""`Effect`: what `update` wants to be done; the screen does it. What comes of it is told as events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.errors import LlmbError
    from llmb_tui.launch.prepared import PreparedRun
    from llmb_tui.launch.run import Run
    from llmb_tui.launch.step_state import StepState
    from llmb_tui.preflight.report import Preflight
    from llmb_tui.preflight.secret import SecretId
    from llmb_tui.request import RunRequest


@dataclass(frozen=True, slots=True)
class Probe:
    """Connect, check the cluster for a request, and see what of its install is there. It replaces an earlier look."""

    request: RunRequest
    attended: bool
    """Somebody asked for it, and answers what connecting asks."""
    early: bool
    """Make the checks of the other procedures too, so that what stands against one is known before it is chosen."""


@dataclass(frozen=True, slots=True)
class Install:
    """Run the install steps that are not done."""

    request: RunRequest


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make the exact batch script, or the exact command."""

    request: RunRequest


@dataclass(frozen=True, slots=True)
class PrepareAhead:
    """Make it before anybody looks at it, unless somebody would have to be asked for that."""

    request: RunRequest


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit what was shown and agreed to, by what was last seen of its cluster."""

    prepared: PreparedRun
    preflight: Preflight | None
    steps: tuple[StepState, ...]

    @property
    def request(self) -> RunRequest:
        """What was prepared."""
        return self.prepared.request


@dataclass(frozen=True, slots=True)
class ReadOwnResults:
    """Read what benchmarks that ended on a cluster took."""

    cluster: str


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """Read which runs go on, and the launched one again."""

    launched: Run | None


@dataclass(frozen=True, slots=True)
class StartIdleTimer:
    """Say `InputIdle` once nothing was answered for a moment; it begins anew."""


@dataclass(frozen=True, slots=True)
class FocusFirst:
    """Another step: put the focus where the person starts."""


@dataclass(frozen=True, slots=True)
class Notify:
    """Say something in passing."""

    words: str
    severity: Literal["information", "warning"] = "warning"


@dataclass(frozen=True, slots=True)
class ShowFailure:
    """Show what went wrong with the submission, until it is read."""

    error: LlmbError


@dataclass(frozen=True, slots=True)
class AskToSubmit:
    """Ask whether GPUs shall be spent."""

    prepared: PreparedRun
    starts: str
    """What submitting does, where there is more to it than sbatch."""


@dataclass(frozen=True, slots=True)
class AskForKeys:
    """Show the keys that an install may need."""

    request: RunRequest
    wanted: SecretId | None
    """The one that a step lacks."""


@dataclass(frozen=True, slots=True)
class EditCluster:
    """Change a saved cluster; None: enter a new one."""

    profile: ClusterProfile | None


@dataclass(frozen=True, slots=True)
class OpenRun:
    """Show a run's own screen."""

    run_id: str


ClusterTask = Probe | Install | Prepare | PrepareAhead | Submit
Dialog = ShowFailure | AskToSubmit | AskForKeys | EditCluster | OpenRun
Effect = ClusterTask | ReadOwnResults | ReadRuns | StartIdleTimer | FocusFirst | Notify | Dialog
