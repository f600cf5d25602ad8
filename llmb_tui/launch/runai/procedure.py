"""`RunaiProcedure`: one workload on a Run:ai cluster, which needs only the container image."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NoReturn

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.runai.cluster import RunaiCluster, runai_of
from llmb_tui.cluster.runai.values import HUB_KEYS
from llmb_tui.errors import LlmbError
from llmb_tui.launch.files import as_json
from llmb_tui.launch.naming import container
from llmb_tui.launch.prepared import LaunchPreview, PreparedRun
from llmb_tui.launch.procedure import Intent, Procedure, ScriptCheck
from llmb_tui.launch.run import Run
from llmb_tui.launch.runai.delivery import RunaiDelivery
from llmb_tui.launch.runai.script_check import CHECKED, request_differences
from llmb_tui.launch.runai.workload import (
    ANOTHER,
    NEMO_1,
    Placement,
    creation_request,
    problems,
    profile_of,
    runai_spec,
)
from llmb_tui.launch.spec import RunaiSpec
from llmb_tui.launch.step_state import StepState
from llmb_tui.preflight.needs import PUBLIC, RunaiNeeds, Sources
from llmb_tui.preflight.secret import REGISTRY
from llmb_tui.request import RunRequest


class RunaiInstall:
    """Steps that are always done: the nodes pull the image, and the workload contains the files."""

    def __init__(self, image: str) -> None:
        self._steps = (
            StepState("image", f"Container image {image}", "done", "each node pulls it when the workload starts"),
            StepState("files", "Entry script and settings", "done", "sent with the workload"),
        )

    def probe(self) -> tuple[StepState, ...]:
        """The steps, without a query."""
        return self._steps

    def run(
        self,
        on_change: Callable[[tuple[StepState, ...]], None],
        stop: threading.Event,  # noqa: ARG002 - the protocol's signature, as below
        on_silence: Callable[[LlmbError], None] = lambda _: None,  # noqa: ARG002
    ) -> tuple[StepState, ...]:
        """Report the steps; there is nothing to install."""
        on_change(self._steps)
        return self._steps


class RunaiProcedure(Procedure):
    """The only procedure of a Run:ai cluster, for every recipe with a NeMo 2 container."""

    script_title = "Workload"
    script_hint = "exactly what is sent to Run:ai"
    install_hint = "the workload brings its files"
    preparing = "asking the cluster for the workload's project …"
    submitting = "creating the workload"

    def refuse(self, recipe: Recipe) -> None:
        """Raise LlmbError (exit code 1) for a NeMo 1 recipe."""
        if not recipe.launch.by_entry_script:
            raise LlmbError(f"{recipe.id} cannot run as a workload.", f"It {NEMO_1}", ANOTHER, exit_code=1)

    def detail(self, recipe: Recipe) -> str:  # noqa: ARG002 - the signature of `Procedure`
        """Origin of the settings."""
        return "NVIDIA's settings"

    def preview(self, request: RunRequest) -> LaunchPreview:
        """Preview without the request, which needs the workload's project: see `prepare`."""
        profile_of(request)
        way = (
            "Run:ai: NVIDIA's settings, given to NeMo by our script in the recipe's container, as one workload; "
            "follows the published API, and has not been tested on a real Run:ai yet"
        )
        return LaunchPreview(
            way, tuple(problems(request)), starts="One workload is created in the project, at most once"
        )

    def needs(self, request: RunRequest, sources: Sources = PUBLIC) -> RunaiNeeds:  # noqa: ARG002 - as above
        """The image, GPUs of the right type, and the volumes."""
        plan = request.plan
        image = f"{REGISTRY}/{plan.container}" if plan.container else ""
        return RunaiNeeds(profile_of(request), plan, image, hub=plan.options.hub_tokenizer)

    def install(self, request: RunRequest) -> NoReturn:  # noqa: ARG002 - as above
        """Raise TypeError: see `installer`."""
        raise TypeError("nothing is installed for a workload")

    def installer(self, cluster: Cluster, request: RunRequest, sources: Sources) -> RunaiInstall:  # noqa: ARG002
        """Installer without work. Raises LlmbError (exit code 1) if the plan's image is unknown."""
        return RunaiInstall(f"{REGISTRY}/{container(request.plan)}")

    def prepare(self, cluster: Cluster, request: RunRequest, intent: Intent) -> PreparedRun:
        """Prepare the request that creates the workload; the cluster is asked for the project."""
        runai = runai_of(cluster)
        spec = runai_spec(request, intent.run_id)
        runai.connect(intent.prompter)
        script = as_json(creation_request(spec, _placement(runai, spec)))
        return PreparedRun(request, Run.of(request, spec, intent.at), script, spec.overridden, spec.notes)

    def delivery(self, run: Run, cluster: Cluster) -> RunaiDelivery:
        """Submission by one request to Run:ai's API."""
        return RunaiDelivery(runai_of(cluster), run)

    def compare_script(self, run: Run, script: str) -> ScriptCheck:
        """Compare the request that creates the workload with the spec."""
        return ScriptCheck(CHECKED, tuple(request_differences(run.spec_as(RunaiSpec), script)))

    def refuse_fetch(self, run: Run) -> NoReturn:
        """Raise LlmbError (exit code 1): the files are in pods or on a volume."""
        location = f"at {run.results} on a volume" if run.results else "in its pods, and were deleted with them"
        raise LlmbError(
            f"The files of run {run.id} cannot be fetched.",
            f"They are {location}, which only a workload on the Run:ai cluster can read; the log was copied here.",
            f"`llmb-tui logs {run.id}` prints the log; for the rest, start a workload that mounts the volume.",
            exit_code=1,
        )


def _placement(cluster: RunaiCluster, spec: RunaiSpec) -> Placement:
    project = cluster.project()
    if spec.hub_credential is None:
        return Placement(project.id, project.cluster_id)
    for credential in cluster.api.credentials(project.id):
        if credential.name == spec.hub_credential and credential.hub_token:
            return Placement(project.id, project.cluster_id, credential.hub_token)
    raise LlmbError(
        f"The project {project.name} has no credential {spec.hub_credential} with a Hugging Face token.",
        f"A generic secret with an entry {' or '.join(HUB_KEYS)} is needed.",
        "Create it in Run:ai under Credentials, or name another one in the cluster's profile.",
        exit_code=1,
    )
