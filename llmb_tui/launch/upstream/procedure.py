"""`UpstreamProcedure`: NVIDIA's scripts, unchanged: the repository at its tag, its setup, its launch script."""

from __future__ import annotations

from collections.abc import Sequence

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.upstream import LaunchScript
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.session import login_node
from llmb_tui.cluster.slurm.client import SRUN_OUTPUT_SINCE, Version, slurm_version
from llmb_tui.cluster.slurm.params import sbatch_options
from llmb_tui.cluster.validation import NAME, PATH
from llmb_tui.launch.install_step import InstallPlan, brought_image, offline_folder
from llmb_tui.launch.naming import check_pattern, experiment_name, image_path, nemo_run_name
from llmb_tui.launch.prepared import LaunchPreview, PreparedRun
from llmb_tui.launch.procedure import Intent, Procedure, ScriptCheck
from llmb_tui.launch.run import Run
from llmb_tui.launch.secret_needs import hub_token, registry_key
from llmb_tui.launch.settings import refuse_errors, vboost_difference
from llmb_tui.launch.spec import UpstreamSpec
from llmb_tui.launch.step_state import StepState
from llmb_tui.launch.upstream.command import UpstreamCommand, differences, upstream_command
from llmb_tui.launch.upstream.commits import commit_objections, commits_group
from llmb_tui.launch.upstream.delivery import UpstreamDelivery
from llmb_tui.launch.upstream.install import brought_sources, set_up_note, upstream_install
from llmb_tui.launch.upstream.paths import scripts_of, upstream_paths
from llmb_tui.plan.plan import Problem
from llmb_tui.preflight.check_group import CheckGroup
from llmb_tui.preflight.needs import PUBLIC, Needs, Sources
from llmb_tui.preflight.report import Check
from llmb_tui.preflight.secret import SecretNeed
from llmb_tui.request import RunRequest


class UpstreamProcedure(Procedure):
    """Runs a recipe with the unmodified scripts that its preset names."""

    script_title = "Command"
    script_hint = "exact command that launches it"
    submitting = "launching"

    def refuse(self, recipe: Recipe) -> None:
        """Raise LlmbError (exit code 1) if the preset does not describe the scripts."""
        scripts_of(recipe)

    def detail(self, recipe: Recipe) -> str:
        """The scripts' tag."""
        return f"of {recipe.upstream.tag}" if recipe.upstream else ""

    def preview(self, request: RunRequest) -> LaunchPreview:
        """Preview with the exact command of the launch script."""
        scripts, command = scripts_of(request.recipe), upstream_command(request)
        names = f"{scripts.setup.script} and {scripts.launch.script}"
        return LaunchPreview(
            way=f"NVIDIA's scripts: {names} of {scripts.tag}, unchanged",
            problems=command.problems,
            command=command.text,
            starts=_starts(scripts.launch),
            results=command.results,
            takes_token=bool(command.token_file),
            differences=tuple(differences(request.recipe)),
            notes=scripts.notes,
        )

    def needs(self, request: RunRequest, sources: Sources = PUBLIC) -> Needs:
        """The repository and, for some recipes, a Python environment and a tokenizer."""
        scripts, plan = scripts_of(request.recipe), request.plan
        python, by_launch = scripts.python_exact or scripts.python, scripts.launch.needs_hub_token
        return Needs(
            request.slurm,
            plan,
            image=image_path(request.slurm.install_dir, plan.container) if plan.container else "",
            brought_image=brought_image(request) if plan.container else "",
            brought_sources=brought_sources(request),
            brought_packages=f"{offline_folder(request)}/wheels" if python is not None else "",
            venv=python is not None,
            environment_gb=scripts.environment.gb if scripts.environment else None,
            python=python,
            python_only=scripts.python_exact is not None,
            repository=scripts.repository,
            hub=scripts.setup.needs_hub_token or by_launch or plan.options.hub_tokenizer,
            set_up=set_up_note(request) if plan.container else "",
            hub_each_run=plan.options.hub_tokenizer or by_launch,
            sbatch_variables=True,
            sources=sources,
        )

    def checks(self, request: RunRequest) -> tuple[CheckGroup, ...]:
        """Check that the commits which the setup script fetches are public."""
        return commits_group(request)

    def objections(
        self, request: RunRequest, checks: Sequence[Check], steps: Sequence[StepState]
    ) -> tuple[Problem, ...] | None:
        """Problem of a required commit that is not public."""
        return commit_objections(request, checks, steps)

    def secrets(self, request: RunRequest) -> tuple[SecretNeed, ...]:
        """The registry's API key, and the token with which the scripts download the tokenizer."""
        return (*registry_key(request.plan), *hub_token(request, required=True))

    def install(self, request: RunRequest) -> InstallPlan:
        """Steps for the repository, its environment and its setup script."""
        return upstream_install(request)

    def prepare(self, cluster: Cluster, request: RunRequest, intent: Intent) -> PreparedRun:
        """Prepare the launch command. Slurm's version determines the log's path of a batch script."""
        by_sbatch = scripts_of(request.recipe).launch.how == "sbatch"
        version = slurm_version(login_node(cluster), intent.prompter) if by_sbatch else None
        spec = upstream_spec(request, intent.run_id, version)
        return PreparedRun(request, Run.of(request, spec, intent.at), spec.command)

    def delivery(self, run: Run, cluster: Cluster) -> UpstreamDelivery:
        """Launch of the script on the login node."""
        return UpstreamDelivery(cluster, run)

    def compare_script(self, run: Run, script: str) -> ScriptCheck:
        """Compare the command with the spec."""
        differences = ("command",) * (run.spec_as(UpstreamSpec).command.strip() not in script)
        return ScriptCheck("the command of NVIDIA's scripts", differences)


