"""Words and limits of workloads of Run:ai."""

from __future__ import annotations

from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.launch.procedure_facts import ProcedureFacts
from llmb_tui.launch.spec import RunaiSpec

FACTS = ProcedureFacts(
    id="runai",
    implementation="llmb_tui.launch.runai.procedure:RunaiProcedure",
    profile=RunaiProfile,
    spec=RunaiSpec,
    name="Run:ai workload",
    title="Run:ai workload",
    started_by="It was started by llmb-tui's own script in NVIDIA's container, as a workload of Run:ai; the recipe "
    "describes Slurm.",
)
