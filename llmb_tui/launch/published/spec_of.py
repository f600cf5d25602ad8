"""`published_spec`: what a plan's launch by the published procedure is made of. Pure."""

from __future__ import annotations

import re

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.params import sbatch_options
from llmb_tui.cluster.slurm.version import SRUN_OUTPUT_SINCE, Version
from llmb_tui.cluster.words import NAME, PATH, fits
from llmb_tui.errors import Trouble
from llmb_tui.launch.job_log import JobLog
from llmb_tui.launch.published.command import PublishedCommand, published_command
from llmb_tui.launch.published.paths import procedure_of, published_paths
from llmb_tui.launch.published.spec import PublishedSpec
from llmb_tui.launch.published.steps import published_steps
from llmb_tui.launch.spec_of import experiment_name, nemo_run_name, refuse_errors
from llmb_tui.plan.plan import Plan
from llmb_tui.text import clean_line


def published_spec(
    recipe: Recipe, plan: Plan, profile: ClusterProfile, run_id: str, slurm: Version | None = None
) -> PublishedSpec:
    """Everything that the launch of `plan` on `profile` is made of. `slurm` is the cluster's version; None: not known.

    Raises Trouble (exit code 1) when the plan cannot be launched in this way, and as `published_command` does.
    """
    command, paths = published_command(recipe, plan, profile), published_paths(recipe, plan, profile)
    what = "This plan cannot be launched by the published procedure."
    refuse_errors(what, (*plan.problems, *command.problems))
    launch = procedure_of(recipe).launch
    nemo_run = launch.how == "bash"
    experiment = experiment_name(recipe, plan)
    account = profile.account
    spec = PublishedSpec(
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
        needed=tuple(result for step in published_steps(recipe, plan, profile) for result in step.results),
        token_file=command.token_file,
        account=account,
        partition=profile.partition,
        nodes=plan.nodes,
        tasks_per_node=plan.gpus_per_node,
        gpu_request=profile.gpu_request,
        time_limit=plan.time_limit,
        memory=profile.memory,
        options=sbatch_options(profile),
        log=None if nemo_run else _batch_log(command, slurm),
        notes=tuple(problem.reason for problem in command.problems),
    )
    for path in (spec.folder, spec.directory, spec.results):
        _check(PATH, path, "a path of the launch")
    _check(NAME, spec.job_name, "the job's name")
    return spec


def _batch_log(command: PublishedCommand, slurm: Version | None) -> JobLog:
    """Where the training of a batch script writes: srun reads SRUN_OUTPUT in newer versions of Slurm only."""
    batch = f"{command.directory}/slurm-%j.out"
    if slurm is not None and slurm < SRUN_OUTPUT_SINCE:
        return JobLog(batch)
    return JobLog(command.log, (f"{command.log.removesuffix('.out')}.err", batch))


def _check(pattern: re.Pattern[str], value: str, what: str) -> None:
    if not fits(pattern, value):
        raise Trouble(
            f"{clean_line(value)!r} cannot be used as {what}.",
            "It may consist of letters, digits and . _ + @ = - only, and / in paths.",
            "Change it in the cluster's profile.",
            exit_code=1,
        )
