"""Names, texts and limits of Run:ai workloads."""

from __future__ import annotations

from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.launch.procedure_facts import ProcedureFacts
from llmb_tui.launch.spec import RunaiSpec

FACTS = ProcedureFacts(
    id="runai",
    implementation="llmb_tui.launch.runai.procedure:RunaiProcedure",
    profile=RunaiProfile,
    spec=RunaiSpec,
    title="Run:ai",
    started_by="It was launched by llmb-tui's own script in NVIDIA's container, as a Run:ai workload; the recipe "
    "describes Slurm.",
)
