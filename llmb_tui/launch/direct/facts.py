"""Names, texts and limits of our script."""

from __future__ import annotations

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.procedure_facts import ProcedureFacts
from llmb_tui.launch.spec import LaunchSpec

FACTS = ProcedureFacts(
    id="direct",
    implementation="llmb_tui.launch.direct.procedure:DirectProcedure",
    profile=SlurmProfile,
    spec=LaunchSpec,
    title="our script",
    started_by="It was launched by llmb-tui's own script in NVIDIA's container, with the settings of the recipe, and "
    "not by NVIDIA's launch scripts.",
    flag_help="our script in the container",
    writes_dependency=True,
)
