"""`update`: state and event in; next state and requested effects out. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.language.states import state_label
from llmb_tui.launch.run import Run
from llmb_tui.request import RunRequest
from llmb_tui.wizard import effects, events
from llmb_tui.wizard.answers import Answers, answer, answers_from_selection, missing_from_catalog
from llmb_tui.wizard.gates import first_error, next_step, problems, read_only_reason, submit_blocker
from llmb_tui.wizard.proposal import objection_key, propose
from llmb_tui.wizard.state import ClusterState, Launch, Rules, Task, WizardState, identity
from llmb_tui.wizard.steps import StepId
from llmb_tui.wizard.transitions import (
    Change,
    ask_to_submit,
    go_to_step,
    install,
    prepare,
    prepare_ahead,
    prepend_effects,
    probe,
    read_results,
    reload,
    replan,
    unknown_cluster,
    with_measurement,
    with_step_confirmed,
    with_task_started,
)


def open_wizard(
    rules: Rules, answers: Answers, profiles: tuple[ClusterProfile, ...] = (), active_runs: tuple[Run, ...] = ()
) -> Change:
    """The first state, with the answers of the last session, the saved clusters and the active runs."""
    proposal = propose(rules, answers, profiles, {}, StepId.WORKLOAD)
    cluster = unknown_cluster(proposal.profile)
    state = WizardState(rules, answers, proposal, profiles=profiles, active_runs=active_runs, cluster=cluster)
    return state, (effects.FocusFirst(), effects.StartIdleTimer(), *read_results(state))


def update(state: WizardState, event: events.Event) -> Change:  # noqa: PLR0911 - a case for each event
    """The next state after an event, and the effects to run."""
    match event:
        case events.Answered(field, value):
            return _answered(state, answer(state.answers, field, value))
        case events.RunAgain(run):
            return _run_again(state, run)
        case events.StepSelected(step):
            return go_to_step(with_step_confirmed(state) if step > state.step else state, step)
        case events.ActionRequested(action):
            return _ACTIONS[action](state)
        case events.ProfileSaved():
            return _profile_saved(state, event)
        case events.SubmitConfirmed():
            return _submit(state, event)
        case events.FailureDismissed():
            return prepare(state)
        case events.InputIdle():
            return _input_idle(state)
        case events.ScreenActive(active):
            return replace(state, in_front=active), reload(state) if active else ()
        case events.RunsRead():
            return _with_runs(state, event), ()
        case events.OwnResultsRead():
            return _with_results(state, event), ()
        case _:
            return _task_event(state, event)


# Actions of the user.


def _answered(state: WizardState, answers: Answers) -> Change:
    return replan(replace(state, answers=answers)) if answers != state.answers else (state, ())


def _next(state: WizardState) -> Change:
    """Go to the next step, unless an answer of this step has an error."""
    error = next((problem for problem in problems(state, state.step) if problem.severity == "error"), None)
    if error is not None and state.step <= StepId.SCALE:
        return state, (effects.Notify(f"{error.reason} {error.fix}".strip()),)
    state = with_step_confirmed(state)
    return go_to_step(state, next_step(state))


def _enter(state: WizardState) -> Change:
    """Do what the step is for, or go to the next step once that is done."""
    cluster = state.cluster
    if state.step is StepId.CLUSTER and not cluster.ready:
        return _check(state)
    if state.step is StepId.INSTALL and not cluster.installed:
        return install(state)
    if state.step is StepId.REVIEW and cluster.launched is None:
        return ask_to_submit(state)
    if state.step is StepId.RUN:
        return state, (effects.OpenRun(cluster.launched.id),) if cluster.launched is not None else ()
    return _next(state)


def _check(state: WizardState) -> Change:
    """Connect to the cluster and check it; without a cluster, add one."""
    if state.proposal.profile is None:
        return state, (effects.EditCluster(None),)
    if state.cluster.tasks & {"install", "submit"}:
        return state, (effects.Notify("An install or a submission is active on this cluster. Check it afterwards."),)
    if state.proposal.request is None:
        return state, (effects.Notify(first_error(state) or "Choose a workload first."),)
    return probe(state, attended=True)


def _show_keys(state: WizardState) -> Change:
    request = state.proposal.request
    if why_not := read_only_reason(state):
        return state, (effects.Notify(why_not),)
    return state, (effects.AskForApiKeys(request, state.cluster.key_would_help),) if request is not None else ()


def _start_over(state: WizardState) -> Change:
    state, first = go_to_step(
        replace(state, cluster=replace(state.cluster, prepared=None, launched=None)), StepId.WORKLOAD
    )
    return prepend_effects(first, prepare_ahead(state))


def _run_again(state: WizardState, run: Run) -> Change:
    """Take the answers of a run and show the step of its scale; keep the answers if no preset has its configuration."""
    answers = answers_from_selection(run.plan.selection, run.cluster, run.procedure)
    if missing := missing_from_catalog(state.rules.catalog, answers):
        return state, (effects.Notify(f"Run {run.id} cannot be run again: no preset has {missing} any more."),)
    cluster = replace(state.cluster, prepared=None, launched=None)
    state, first = replan(replace(state, answers=answers, cluster=cluster))
    state, arrived = go_to_step(state, StepId.SCALE)
    state, ahead = prepare_ahead(state)
    return state, (*first, *arrived, *ahead, effects.Notify(*_rerun_message(state, run)))


def _rerun_message(state: WizardState, run: Run) -> tuple[str, Literal["information", "warning"]]:
    """Message and severity about a run whose settings were copied: name a setting that could not be copied."""
    if state.proposal.profile is None:
        return f"Settings of run {run.id}, but cluster {run.cluster} is no longer saved. Choose a cluster.", "warning"
    if state.procedure != run.procedure:
        names = [state.rules.procedures[name].title for name in (run.procedure, state.procedure)]
        return f"Settings of run {run.id}, but launched by {names[1]} instead of {names[0]}.", "warning"
    return f"Settings of run {run.id}. Change any of them, then submit.", "information"


_ACTIONS: dict[events.Action, Callable[[WizardState], Change]] = {
    "back": lambda state: go_to_step(state, StepId(max(state.step - 1, StepId.WORKLOAD))),
    "next": _next,
    "enter": _enter,
    "check": _check,
    "install": install,
    "keys": _show_keys,
    "submit": ask_to_submit,
    "again": _start_over,
}


def _profile_saved(state: WizardState, event: events.ProfileSaved) -> Change:
    saved = {profile.name: profile for profile in (*state.profiles, event.profile)}
    profiles = tuple(sorted(saved.values(), key=lambda profile: f"{profile.name}.toml"))  # in the order of their files
    answers = replace(state.answers, cluster=event.profile.name)
    state, first = replan(replace(state, answers=answers, profiles=profiles))
    return prepend_effects(first, probe(state, attended=True))


def _submit(state: WizardState, event: events.SubmitConfirmed) -> Change:
    if state.launch is not None:
        return state, (effects.Notify(submit_blocker(state)),)
    prepared = event.prepared
    cluster = with_task_started(state.cluster, "submit") if state.concerns(prepared.request) else state.cluster
    submit = effects.Submit(prepared, cluster.preflight, cluster.steps)
    return replace(state, launch=Launch(prepared.run, event.monotonic_s), cluster=cluster), (submit,)


# Timers, and reads of this machine's files.


def _input_idle(state: WizardState) -> Change:
    """Probe a saved cluster without a request of the user, so that its step is done when they reach it."""
    cluster, profile = state.cluster, state.proposal.profile
    fresh = cluster.link == "unknown" and profile is not None and profile.name not in state.probed
    stale = cluster.link == "connected" and cluster.preflight is None
    return probe(state, attended=False) if (fresh or stale) and not cluster.tasks else (state, ())


def _with_runs(state: WizardState, event: events.RunsRead) -> WizardState:
    launched, newer = state.cluster.launched, event.launched
    if launched is not None and newer is not None and launched.id == newer.id:
        state = replace(state, cluster=replace(state.cluster, launched=newer))
    return replace(state, active_runs=event.active_runs)


def _with_results(state: WizardState, event: events.OwnResultsRead) -> WizardState:
    profile = state.proposal.profile
    chosen = profile is not None and profile.name == event.cluster
    return with_measurement(replace(state, results=event.results)) if chosen else state


# News of tasks on a cluster.


def _task_event(state: WizardState, event: events.TaskEvent) -> Change:  # noqa: PLR0911 - a case for each event
    """Handle news of a task. News of an earlier request changes only state that does not depend on the request."""
    present, cluster = state.concerns(event.request), state.cluster
    match event:
        case events.ConnectionChanged():
            return _link_changed(state, event, present)
        case events.EarlyChecked():
            return _early_checked(state, event, present)
        case events.LaunchOutput(_, line):
            return replace(state, launch=replace(state.launch, last_line=line) if state.launch else None), ()
        case events.RunSubmitted(_, run):
            return _submitted(state, run, present)
        case events.TaskFailed():
            return _failed(state, event, present)
        case events.TaskEnded(request, task):
            return _task_ended(state, request, task, present)
        case _ if not present:
            return state, ()
        case events.CheckDone(_, report, is_complete):
            if not is_complete:
                return replace(state, cluster=replace(cluster, checked=report)), ()
            return _update_objections(replace(state, cluster=replace(cluster, preflight=report)), event.request)
        case events.Prepared(_, prepared):
            return replace(state, cluster=replace(cluster, prepared=prepared)), ()
        case events.StepsChanged(request, steps):
            return _update_objections(replace(state, cluster=replace(cluster, steps=steps)), request)


def _link_changed(state: WizardState, event: events.ConnectionChanged, present: bool) -> Change:
    """Keep the new state of the connection; then make the script, or probe again for the current request."""
    cluster, profile = state.cluster, event.request.profile
    if event.link == "connected" and profile.name in state.probed:
        # When it is chosen again, a probe may start without the user: it asks no question.
        state = replace(state, probed=state.probed - {profile.name})
    if state.proposal.profile != profile:
        return state, ()
    banner = cluster.banner if event.banner is None else event.banner
    unreachable = cluster.unreachable if event.link == "failed" else None
    changed = replace(state, cluster=replace(cluster, link=event.link, banner=banner, unreachable=unreachable))
    if present:
        return prepare_ahead(changed)
    return changed, (effects.StartIdleTimer(),) if event.link != cluster.link else ()


def _failed(state: WizardState, event: events.TaskFailed, present: bool) -> Change:
    """Keep an error of the connection for every request on the same cluster, and other errors for this request."""
    cluster, error = state.cluster, event.error
    if event.task == "probe" and cluster.link == "failed" and state.proposal.profile == event.request.profile:
        cluster = replace(cluster, unreachable=error)
    if present:
        prepared = None if event.run_ended else cluster.prepared
        cluster = replace(cluster, error=error, failed_task=event.task, prepared=prepared)
    if cluster != state.cluster:
        state = replace(state, cluster=cluster)
    return state, (effects.ShowFailure(error),) if event.task == "submit" else ()


def _early_checked(state: WizardState, event: events.EarlyChecked, present: bool) -> Change:
    request = event.request
    state = replace(state, checked_early=state.checked_early | {objection_key(request, request.procedure)})
    if not present:
        return _update_objections(state, request, ClusterState(early=event.checks))
    return _update_objections(replace(state, cluster=replace(state.cluster, early=event.checks)), request)


def _update_objections(state: WizardState, request: RunRequest, known: ClusterState | None = None) -> Change:
    """Merge objections to launch methods that checks or install steps found; a later check can remove one.

    `known`: facts for a request that is not the current one.
    """
    known = known or state.cluster
    checks = (*(known.preflight.checks if known.preflight is not None else ()), *known.early)
    shown = {
        objection_key(request, name): problem
        for name, problem in state.rules.objections(request, checks, known.steps).items()
    }
    merged = {key: problem for key, problem in {**state.objections, **shown}.items() if problem is not None}
    return replan(replace(state, objections=merged)) if merged != state.objections else (state, ())


def _submitted(state: WizardState, run: Run, present: bool) -> Change:
    """Open the run; if the user has left Review meanwhile, only show a message."""
    if present:
        state = replace(state, cluster=replace(state.cluster, launched=run))
    if present and state.step is StepId.REVIEW and state.in_front:
        state, first = go_to_step(state, StepId.RUN)
        return state, (*first, effects.OpenRun(run.id))
    return state, (effects.Notify(launch_notice(run), "information"), *reload(state))


def _task_ended(state: WizardState, request: RunRequest, task: Task, present: bool) -> Change:
    if task == "submit":
        state = replace(state, launch=None)
    elif task == "install" and identity(request) in state.installs:
        state = replace(state, installs=state.installs - {identity(request)})
    if not present:
        return state, ()
    cluster = replace(state.cluster, tasks=state.cluster.tasks - {task})
    if task == "prepare ahead" and state.step is StepId.REVIEW:
        return prepare(replace(state, cluster=cluster))  # the user is at Review by now, and can answer questions
    # On another screen, keys that the user is typing would go into the dialog.
    asks_for_key = task == "install" and state.in_front
    questions = (
        (effects.AskForApiKeys(request, cluster.key_would_help),) if asks_for_key and cluster.key_would_help else ()
    )
    unchecked = cluster.link == "connected" and cluster.preflight is None and cluster.failed_task is None
    # The idle timer may have ended while this task was active.
    timer = (effects.StartIdleTimer(),) if unchecked and task != "probe" and not cluster.tasks else ()
    return replace(state, cluster=cluster), (*questions, *timer)


def launch_notice(run: Run) -> str:
    """A message about the outcome of a submission, for a user who has left Review."""
    if run.submission == "unknown":
        return f"It is unknown whether run {run.id} was submitted. Press J: the list of runs asks the cluster."
    ids = run.job_ids
    jobs = f", job{'s' * (len(ids) > 1)} {', '.join(ids)}" if ids else ""
    return f"Run {run.id} on {run.cluster}{jobs}: {state_label(run.submission).word} (J: list runs)"
