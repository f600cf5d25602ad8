"""What threads report of a cluster, with fixed names and no clock, for pictures."""

from __future__ import annotations

from pathlib import Path

from llmb_tui.catalog.load import load_presets
from llmb_tui.cluster.preflight.report import Check, Preflight
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.launch.install import StepState
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec_of import launch_spec
from llmb_tui.plan.plan import Plan
from llmb_tui.services import Draft

# Nothing listens on the discard port of this machine: a look at it ends at once.
EOS = ClusterProfile(
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


def draft_of(plan: Plan) -> Draft:
    """A draft with a fixed id, and a script that NeMo-Run wrote."""
    selection = plan.selection
    recipe = load_presets().recipe(selection.workload, selection.release)
    spec = launch_spec(recipe, plan, EOS, "250101120000abcd")
    run = Run(spec.run_id, plan, spec, recipe.rule, recipe.launch.kind, "direct", EOS.name, created_at=0.0)
    script = Path(__file__).parents[1] / "launch" / "golden" / "nemotron4-25.04.sh"
    return Draft(run, script.read_text(encoding="utf-8"))
