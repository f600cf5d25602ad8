"""`DirectProcedure`: our own batch script; the cluster needs only the container image."""

from __future__ import annotations

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.session import login_node
from llmb_tui.cluster.slurm.client import slurm_version
from llmb_tui.cluster.slurm.params import sbatch_options
from llmb_tui.launch.direct.delivery import DirectDelivery
from llmb_tui.launch.direct.install import direct_install
from llmb_tui.launch.direct.option_effects import NETWORK_README
from llmb_tui.launch.direct.script_check import CHECKED, script_differences
from llmb_tui.launch.direct.spec_of import launch_spec, wants_segment
from llmb_tui.launch.install_step import InstallPlan, brought_image
from llmb_tui.launch.naming import image_path
from llmb_tui.launch.prepared import LaunchPreview, PreparedRun
from llmb_tui.launch.procedure import Intent, Procedure, ScriptCheck
from llmb_tui.launch.run import Run
from llmb_tui.launch.secret_needs import hub_token, registry_key
from llmb_tui.launch.settings import resolve_settings
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.preflight.needs import PUBLIC, Needs, Sources
from llmb_tui.preflight.secret import SecretNeed
from llmb_tui.request import RunRequest

_BY_SCRIPT = "NVIDIA's settings, given to NeMo by our script in the recipe's container"
_BY_COMMAND = "NVIDIA's command and settings, launched by our batch script in the recipe's container"


class DirectProcedure(Procedure):
    """The default procedure, available for every recipe."""

    script_title = "Batch script"
    script_hint = "exactly what is submitted"
    submitting = "submitting"

    def refuse(self, recipe: Recipe) -> None:
        """Every recipe can use this procedure."""

    def detail(self, recipe: Recipe) -> str:  # noqa: ARG002 - the signature of `Procedure`
        """Origin of the settings."""
        return "NVIDIA's settings"

    def preview(self, request: RunRequest) -> LaunchPreview:
        """Preview without the script: NeMo-Run takes seconds to render it, see `prepare`."""
        way = _BY_SCRIPT if request.recipe.launch.by_entry_script else _BY_COMMAND
        return LaunchPreview(f"our script: {way}; the alternative is NVIDIA's scripts")

    def needs(self, request: RunRequest, sources: Sources = PUBLIC) -> Needs:
        """The image and, if the run's options ask for it, a tokenizer."""
        plan = request.plan
        return Needs(
            request.slurm,
            plan,
            image=image_path(request.slurm.install_dir, plan.container) if plan.container else "",
            brought_image=brought_image(request) if plan.container else "",
            python=request.recipe.access.python,
            hub=plan.options.hub_tokenizer,
            hub_each_run=plan.options.hub_tokenizer,
            sources=sources,
        )

    def secrets(self, request: RunRequest) -> tuple[SecretNeed, ...]:
        """The registry's API key, and the token that NVIDIA's scripts would need."""
        more = "Our script, which is used here, downloads nothing from it."
        return (*registry_key(request.plan), *hub_token(request, required=False, more=more))

    def install(self, request: RunRequest) -> InstallPlan:
        """Steps for the container image and our entry script."""
        return direct_install(request)

    def prepare(self, cluster: Cluster, request: RunRequest, intent: Intent) -> PreparedRun:
        """Render the batch script with NeMo-Run, which takes seconds."""
        segment = wants_segment(sbatch_options(request.slurm), resolve_settings(request))
        version = slurm_version(login_node(cluster), intent.prompter) if segment else None
        spec = launch_spec(request, intent.run_id, version)
        run = Run.of(request, spec, intent.at)
        return PreparedRun(request, run, intent.render(spec), spec.overridden, spec.notes)

    def delivery(self, run: Run, cluster: Cluster) -> DirectDelivery:
        """Submission with `sbatch` on the login node."""
        return DirectDelivery(cluster, run)

    def compare_script(self, run: Run, script: str) -> ScriptCheck:
        """Compare the batch script with the spec."""
        return ScriptCheck(CHECKED, tuple(script_differences(run.spec_as(LaunchSpec), script)))

    def network_folder(self, run: Run) -> str:
        """The run's folder, if the run was prepared to keep the lines."""
        spec = run.spec
        return spec.task_dir if isinstance(spec, LaunchSpec) and NETWORK_README in dict(spec.files) else ""
