"""Words and limits of the toy."""

from __future__ import annotations

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.procedure_facts import ProcedureFacts
from llmb_tui.launch.spec import LaunchSpec

FACTS = ProcedureFacts(
    id="toy",  # type: ignore[arg-type]  # an id of the copied program only
    implementation="llmb_tui.launch.toy.procedure:ToyProcedure",
    profile=SlurmProfile,
    spec=LaunchSpec,
    title="toy procedure",
    started_by="It was started by a loop that trains nothing.",
    flag_help="a loop of echo",
)
