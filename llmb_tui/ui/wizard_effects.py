"""Effects of the wizard that block, each in its own thread: tasks on a cluster, reads of this machine's files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import Event

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import LlmbError
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.prepared import LaunchPreview
from llmb_tui.launch.run import Run
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.preflight.report import Check, Preflight
from llmb_tui.request import RunRequest
from llmb_tui.services import Services
from llmb_tui.wizard import effects, events
from llmb_tui.wizard.answers import Answers, answers_from_selection, missing_from_catalog
from llmb_tui.wizard.state import Rules, Task
from llmb_tui.wizard.transitions import Change
from llmb_tui.wizard.update import open_wizard

PostEvent = Callable[[events.Event], None]
_TASKS: dict[type[effects.ClusterTask], Task] = {
    effects.Probe: "probe",
    effects.Install: "install",
    effects.Prepare: "prepare",
    effects.PrepareAhead: "prepare ahead",
    effects.Submit: "submit",
}


def read_start(services: Services) -> Change:
    """Read the wizard's first state: presets, saved clusters and the answers of the last session.

    Raises `LlmbError` for a preset, profile or run file that does not fit.
    """
    catalog, profiles, runs = services.catalog, services.clusters.profiles(), services.runs.all()
    names = {profile.name for profile in profiles}
    answers = Answers()
    suite_runs = _runs_of_suites(services)
    single_runs = [run for run in runs if run.spec and run.id not in suite_runs]
    if single_runs:
        last = answers_from_selection(single_runs[0].plan.selection, single_runs[0].cluster, single_runs[0].procedure)
        answers = Answers() if missing_from_catalog(catalog, last) else last
    if answers.cluster not in names:
        answers = replace(answers, cluster=profiles[0].name if len(profiles) == 1 else None)
    if answers.recipe is None and len(profiles) == 1:
        answers = replace(answers, recipe=_first_supported_recipe(catalog, profiles[0]))
    active_runs = tuple(run for run in runs if run.is_active)
    return open_wizard(wizard_rules(catalog, services.policy), answers, profiles, active_runs)


def _runs_of_suites(services: Services) -> frozenset[str]:
    """Ids of runs that a suite submitted. Their settings were not chosen one by one."""
    if services.places.suites.is_dir():
        with contextlib.suppress(LlmbError):  # the list of suites shows the error of an unreadable suite
            return frozenset(run_id for suite in services.suites.all() for run_id in suite.run_ids)
    return frozenset()


def _first_supported_recipe(catalog: Catalog, profile: ClusterProfile) -> str | None:
    """The first recipe that the only cluster can run; None if that is the first of the catalog, or none."""
    from llmb_tui.launch.procedure_loader import unavailable
    from llmb_tui.launch.procedures import procedures_on

    usual = procedures_on(profile)[0]
    fit = next((recipe for recipe in catalog.recipes if not unavailable(usual, recipe)), catalog.recipes[0])
    return None if fit is catalog.recipes[0] else fit.id


def wizard_rules(catalog: Catalog, policy: Policy) -> Rules:
    """Functions of the lower layers for the wizard."""
    from llmb_tui.launch.procedure_loader import preview, procedure, recipe_preview
    from llmb_tui.launch.procedures import PROCEDURES, procedures_on
    from llmb_tui.launch.readiness import ClusterEvidence, blockers, read_only_problems

    def launch_preview(name: ProcedureId, recipe: Recipe, request: RunRequest | None) -> LaunchPreview:
        return recipe_preview(name, recipe) if request is None else preview(replace(request, procedure=name))

    def objections(
        request: RunRequest, checks: Sequence[Check], steps: Sequence[StepState]
    ) -> dict[ProcedureId, Problem | None]:
        answers = {name: procedure(name).objections(request, checks, steps) for name in procedures_on(request.profile)}
        return {name: next(iter(problems), None) for name, problems in answers.items() if problems is not None}

    def launch_blockers(
        request: RunRequest, report: Preflight | None, steps: Sequence[StepState]
    ) -> tuple[Problem, ...]:
        return blockers(request, policy, ClusterEvidence(report, steps))

    read_only = partial(read_only_problems, policy=policy)
    return Rules(catalog, launch_preview, objections, launch_blockers, read_only, PROCEDURES, procedures_on)


def load_procedures() -> None:
    """Import the default procedures now: the import is slow, and would delay a key later."""
    from llmb_tui.launch.procedure_loader import procedure
    from llmb_tui.launch.procedures import procedures_on

    for name in procedures_on(None):
        procedure(name)


def read(effect: effects.ReadRuns | effects.ReadOwnResults, services: Services) -> events.Event:
    """Read the runs, or a cluster's results; the first call parses the logs of all runs. Raises `LlmbError`."""
    if isinstance(effect, effects.ReadOwnResults):
        return events.OwnResultsRead(effect.cluster, services.local_results.of(effect.cluster))
    runs, launched = services.runs.all(), effect.launched
    newer = next((run for run in runs if launched is not None and run.id == launched.id), launched)
    return events.RunsRead(tuple(run for run in runs if run.is_active), newer)


