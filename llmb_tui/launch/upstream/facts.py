"""Names, texts and limits of NVIDIA's scripts."""

from __future__ import annotations

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.procedure_facts import ProcedureFacts
from llmb_tui.launch.spec import UpstreamSpec

FACTS = ProcedureFacts(
    id="upstream",
    implementation="llmb_tui.launch.upstream.procedure:UpstreamProcedure",
    profile=SlurmProfile,
    spec=UpstreamSpec,
    title="NVIDIA's scripts",
    started_by="It was launched by NVIDIA's scripts, unchanged.",
    flag_help="NVIDIA's scripts",
)
