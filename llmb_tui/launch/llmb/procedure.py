"""`LlmbProcedure`: runs that NVIDIA's llmb-run submitted, which are only watched, judged and cancelled here."""

from __future__ import annotations

from typing import NoReturn

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.errors import LlmbError
from llmb_tui.launch.llmb.workloads import llmb_group
from llmb_tui.launch.procedure import Intent, Procedure
from llmb_tui.launch.run import Run
from llmb_tui.preflight.check_group import CheckGroup
from llmb_tui.preflight.needs import PUBLIC, Needs, Sources
from llmb_tui.request import RunRequest


class LlmbProcedure(Procedure):
    """Procedure of a run that another program launches."""

    def refuse(self, recipe: Recipe) -> NoReturn:  # noqa: ARG002 - the signature of `Procedure`
        """Raise LlmbError (exit code 1): only llmb-run launches its runs."""
        raise LlmbError(
            "Only llmb-run itself can launch its runs.",
            "",
            "Launch the run with llmb-run; then `llmb-tui llmb CLUSTER --open JOB` imports it here.",
            exit_code=1,
        )

    def preview(self, request: RunRequest) -> NoReturn:
        """Raise LlmbError (exit code 1): nothing is launched from here."""
        self.refuse(request.recipe)

    def needs(self, request: RunRequest, sources: Sources = PUBLIC) -> Needs:
        """The plan alone: llmb-run has installed everything else."""
        return Needs(request.slurm, request.plan, sources=sources)

    def survey(self, catalog: Catalog) -> tuple[CheckGroup, ...]:
        """Checks of the installations of NVIDIA's own tools."""
        return (llmb_group(catalog),)

    def install(self, request: RunRequest) -> NoReturn:
        """Raise LlmbError (exit code 1): llmb-install installs these runs."""
        self.refuse(request.recipe)

    def prepare(self, cluster: Cluster, request: RunRequest, intent: Intent) -> NoReturn:  # noqa: ARG002
        """Raise LlmbError (exit code 1): nothing is submitted from here."""
        self.refuse(request.recipe)

    def delivery(self, run: Run, cluster: Cluster) -> NoReturn:  # noqa: ARG002
        """Raise TypeError: there is nothing to submit."""
        raise TypeError(f"run {run.id} was submitted by another program")

    def compare_script(self, run: Run, script: str) -> NoReturn:  # noqa: ARG002
        """Raise TypeError: there is no script."""
        raise TypeError(f"run {run.id} was submitted by another program")
