"""Transitions that several events share: new answers, another step, a probe, an install, a script, a submission."""

from __future__ import annotations

from dataclasses import replace

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.request import RunRequest
from llmb_tui.wizard import effects
from llmb_tui.wizard.gates import first_error, read_only_reason, submit_blocker, unfinished_step
from llmb_tui.wizard.proposal import objection_key, propose
from llmb_tui.wizard.state import ClusterState, Task, WizardState, identity
from llmb_tui.wizard.steps import StepId

Change = tuple[WizardState, tuple[effects.Effect, ...]]


def replan(state: WizardState) -> Change:
    """Plan again after a change of answers, clusters or objections; keep the cluster facts that still hold."""
    before, cluster = state.proposal, state.cluster
    proposal = propose(state.rules, state.answers, state.profiles, state.objections, state.step)
    if proposal.profile != before.profile:
        cluster = unknown_cluster(proposal.profile)
    elif (proposal.selection, proposal.full.procedure) != (before.selection, before.full.procedure):
        is_installing = replace(state, proposal=proposal).installs_here
        cluster = replace(cluster.of_connection(), tasks=frozenset(("install",) if is_installing else ()))
    results = state.results if proposal.full.cluster == before.full.cluster else ()
    state = with_measurement(replace(state, proposal=proposal, cluster=cluster, results=results))
    read = read_results(state) if proposal.profile != before.profile else ()
    return state, (effects.StartIdleTimer(), *read)


def unknown_cluster(profile: ClusterProfile | None) -> ClusterState:
    """The state of a cluster before the first connection."""
    return ClusterState(link="unknown" if profile else "none")


def with_measurement(state: WizardState) -> WizardState:
    """Update the estimate that earlier runs on the cluster give for the plan."""
    plan = state.proposal.plan
    if plan is None or not state.results:
        return replace(state, measured=None)
    from llmb_tui.plan.calibration import measured_here  # noqa: PLC0415 - not needed for the first frame

    return replace(state, measured=measured_here(plan, state.results))


def with_step_confirmed(state: WizardState) -> WizardState:
    """Make the defaults that the current step shows answers of the user."""
    answers, full = state.answers, state.proposal.full
    if state.step is StepId.WORKLOAD:
        answers = replace(answers, recipe=full.recipe, size=full.size)
    elif state.step is StepId.HARDWARE:
        answers = replace(answers, gpu=full.gpu, dtype=full.dtype)
    elif state.step is StepId.SCALE:
        answers = replace(answers, strong=full.strong, scale=full.scale)
    return replace(state, answers=answers)


def go_to_step(state: WizardState, step: StepId) -> Change:
    """Show a step, and start its tasks."""
    state = replace(state, step=step)
    cluster = state.cluster
    if step is StepId.SCALE:
        # This step chooses the launch method, so it needs the previews of all of them.
        proposal = propose(state.rules, state.answers, state.profiles, state.objections, step)
        state = replace(state, proposal=proposal)
    elif (
        step is StepId.INSTALL
        and cluster.link == "connected"
        and not (cluster.steps or cluster.tasks & {"probe", "install"})
    ):
        return prepend_effects((effects.FocusFirst(),), probe(state, attended=True))
    elif step is StepId.REVIEW:
        return prepend_effects((effects.FocusFirst(),), prepare(state))
    return state, (effects.FocusFirst(),)


def probe(state: WizardState, *, attended: bool) -> Change:
    """Probe the cluster, unless an install or a submission is active. `attended`: the user requested it."""
    request, cluster = state.proposal.request, state.cluster
    if request is None or cluster.tasks & {"install", "submit"}:
        return state, ()
    early = objection_key(request, request.procedure) not in state.checked_early
    cluster = replace(with_task_started(cluster, "probe"), link="connecting", unreachable=None)
    cluster = replace(cluster, preflight=None, checked=None, steps=())
    state = replace(state, cluster=cluster, probed=state.probed | {request.profile.name})
    return state, (effects.Probe(request, attended, early),)


def install(state: WizardState) -> Change:
    """Run the install steps that are not done."""
    request, cluster = state.proposal.request, state.cluster
    if cluster.installed or "install" in cluster.tasks:
        return state, ()
    if why_not := read_only_reason(state):
        return state, (effects.Notify(why_not),)
    if request is None or not request.plan.launchable:
        return state, (effects.Notify(first_error(state) or "Choose a cluster first (step 4)."),)
    if state.installs_here:
        return state, (effects.Notify("This install is already running.", "information"),)
    state = replace(state, cluster=with_task_started(cluster, "install"), installs=state.installs | {identity(request)})
    return state, (effects.Install(request),)


def prepare(state: WizardState) -> Change:
    """Make the script or command, unless it exists or cannot be made."""
    if (request := _preparable(state)) is None:
        return state, ()
    return replace(state, cluster=with_task_started(state.cluster, "prepare")), (effects.Prepare(request),)


def prepare_ahead(state: WizardState) -> Change:
    """Make the script or command before Review is shown, if the cluster is connected.

    The user did not request it, so the error of an earlier task stays on the screen.
    """
    request, cluster = _preparable(state), state.cluster
    if request is None or cluster.link != "connected":
        return state, ()
    cluster = replace(cluster, tasks=cluster.tasks | {"prepare ahead"})
    return replace(state, cluster=cluster), (effects.PrepareAhead(request),)


def _preparable(state: WizardState) -> RunRequest | None:
    """The request to make a script for; None if the script exists, is being made or cannot be made."""
    request, cluster = state.proposal.request, state.cluster
    exists = cluster.prepared is not None or cluster.preparing
    return request if request is not None and request.plan.launchable and not exists else None


def ask_to_submit(state: WizardState) -> Change:
    """Ask for confirmation of the submission, or show the first obstacle; make the script if it is missing."""
    cluster = state.cluster
    if cluster.launched is not None:
        return state, (
            effects.Notify("This run is already submitted. Press n at step 7 to start a new one.", "information"),
        )
    if blocker := submit_blocker(state):
        return state, (effects.Notify(blocker),)
    if cluster.prepared is None:
        return prepare(state)
    if missing := unfinished_step(state):
        return state, (effects.Notify(missing),)
    return state, (effects.AskToSubmit(cluster.prepared, state.proposal.launch.starts),)


def with_task_started(cluster: ClusterState, task: Task) -> ClusterState:
    """Add an active task, and drop the last error."""
    return replace(cluster, tasks=cluster.tasks | {task}, error=None, failed_task=None)


def read_results(state: WizardState) -> tuple[effects.Effect, ...]:
    """Request the results of runs on the chosen cluster."""
    profile = state.proposal.profile
    return (effects.ReadOwnResults(profile.name),) if profile is not None else ()


def reload(state: WizardState) -> tuple[effects.Effect, ...]:
    """Request what may have changed while another screen was active."""
    return (effects.ReadRuns(state.cluster.launched), *read_results(state))


def prepend_effects(first: tuple[effects.Effect, ...], change: Change) -> Change:
    """Put effects before the change's effects."""
    return change[0], (*first, *change[1])