def perform(task: effects.ClusterTask, services: Services, prompter: Prompter, post: PostEvent, stop: Event) -> None:
    """Run a task on a cluster, and report its outcomes. `stop` ends the watching of an install, not the install."""
    name, request = _TASKS[type(task)], task.request
    try:
        match task:
            case effects.Probe():
                _probe(task, services, prompter, post)
            case effects.Install():
                services.clusters.cluster(request.profile).connect(prompter)
                installer = services.launcher.installer(request)
                steps = installer.run(lambda steps: post(events.StepsChanged(request, steps)), stop)
                post(events.StepsChanged(request, steps))
            case effects.Prepare():
                post(events.Prepared(request, services.launcher.prepare(request, prompter)))
            case effects.PrepareAhead():
                with contextlib.suppress(LlmbError):  # Review makes it again, and shows the error
                    post(events.Prepared(request, services.launcher.prepare(request)))
            case effects.Submit():
                services.clusters.cluster(request.profile).connect(prompter)
                post(events.RunSubmitted(request, _submit(task, services, post)))
    except LlmbError as error:
        run_ended = isinstance(task, effects.Submit) and _has_ended(task.prepared.run.id, services)
        post(events.TaskFailed(request, name, error, run_ended))
    finally:
        post(events.TaskEnded(request, name))


def _probe(probe: effects.Probe, services: Services, prompter: Prompter, post: PostEvent) -> None:
    """Probe a cluster. An unattended probe asks no question and reports no error: the user connects later."""
    request = probe.request
    cluster = services.clusters.cluster(request.profile)
    try:
        cluster.connect(prompter if probe.attended else None)
        cluster.ping()
    except LlmbError:
        post(events.ConnectionChanged(request, "failed" if probe.attended else "unknown"))
        if not probe.attended:
            return
        raise
    post(events.ConnectionChanged(request, "connected", cluster.banner))
    report = services.launcher.preflight(
        request, lambda checked: post(events.CheckDone(request, checked, is_complete=False))
    )
    post(events.CheckDone(request, report, is_complete=True))
    post(events.StepsChanged(request, services.launcher.installer(request).probe()))
    if probe.early:
        with contextlib.suppress(LlmbError):  # the probe itself has succeeded
            post(events.EarlyChecked(request, services.launcher.early_checks(request)))


def _submit(submit: effects.Submit, services: Services, post: PostEvent) -> Run:
    from llmb_tui.launch.readiness import ClusterEvidence

    evidence = ClusterEvidence(submit.preflight, submit.steps)
    output = partial(events.LaunchOutput, submit.request)
    return services.launcher.submit(submit.prepared, evidence, lambda words: post(output(words)))


def _has_ended(run_id: str, services: Services) -> bool:
    """Whether a run was rejected or withdrawn."""
    runs = services.runs
    return runs.has(run_id) and runs.load(run_id).submission in ("refused", "withdrawn")
