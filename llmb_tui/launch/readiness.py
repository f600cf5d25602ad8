"""`blockers`: may a run start? Decided here alone, for the screen, for the verbs and for `Launcher.submit`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llmb_tui.cluster.failures import ObserverMode
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.partition import parse_time
from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import count, given, gpu_hours
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.procedure_loader import preview
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.preflight.report import Preflight
from llmb_tui.request import RunRequest

OBSERVER, LIMIT, CLUSTER, INSTALL = "observer", "gpu_hours", "cluster", "install"
"""Fields of the blockers that are not about the selection."""
REQUEST = "request"
"""As `CLUSTER`, where the cluster is well and does not give what is asked of it."""
_CLUSTER_FAILED = 2


@dataclass(frozen=True, slots=True)
class ClusterEvidence:
    """What was last seen of a request's cluster. Nothing: it was not looked at."""

    preflight: Preflight | None = None
    steps: Sequence[StepState] = ()


class NotReady(Trouble):
    """A run may not start. Exit code 2 where checks of the cluster itself failed, else 1."""

    def __init__(self, request: RunRequest, against: Sequence[Problem]) -> None:
        # What the cluster lacks is told together with what it does not give.
        fields = {REQUEST: CLUSTER}
        first, name = fields.get(against[0].field, against[0].field), request.profile.name
        what = {
            OBSERVER: against[0].reason,
            LIMIT: "The run may take too many GPU-hours.",
            CLUSTER: f"{name} is not ready for this run.",
            INSTALL: f"{name} is not installed for this run.",
        }
        same = [one for one in against if fields.get(one.field, one.field) == first or first not in what]
        why = "" if first == OBSERVER else "\n".join(dict.fromkeys(one.reason for one in same))
        fix = "\n".join(dict.fromkeys(one.fix for one in same if one.fix))
        code = _CLUSTER_FAILED if any(one.field == CLUSTER for one in same) else 1
        super().__init__(what.get(first, "This run cannot be started."), why, fix, exit_code=code)


def blockers(request: RunRequest, policy: Policy, evidence: ClusterEvidence) -> tuple[Problem, ...]:
    """Everything that stands against starting it now, what is most certain first; empty where it may start."""
    return (*impossible(request, policy), *failures(evidence.preflight), *_install(request, evidence.steps))


def impossible(request: RunRequest, policy: Policy) -> tuple[Problem, ...]:
    """The part of `blockers` that no look at the cluster changes."""
    problems = (*request.plan.problems, *preview(request).problems)
    return (
        *observed(request.profile, policy),
        *(problem for problem in problems if problem.severity == "error"),
        *_limit(request.plan, policy),
    )


def observed(profile: ClusterProfile, policy: Policy) -> tuple[Problem, ...]:
    """What stands against every action that changes a cluster: observer mode."""
    if not policy.observes(profile):
        return ()
    mode = ObserverMode(profile)
    return (Problem(OBSERVER, "error", f"{mode.what} {mode.why}", mode.fix),)


def refuse(request: RunRequest, against: Sequence[Problem]) -> None:
    """Raise `NotReady` where there is a blocker."""
    if against:
        raise NotReady(request, against)


def _limit(plan: Plan, policy: Policy) -> Iterator[Problem]:
    longest_s = parse_time(plan.time_limit)
    if policy.gpu_hours is None or longest_s is None:
        return
    hours = plan.selection.scale * longest_s / 3600
    if hours > policy.gpu_hours:
        reason = (
            f"{count(plan.selection.scale)} GPUs for at most {plan.time_limit} are {gpu_hours(hours)}, "
            f"and the limit of one run is {given(policy.gpu_hours)}."
        )
        fix = "Lower the time limit or the number of GPUs, or raise `limits.gpu_hours` of the settings."
        yield Problem(LIMIT, "error", reason, fix)


def failures(preflight: Preflight | None) -> tuple[Problem, ...]:
    """What a preflight has found against a run; that there was none, too."""
    if preflight is None:
        return (Problem(CLUSTER, "error", "It was not checked for this run.", "Check it first."),)
    return tuple(
        Problem(
            REQUEST if check.wrong_request else CLUSTER,
            "error",
            f"{check.title}: found {check.found}, needed {check.needed}.",
            check.fix,
        )
        for check in preflight.failed
    )


def _install(request: RunRequest, steps: Sequence[StepState]) -> Iterator[Problem]:
    fix = f"Run `llmb-tui install {request.profile.name}` with the same selection first."
    if not steps:
        yield Problem(INSTALL, "error", "It was not looked at what is installed.", fix)
    for step in steps:
        if step.status != "done":
            yield Problem(INSTALL, "error", f"Not installed yet: {step.title}.", fix)
