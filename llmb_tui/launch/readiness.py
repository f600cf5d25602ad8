"""`blockers`: reasons why a run may not start, for the screen, the verbs and `Launcher.submit` alike. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llmb_tui.cluster.failures import ReadOnlyError
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.partition import parse_time
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import count, gpu_hours, plain_number
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.procedure_loader import preview
from llmb_tui.launch.step_state import StepState
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.preflight.report import Preflight
from llmb_tui.request import RunRequest

READ_ONLY, LIMIT, CLUSTER, INSTALL = "observer", "gpu_hours", "cluster", "install"
"""Fields of the blockers that do not concern the selection."""
REQUEST = "request"
"""Like `CLUSTER`, if the cluster works but does not provide something that the request asks for."""
_CLUSTER_FAILED = 2


@dataclass(frozen=True, slots=True)
class ClusterEvidence:
    """Last known state of a request's cluster. Both fields are empty if the cluster was not checked."""

    preflight: Preflight | None = None
    steps: Sequence[StepState] = ()


class NotReadyError(LlmbError):
    """A run may not start. Exit code 2 if checks of the cluster itself failed, otherwise 1."""

    def __init__(self, request: RunRequest, against: Sequence[Problem]) -> None:
        # Faults of the cluster and unmet wishes of the request are reported together.
        fields = {REQUEST: CLUSTER}
        first, name = fields.get(against[0].field, against[0].field), request.profile.name
        what = {
            READ_ONLY: against[0].reason,
            LIMIT: "The run exceeds the limit of GPU-hours.",
            CLUSTER: f"{name} is not ready for this run.",
            INSTALL: f"The files of this run are not installed on {name}.",
        }
        same = [
            problem for problem in against if fields.get(problem.field, problem.field) == first or first not in what
        ]
        why = "" if first == READ_ONLY else "\n".join(dict.fromkeys(problem.reason for problem in same))
        fix = "\n".join(dict.fromkeys(problem.fix for problem in same if problem.fix))
        code = _CLUSTER_FAILED if any(problem.field == CLUSTER for problem in same) else 1
        super().__init__(what.get(first, "This run cannot be started."), why, fix, exit_code=code)


def blockers(request: RunRequest, policy: Policy, evidence: ClusterEvidence) -> tuple[Problem, ...]:
    """All reasons why a request may not start now, the most certain first; empty if it may start."""
    return (*request_problems(request, policy), *failures(evidence.preflight), *_install(request, evidence.steps))


def request_problems(request: RunRequest, policy: Policy) -> tuple[Problem, ...]:
    """The blockers that do not depend on the state of the cluster."""
    problems = (*request.plan.problems, *preview(request).problems)
    return (
        *read_only_problems(request.profile, policy),
        *(problem for problem in problems if problem.severity == "error"),
        *_limit(request.plan, policy),
    )


def read_only_problems(profile: ClusterProfile, policy: Policy) -> tuple[Problem, ...]:
    """Blocker of every action that changes a read-only cluster; empty for other clusters."""
    if not policy.is_read_only(profile):
        return ()
    mode = ReadOnlyError(profile)
    return (Problem(READ_ONLY, "error", f"{mode.what} {mode.why}", mode.fix),)


def refuse(request: RunRequest, against: Sequence[Problem]) -> None:
    """Raise `NotReadyError` if there is a blocker."""
    if against:
        raise NotReadyError(request, against)


def _limit(plan: Plan, policy: Policy) -> Iterator[Problem]:
    longest_s = parse_time(plan.time_limit)
    if policy.gpu_hours is None or longest_s is None:
        return
    hours = plan.selection.scale * longest_s / 3600
    if hours > policy.gpu_hours:
        reason = (
            f"{count(plan.selection.scale)} GPUs with a time limit of {plan.time_limit} use up to "
            f"{gpu_hours(hours)}; the limit for one run is {plain_number(policy.gpu_hours)}."
        )
        fix = "Lower the time limit or the number of GPUs, or raise `limits.gpu_hours` in the settings."
        yield Problem(LIMIT, "error", reason, fix)


def failures(preflight: Preflight | None) -> tuple[Problem, ...]:
    """Blockers that a preflight has found, or the blocker that there was no preflight."""
    if preflight is None:
        return (Problem(CLUSTER, "error", "The cluster was not checked for this run.", "Check it first."),)
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
        yield Problem(INSTALL, "error", "The install steps have not been checked.", fix)
    for step in steps:
        if step.status != "done":
            yield Problem(INSTALL, "error", f"Not installed yet: {step.title}.", fix)
