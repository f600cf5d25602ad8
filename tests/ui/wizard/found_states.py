"""States of a cluster with fixed names and no clock, for pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from llmb_tui.cluster.link import LinkHealth
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.clusters import Clusters
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.prepared import PreparedRun
from llmb_tui.launch.run import Run
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import DEFAULT_PROCEDURE, ProcedureId, Selection
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.request import RunRequest
from llmb_tui.ui.wizard_effects import wizard_rules
from llmb_tui.wizard.answers import answers_from_selection
from llmb_tui.wizard.events import StepSelected
from llmb_tui.wizard.state import ClusterState, WizardState
from llmb_tui.wizard.steps import StepId
from llmb_tui.wizard.update import open_wizard, update
from tests.kit.runs import CATALOG

# The discard port of this machine is closed: a probe fails at once.
EOS = SlurmProfile(
    name="eos",
    host="127.0.0.1",
    port=9,
    user="operator",
    account="research",
    partition="batch",
    install_dir="/lustre/research/llmb",
    known_hosts="/nonexistent/known_hosts",
    notice="simulated, clock x60",
)

CHECKED = Preflight(
    (
        Check("scheduler", "Scheduler", "ok", "Slurm 23.11.4", "Slurm", ""),
        Check("account", "Account", "ok", "research", "research", ""),
        Check(
            "time",
            "Time limit",
            "failed",
            "at most 00:20:00",
            "00:30:00",
            "Lower the time limit, or choose partition long.",
        ),
        Check("disk", "Free space", "warning", "41 GB", "60 GB", "Remove old images from /lustre/llmb/images."),
    )
)
PASSED = Preflight(CHECKED.checks[:2])

INSTALLING = (
    StepState("directories", "Directories", "done"),
    StepState(
        "image",
        "Container image nvidia/nemo:25.02.01",
        "running",
        "[INFO] Downloading 66 missing layers...",
        "3.1 GB of 5–60 GB",
    ),
    StepState("entry", "Entry script", "missing"),
)
INSTALLED = tuple(StepState(step.id, step.title, "done") for step in INSTALLING)


class Still(Clusters):
    """Clusters without a heartbeat: the test sets the link state that a picture shows."""

    def health(self, profile: ClusterProfile) -> LinkHealth | None:  # noqa: ARG002 - the rooms'
        return None


def state_at(
    step: StepId,
    selection: Selection,
    profile: SlurmProfile = EOS,
    procedure: ProcedureId = DEFAULT_PROCEDURE,
    cluster: ClusterState = ClusterState(),  # noqa: B008 - it is frozen
) -> WizardState:
    """The wizard's state at a step, for a selection on a cluster."""
    state, _ = open_wizard(
        wizard_rules(CATALOG, Policy()), answers_from_selection(selection, profile.name, procedure), (profile,)
    )
    state, _ = update(state, StepSelected(step))
    return replace(state, cluster=cluster)


def draft_of(plan: Plan) -> PreparedRun:
    """A prepared run with a fixed id and a script of NeMo-Run."""
    request = RunRequest(CATALOG.recipe(plan.selection.workload, plan.selection.release), plan, EOS)
    spec = launch_spec(request, "250101120000abcd")
    run = Run.of(request, spec, 0.0)
    script = Path(__file__).parents[2] / "launch" / "golden" / "nemotron4-25.04.sh"
    return PreparedRun(request, run, script.read_text(encoding="utf-8"), spec.overridden, spec.notes)