def _starts(launch: LaunchScript) -> str:
    if launch.how == "sbatch":
        return f"{launch.script} is passed to sbatch on the login node, at most once; it is one job"
    return f"{launch.script} is started on the login node, detached and at most once; it may submit up to three jobs"


def upstream_spec(request: RunRequest, run_id: str, slurm: Version | None = None) -> UpstreamSpec:
    """Make the complete spec of the launch. `slurm` is the cluster's version; None if unknown.

    Raises LlmbError (exit code 1) if the plan cannot be launched with this procedure, or the command cannot be written.
    """
    plan, profile = request.plan, request.slurm
    command, paths = upstream_command(request), upstream_paths(request)
    refuse_errors("NVIDIA's scripts cannot launch this plan.", (*plan.problems, *command.problems))
    launch = scripts_of(request.recipe).launch
    nemo_run = launch.how == "bash"
    experiment = experiment_name(request)
    account = profile.account
    takes_vboost = any("{vboost}" in group.values.values() for group in launch.variables)
    vboost = request.recipe.always_vboost or (profile.vboost and takes_vboost)
    spec = UpstreamSpec(
        run_id=run_id,
        experiment=experiment if nemo_run else "",
        job_name=nemo_run_name(account, experiment) if nemo_run else command.job_name,
        folder=f"{paths.root}/.llmb-tui/launches/{run_id}",
        script=launch.script,
        how=launch.how,
        command=command.text,
        directory=command.directory,
        root=paths.root,
        results=command.results,
        needed=tuple(result for step in upstream_install(request) for result in step.results),
        token_file=command.token_file,
        account=account,
        partition=profile.partition,
        nodes=plan.nodes,
        tasks_per_node=plan.gpus_per_node,
        gpu_request=profile.typed_gpu_request,
        time_limit=plan.time_limit,
        memory=profile.memory,
        options=sbatch_options(profile),
        log=None if nemo_run else _batch_log(command, slurm),
        notes=tuple(problem.reason for problem in command.problems),
        otherwise=tuple(vboost_difference(request, vboost=vboost)),
    )
    for path in (spec.folder, spec.directory, spec.results):
        check_pattern(PATH, path, "path of the launch")
    check_pattern(NAME, spec.job_name, "job name")
    return spec


def _batch_log(command: UpstreamCommand, slurm: Version | None) -> JobLog:
    """Log of a batch script's training: only newer versions of Slurm's srun read SRUN_OUTPUT."""
    batch = f"{command.directory}/slurm-%j.out"
    if slurm is not None and slurm < SRUN_OUTPUT_SINCE:
        return JobLog(batch)
    return JobLog(command.log, (f"{command.log.removesuffix('.out')}.err", batch))
