"""Names, texts and limits of runs that NVIDIA's llmb-run submitted."""

from __future__ import annotations

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.procedure_facts import ProcedureFacts

FACTS = ProcedureFacts(
    id="llmb",
    implementation="llmb_tui.launch.llmb.procedure:LlmbProcedure",
    profile=SlurmProfile,
    spec=None,
    title="llmb-run",
    started_by="It was launched by NVIDIA's llmb-run, whose settings are only partly known here.",
    starts_runs=False,
)
