"""`update`: the wizard's only transition. A state and an event in; the next state and the wanted effects out. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.language.states import state_label
from llmb_tui.launch.run import Run
from llmb_tui.request import RunRequest
from llmb_tui.wizard import effects, events
from llmb_tui.wizard.answers import Answers, answer, answers_of, missing_from_catalog
from llmb_tui.wizard.gates import first_error, following, observed, problems, submit_blocker
from llmb_tui.wizard.proposal import objection_key, propose
from llmb_tui.wizard.state import ClusterState, Launch, Rules, Task, WizardState, identity
from llmb_tui.wizard.steps import StepId
from llmb_tui.wizard.transitions import (
    Change,
    ask_to_submit,
    confirmed,
    go,
    install,
    measured,
    own_results,
    prepare,
    prepare_ahead,
    prepend_effects,
    probe,
    read_again,
    repropose,
    unknown_cluster,
    with_task_started,
)


def open_wizard(
    rules: Rules, answers: Answers, profiles: tuple[ClusterProfile, ...] = (), going: tuple[Run, ...] = ()
) -> Change:
    """The first state: presets, saved clusters, where the person was last time, and the runs that go on."""
    proposal = propose(rules, answers, profiles, {}, StepId.WORKLOAD)
    cluster = unknown_cluster(proposal.profile)
    state = WizardState(rules, answers, proposal, profiles=profiles, active_runs=going, cluster=cluster)
    return state, (effects.FocusFirst(), effects.StartIdleTimer(), *own_results(state))


def update(state: WizardState, event: events.Event) -> Change:  # noqa: PLR0911 - a case for each event
    """What an event makes of the wizard."""
    match event:
        case events.Answered(field, value):
            return _answered(state, answer(state.answers, field, value))
        case events.RunAgain(run):
            return _run_again(state, run)
        case events.StepTaken(step):
            return go(confirmed(state) if step > state.step else state, step)
        case events.ActionRequested(action):
            return _ACTIONS[action](state)
        case events.ProfileSaved():
            return _profile_saved(state, event)
        case events.SubmitAgreed():
            return _submit(state, event)
        case events.FailureRead():
            return prepare(state)
        case events.InputIdle():
            return _rested(state)
        case events.ScreenActive(now):
            return replace(state, in_front=now), read_again(state) if now else ()
        case events.RunsRead():
            return _with_runs(state, event), ()
        case events.OwnResultsRead():
            return _with_results(state, event), ()
        case _:
            return _heard(state, event)


# What the person does.


def _answered(state: WizardState, answers: Answers) -> Change:
    return repropose(replace(state, answers=answers)) if answers != state.answers else (state, ())


def _go_on(state: WizardState) -> Change:
    """On, unless an error stands against what was answered at this step."""
    error = next((one for one in problems(state, state.step) if one.severity == "error"), None)
    if error is not None and state.step <= StepId.SCALE:
        return state, (effects.Notify(f"{error.reason} {error.fix}".strip()),)
    state = confirmed(state)
    return go(state, following(state))


def _enter(state: WizardState) -> Change:
    """What the step is for; on, once that is done."""
    cluster = state.cluster
    if state.step is StepId.CLUSTER and not cluster.ready:
        return _check(state)
    if state.step is StepId.INSTALL and not cluster.installed:
        return install(state)
    if state.step is StepId.REVIEW and cluster.launched is None:
        return ask_to_submit(state)
    if state.step is StepId.RUN:
        return state, (effects.OpenRun(cluster.launched.id),) if cluster.launched is not None else ()
    return _go_on(state)


def _check(state: WizardState) -> Change:
    """Connect and check; without a cluster, enter one."""
    if state.proposal.profile is None:
        return state, (effects.EditCluster(None),)
    if state.cluster.tasks & {"install", "submit"}:
        return state, (effects.Notify("The cluster is at work for you: check it when that is done."),)
    if state.proposal.request is None:
        return state, (effects.Notify(first_error(state) or "Choose a workload first."),)
    return probe(state, attended=True)


def _show_keys(state: WizardState) -> Change:
    request = state.proposal.request
    if why_not := observed(state):
        return state, (effects.Notify(why_not),)
    return state, (effects.AskForKeys(request, state.cluster.key_would_help),) if request is not None else ()


def _again(state: WizardState) -> Change:
    state, first = go(replace(state, cluster=replace(state.cluster, prepared=None, launched=None)), StepId.WORKLOAD)
    return prepend_effects(first, prepare_ahead(state))


def _run_again(state: WizardState, run: Run) -> Change:
    """With what a run was, at the step with its scale; where that cannot be, the answers stay as they are."""
    answers = answers_of(run.plan.selection, run.cluster, run.procedure)
    if what := missing_from_catalog(state.rules.catalog, answers):
        return state, (effects.Notify(f"Run {run.id} cannot be made again: no preset has {what} any more."),)
    cluster = replace(state.cluster, prepared=None, launched=None)
    state, first = repropose(replace(state, answers=answers, cluster=cluster))
    state, arrived = go(state, StepId.SCALE)
    state, ahead = prepare_ahead(state)
    return state, (*first, *arrived, *ahead, effects.Notify(*_as_before(state, run)))


def _as_before(state: WizardState, run: Run) -> tuple[str, Literal["information", "warning"]]:
    """What is otherwise than it was in the run, as far as that follows from the answers."""
    if state.proposal.profile is None:
        return f"As run {run.id}, but cluster {run.cluster} is not saved any more: choose another one.", "warning"
    if state.procedure != run.procedure:
        names = [state.rules.procedures[name].title for name in (run.procedure, state.procedure)]
        return f"As run {run.id}, but it was started by {names[0]}, and this one is by {names[1]}.", "warning"
    return f"As run {run.id}. Change what should be otherwise.", "information"


_ACTIONS: dict[events.Action, Callable[[WizardState], Change]] = {
    "back": lambda state: go(state, StepId(max(state.step - 1, StepId.WORKLOAD))),
    "next": _go_on,
    "enter": _enter,
    "check": _check,
    "install": install,
    "keys": _show_keys,
    "submit": ask_to_submit,
    "again": _again,
}


def _profile_saved(state: WizardState, event: events.ProfileSaved) -> Change:
    saved = {one.name: one for one in (*state.profiles, event.profile)}
    profiles = tuple(sorted(saved.values(), key=lambda one: f"{one.name}.toml"))  # as their files are
    answers = replace(state.answers, cluster=event.profile.name)
    state, first = repropose(replace(state, answers=answers, profiles=profiles))
    return prepend_effects(first, probe(state, attended=True))


def _submit(state: WizardState, event: events.SubmitAgreed) -> Change:
    if state.launch is not None:
        return state, (effects.Notify(submit_blocker(state)),)
    prepared = event.prepared
    cluster = with_task_started(state.cluster, "submit") if state.concerns(prepared.request) else state.cluster
    submit = effects.Submit(prepared, cluster.preflight, cluster.steps)
    return replace(state, launch=Launch(prepared.run, event.at), cluster=cluster), (submit,)


# What time and this machine's files say.


def _rested(state: WizardState) -> Change:
    """Look at a saved cluster by itself, so that one that answers is ticked before it is asked for."""
    cluster, profile = state.cluster, state.proposal.profile
    fresh = cluster.link == "unknown" and profile is not None and profile.name not in state.probed
    stale = cluster.link == "connected" and cluster.preflight is None
    return probe(state, attended=False) if (fresh or stale) and not cluster.tasks else (state, ())


def _with_runs(state: WizardState, event: events.RunsRead) -> WizardState:
    mine, newer = state.cluster.launched, event.launched
    if mine is not None and newer is not None and mine.id == newer.id:
        state = replace(state, cluster=replace(state.cluster, launched=newer))
    return replace(state, active_runs=event.active_runs)


def _with_results(state: WizardState, event: events.OwnResultsRead) -> WizardState:
    profile = state.proposal.profile
    chosen = profile is not None and profile.name == event.cluster
    return measured(replace(state, results=event.results)) if chosen else state


# What is said of a cluster.


def _heard(state: WizardState, event: events.TaskEvent) -> Change:  # noqa: PLR0911 - as above
    """What was said for another request than the present one changes only what holds for any."""
    present, cluster = state.concerns(event.request), state.cluster
    match event:
        case events.ConnectionChanged():
            return _link_changed(state, event, present)
        case events.EarlyChecked():
            return _early_checked(state, event, present)
        case events.LaunchSaid(_, words):
            return replace(state, launch=replace(state.launch, said=words) if state.launch else None), ()
        case events.Submitted(_, run):
            return _submitted(state, run, present)
        case events.Failed():
            return _failed(state, event, present)
        case events.TaskEnded(request, task):
            return _ended(state, request, task, present)
        case _ if not present:
            return state, ()
        case events.CheckDone(_, report, whole):
            if not whole:
                return replace(state, cluster=replace(cluster, checked=report)), ()
            return _weigh(replace(state, cluster=replace(cluster, preflight=report)), event.request)
        case events.Prepared(_, prepared):
            return replace(state, cluster=replace(cluster, prepared=prepared)), ()
        case events.StepsChanged(request, steps):
            return _weigh(replace(state, cluster=replace(cluster, steps=steps)), request)


def _link_changed(state: WizardState, event: events.ConnectionChanged, present: bool) -> Change:
    """Who is connected for an earlier request will look for the present one; for that one its script is made."""
    cluster, profile = state.cluster, event.request.profile
    if event.link == "connected" and profile.name in state.probed:
        # It is looked at again by itself when it is chosen again: nobody is asked anything for that.
        state = replace(state, probed=state.probed - {profile.name})
    if state.proposal.profile != profile:
        return state, ()
    banner = cluster.banner if event.banner is None else event.banner
    unreachable = cluster.unreachable if event.link == "failed" else None
    changed = replace(state, cluster=replace(cluster, link=event.link, banner=banner, unreachable=unreachable))
    if present:
        return prepare_ahead(changed)
    return changed, (effects.StartIdleTimer(),) if event.link != cluster.link else ()


def _failed(state: WizardState, event: events.Failed, present: bool) -> Change:
    """Why there is no connection holds for any request to the same cluster."""
    cluster, error = state.cluster, event.error
    if event.task == "probe" and cluster.link == "failed" and state.proposal.profile == event.request.profile:
        cluster = replace(cluster, unreachable=error)
    if present:
        prepared = None if event.run_over else cluster.prepared
        cluster = replace(cluster, error=error, failed=event.task, prepared=prepared)
    if cluster != state.cluster:
        state = replace(state, cluster=cluster)
    return state, (effects.ShowFailure(error),) if event.task == "submit" else ()


def _early_checked(state: WizardState, event: events.EarlyChecked, present: bool) -> Change:
    request = event.request
    state = replace(state, checked_early=state.checked_early | {objection_key(request, request.procedure)})
    if not present:
        return _weigh(state, request, ClusterState(early=event.checks))
    return _weigh(replace(state, cluster=replace(state.cluster, early=event.checks)), request)


def _weigh(state: WizardState, request: RunRequest, known: ClusterState | None = None) -> Change:
    """What a cluster has shown to stand against procedures is kept, until a later look shows that it does not.

    `known`: what was learned of another request than the present one.
    """
    known = known or state.cluster
    checks = (*(known.preflight.checks if known.preflight is not None else ()), *known.early)
    shown = {
        objection_key(request, name): problem
        for name, problem in state.rules.objections(request, checks, known.steps).items()
    }
    merged = {key: problem for key, problem in {**state.objections, **shown}.items() if problem is not None}
    return repropose(replace(state, objections=merged)) if merged != state.objections else (state, ())


def _submitted(state: WizardState, run: Run, present: bool) -> Change:
    """Open the run, unless the person has gone elsewhere while it was submitted."""
    if present:
        state = replace(state, cluster=replace(state.cluster, launched=run))
    if present and state.step is StepId.REVIEW and state.in_front:
        state, first = go(state, StepId.RUN)
        return state, (*first, effects.OpenRun(run.id))
    return state, (effects.Notify(launched_words(run), "information"), *read_again(state))


def _ended(state: WizardState, request: RunRequest, task: Task, present: bool) -> Change:
    if task == "submit":
        state = replace(state, launch=None)
    elif task == "install" and identity(request) in state.installs:
        state = replace(state, installs=state.installs - {identity(request)})
    if not present:
        return state, ()
    cluster = replace(state.cluster, tasks=state.cluster.tasks - {task})
    if task == "prepare ahead" and state.step is StepId.REVIEW:
        return prepare(replace(state, cluster=cluster))  # by now somebody waits for it, who can be asked
    # Nobody who is elsewhere by now is asked: what is typed there would go into the question.
    waits = task == "install" and state.in_front
    asks = (effects.AskForKeys(request, cluster.key_would_help),) if waits and cluster.key_would_help else ()
    unchecked = cluster.link == "connected" and cluster.preflight is None and cluster.failed is None
    # The time to look may have gone by while this was at work.
    looks = (effects.StartIdleTimer(),) if unchecked and task != "probe" and not cluster.tasks else ()
    return replace(state, cluster=cluster), (*asks, *looks)


def launched_words(run: Run) -> str:
    """What came of a submission, for who is looking at something else."""
    if run.submission == "unknown":
        return f"It is not known whether run {run.id} was submitted. J lists it, and asks."
    ids = run.job_ids
    jobs = f", job{'s' * (len(ids) > 1)} {', '.join(ids)}" if ids else ""
    return f"Run {run.id} on {run.cluster}{jobs}: {state_label(run.submission).word}. J lists it."
