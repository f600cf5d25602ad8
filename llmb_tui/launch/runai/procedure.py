"""`RunaiProcedure`: one workload on a Run:ai cluster, with nothing but the container image."""

from __future__ import annotations

import time
from typing import NoReturn

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.runai.cluster import RunaiCluster, runai_of
from llmb_tui.cluster.runai.values import HUB_KEYS
from llmb_tui.errors import Trouble
from llmb_tui.launch.naming import container, new_run_id
from llmb_tui.launch.prepared import LaunchPreview, PreparedRun
from llmb_tui.launch.procedure import Procedure, Render
from llmb_tui.launch.run import Run
from llmb_tui.launch.runai.install import RunaiInstall
from llmb_tui.launch.runai.submitter import RunaiSubmitter
from llmb_tui.launch.runai.workload import (
    Placed,
    creation_request,
    problems,
    profile_of,
    runai_spec,
    script_of,
)
from llmb_tui.launch.secret import REGISTRY
from llmb_tui.launch.spec import RunaiSpec
from llmb_tui.preflight.needs import RunaiNeeds, Sources
from llmb_tui.request import RunRequest


class RunaiProcedure(Procedure):
    """The only one of a Run:ai cluster: every recipe with a NeMo 2 container has it."""

    script_title = "Workload"
    script_hint = "exactly what is sent to Run:ai"
    install_hint = "the workload brings all it needs"
    preparing = "the cluster is asked where the workload goes …"
    submitting = "creating the workload"

    def refuse(self, recipe: Recipe) -> None:
        """Raise Trouble (exit code 1) for a recipe of NeMo 1."""
        if recipe.launch.kind != "nemo2":
            raise Trouble(
                f"{recipe.id} cannot run as a workload.",
                "It has a NeMo 1 container, and what starts a workload is for NeMo 2.",
                "Choose a recipe with a NeMo 2 container, or a cluster with Slurm.",
                exit_code=1,
            )

    def preview(self, request: RunRequest) -> LaunchPreview:
        """The request itself is made when it is known where the workload goes: see `prepare`."""
        profile_of(request)
        way = (
            "Run:ai: NVIDIA's settings, given to NeMo by our script in the recipe's container, as one workload; "
            "by the published contract, and not tried on a real Run:ai yet"
        )
        return LaunchPreview(
            way, tuple(problems(request)), starts="One workload is created in the project, at most once"
        )

    def needs(self, request: RunRequest) -> RunaiNeeds:
        """The image, GPUs of the right type, the volumes."""
        plan = request.plan
        image = f"{REGISTRY}/{plan.container}" if plan.container else ""
        return RunaiNeeds(profile_of(request), plan, image, hub=plan.options.hub_tokenizer)

    def install(self, request: RunRequest) -> NoReturn:  # noqa: ARG002 - a `Procedure`'s
        """Raise TypeError: see `installer`."""
        raise TypeError("nothing is installed for a workload")

    def installer(self, cluster: Cluster, request: RunRequest, sources: Sources) -> RunaiInstall:  # noqa: ARG002 - as above
        """What says that nothing has to be installed. Raises Trouble (exit code 1) where no image is known."""
        return RunaiInstall(f"{REGISTRY}/{container(request.plan)}")

    def prepare(
        self,
        cluster: Cluster,
        request: RunRequest,
        render: Render,  # noqa: ARG002 - a `Procedure`'s
        prompter: Prompter | None = None,
        run_id: str | None = None,
    ) -> PreparedRun:
        """The request that creates the workload; the cluster is asked where it goes."""
        now = time.time()
        runai = runai_of(cluster)
        spec = runai_spec(request, run_id or new_run_id(now))
        runai.connect(prompter)
        script = script_of(creation_request(spec, _placed(runai, spec)))
        return PreparedRun(request, Run.of(request, spec, now), script, spec.overridden, spec.notes)

    def submitter(self, run: Run) -> RunaiSubmitter:
        """One request to Run:ai's API."""
        return RunaiSubmitter(run)


def _placed(cluster: RunaiCluster, spec: RunaiSpec) -> Placed:
    project = cluster.project()
    if spec.hub_credential is None:
        return Placed(project.id, project.cluster_id)
    for credential in cluster.api.credentials(project.id):
        if credential.name == spec.hub_credential and credential.hub_token:
            return Placed(project.id, project.cluster_id, credential.hub_token)
    raise Trouble(
        f"The project {project.name} has no credential {spec.hub_credential} with a Hugging Face token.",
        f"It has to be a generic secret with an entry {' or '.join(HUB_KEYS)}.",
        "Make it in Run:ai under Credentials, or name another in the cluster's profile.",
        exit_code=1,
    )
