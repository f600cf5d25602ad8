"""`ToyProcedure`: one batch script that prints the log of a training, submitted by one command."""

from __future__ import annotations

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.session import login_node
from llmb_tui.cluster.slurm.client import find_jobs
from llmb_tui.errors import LlmbError
from llmb_tui.launch.delivery import Jobs, OnStatus, Outcome
from llmb_tui.launch.files import config_files
from llmb_tui.launch.install_step import InstallPlan, InstallStep
from llmb_tui.launch.naming import experiment_name, nemo_run_name
from llmb_tui.launch.prepared import LaunchPreview, PreparedRun
from llmb_tui.launch.procedure import Intent, Procedure, ScriptCheck
from llmb_tui.launch.run import Run
from llmb_tui.launch.settings import resolve_settings
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.preflight.check_group import CheckGroup, ok
from llmb_tui.preflight.needs import PUBLIC, Needs, Sources
from llmb_tui.request import RunRequest

_STEP = "Training epoch 0, iteration {0}/{1} | global_step: {0} | train_step_timing in s: 0.01"


class ToyDelivery:
    """`sbatch` by one command, whose outcome is unknown after a cut line."""

    def __init__(self, run: Run, cluster: Cluster) -> None:
        self._session, self._spec, self._words = login_node(cluster), run.spec_as(LaunchSpec), ""

    def was_sent(self) -> bool:
        """Find out by the job's name."""
        return bool(find_jobs(self._session, self._spec.job_name))

    def prepare(self, script: str) -> None:
        """Write the script."""
        self._session.run(["mkdir", "-p", self._spec.task_dir])
        self._session.write_file(f"{self._spec.task_dir}/run.sh", script.encode())

    def begin(self) -> None:
        """Pass the script to sbatch."""
        self._words = self._session.run(["sbatch", "--parsable", f"{self._spec.task_dir}/run.sh"]).stdout

    def answer(self, tell: OnStatus) -> Outcome:
        """Return the job."""
        tell("sbatch has answered")
        return Outcome("submitted", jobs=Jobs((self._words.strip(),)))

    def look_up(self, *, withdraw: bool) -> Outcome:  # noqa: ARG002 - a `Delivery`'s
        """Return the job of that name."""
        jobs = find_jobs(self._session, self._spec.job_name)
        return Outcome("submitted", jobs=Jobs((jobs[0].id,))) if jobs else Outcome("withdrawn")

    def refusal(self, run: Run) -> LlmbError:
        """Quote Slurm."""
        return LlmbError("Slurm refused the toy.", run.note)


class ToyProcedure(Procedure):
    """Runs every recipe whose log is NeMo 2's."""

    script_title = "Toy script"
    script_hint = "a loop"
    submitting = "looping"

    def refuse(self, recipe: Recipe) -> None:
        """Raise LlmbError (exit code 1) for a log of another form."""
        if recipe.launch.kind != "nemo2":
            raise LlmbError(f"{recipe.id} has no toy.", "Its log has another form.", "Choose another.", exit_code=1)

    def detail(self, recipe: Recipe) -> str:  # noqa: ARG002 - a `Procedure`'s
        """Short description."""
        return "trains nothing"

    def preview(self, request: RunRequest) -> LaunchPreview:
        """Preview without objections."""
        self.refuse(request.recipe)
        return LaunchPreview("toy: a loop of echo")

    def needs(self, request: RunRequest, sources: Sources = PUBLIC) -> Needs:
        """Needs of the plan only."""
        return Needs(request.slurm, request.plan, sources=sources)

    def checks(self, request: RunRequest) -> tuple[CheckGroup, ...]:  # noqa: ARG002 - a `Procedure`'s
        """Check that there are toys."""
        return (lambda *_: (ok("toys", "Toys", "enough", "some"),),)

    def install(self, request: RunRequest) -> InstallPlan:
        """Install one directory."""
        path = f"{request.slurm.install_dir}/toys"
        return (InstallStep("toys", "Toy box", (path,), 'fresh_folder "$@"', (path,)),)

    def prepare(self, cluster: Cluster, request: RunRequest, intent: Intent) -> PreparedRun:  # noqa: ARG002
        """Prepare the loop as a script."""
        plan, profile = request.plan, request.slurm
        experiment, settings = experiment_name(request), resolve_settings(request)
        task = f"{experiment}_{intent.run_id}"
        folder = f"{profile.install_dir}/toys/{task}"
        spec = LaunchSpec(
            run_id=intent.run_id,
            experiment=experiment,
            task=task,
            experiment_dir=folder,
            task_dir=folder,
            job_name=nemo_run_name(profile.account, task),
            account=profile.account,
            partition=profile.partition,
            nodes=plan.nodes,
            tasks_per_node=plan.gpus_per_node,
            gpu_request=profile.gpu_request,
            time_limit=plan.time_limit,
            container_image="",
            mounts=(),
            env=tuple(settings.env.items()),
            command=(*settings.prefix, "echo"),
            files=config_files(request, settings),
            notes=("nothing is trained",),
        )
        return PreparedRun(request, Run.of(request, spec, intent.at), _script(spec, plan.steps), notes=spec.notes)

    def delivery(self, run: Run, cluster: Cluster) -> ToyDelivery:
        """Submit by one command."""
        return ToyDelivery(run, cluster)

    def compare_script(self, run: Run, script: str) -> ScriptCheck:
        """Compare the job's name."""
        return ScriptCheck("the toy's name", () if run.job_name in script else ("name",))


def _script(spec: LaunchSpec, steps: int) -> str:
    options = {
        "job-name": spec.job_name,
        "account": spec.account,
        "partition": spec.partition,
        "nodes": spec.nodes,
        "ntasks-per-node": spec.tasks_per_node,
        "gpus-per-node": spec.tasks_per_node,
        "time": spec.time_limit,
        "output": f"{spec.task_dir}/log-{spec.job_name}_%j_0.out",
    }
    head = [f"#SBATCH --{name}={value}" for name, value in options.items()]
    loop = [f"echo '{_STEP.format(step, steps - 1)}'" for step in range(steps)]
    return "\n".join(["#!/bin/bash", *head, *loop, ""])
