"""`Effect`: an action that `update` requests and the screen performs. Its outcomes come back as events."""

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
    """Connect, check the cluster for a request, and find its finished install steps. Replaces an earlier probe."""

    request: RunRequest
    attended: bool
    """True if the user requested it, and can answer the questions of a login."""
    early: bool
    """Also run the checks of the other launch methods, so that a reason against one is known before it is chosen."""


@dataclass(frozen=True, slots=True)
class Install:
    """Run the install steps that are not done."""

    request: RunRequest


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make the exact batch script or command."""

    request: RunRequest


@dataclass(frozen=True, slots=True)
class PrepareAhead:
    """Make the script or command before Review shows it, unless that needs an answer of the user."""

    request: RunRequest


@dataclass(frozen=True, slots=True)
class Submit:
    """Submit the confirmed run, judged by the last check of its cluster."""

    prepared: PreparedRun
    preflight: Preflight | None
    steps: tuple[StepState, ...]

    @property
    def request(self) -> RunRequest:
        """The request that was prepared."""
        return self.prepared.request


@dataclass(frozen=True, slots=True)
class ReadOwnResults:
    """Read the step times of finished runs on a cluster."""

    cluster: str


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """Read the active runs, and read the submitted run again."""

    launched: Run | None


@dataclass(frozen=True, slots=True)
class StartIdleTimer:
    """Restart the timer that sends `InputIdle` once the answers have not changed for a moment."""


@dataclass(frozen=True, slots=True)
class FocusFirst:
    """Show the current step, with the focus on its first field."""


@dataclass(frozen=True, slots=True)
class Notify:
    """Show a short message that disappears by itself."""

    words: str
    severity: Literal["information", "warning"] = "warning"


@dataclass(frozen=True, slots=True)
class ShowFailure:
    """Show why the submission failed, until the user closes the dialog."""

    error: LlmbError


@dataclass(frozen=True, slots=True)
class AskToSubmit:
    """Ask the user to confirm the submission."""

    prepared: PreparedRun
    starts: str
    """Effect of submitting, if it is more than one sbatch; otherwise empty."""


@dataclass(frozen=True, slots=True)
class AskForApiKeys:
    """Show the API keys that an install may need."""

    request: RunRequest
    wanted: SecretId | None
    """The API key that a failed step needs; None if no step needs one."""


@dataclass(frozen=True, slots=True)
class EditCluster:
    """Edit a saved cluster; None for a new cluster."""

    profile: ClusterProfile | None


@dataclass(frozen=True, slots=True)
class OpenRun:
    """Show the screen of a run."""

    run_id: str


ClusterTask = Probe | Install | Prepare | PrepareAhead | Submit
Dialog = ShowFailure | AskToSubmit | AskForApiKeys | EditCluster | OpenRun
Effect = ClusterTask | ReadOwnResults | ReadRuns | StartIdleTimer | FocusFirst | Notify | Dialog
