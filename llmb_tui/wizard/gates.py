"""Problems and state of each step, the next step, and the reasons why a run cannot be submitted yet."""

from __future__ import annotations

from llmb_tui.language.quantities import count
from llmb_tui.language.states import StepMark
from llmb_tui.plan.options import chosen_options
from llmb_tui.plan.plan import Parallelism, Plan, Problem
from llmb_tui.plan.selection import LAYOUT, Field, ProcedureId
from llmb_tui.wizard.answers import command, input_problems
from llmb_tui.wizard.state import WizardState
from llmb_tui.wizard.steps import StepId, StepStatus

# The step at which a problem of the plan is fixed, by its field. All other fields belong to Scale, options.
_STEP_OF_FIELD = {
    "workload": StepId.WORKLOAD,
    "release": StepId.WORKLOAD,
    "size": StepId.WORKLOAD,
    "gpu": StepId.HARDWARE,
    "dtype": StepId.HARDWARE,
}

# Blockers that a later step of the wizard removes.
_UNFINISHED_STEP = {
    "cluster": "The cluster is not ready. Finish step 4 first.",
    "install": "The installation is incomplete. Finish step 5 first.",
}


def statuses(state: WizardState) -> tuple[StepStatus, ...]:
    """The state of each step, in their order."""
    return tuple(StepStatus(step, mark(state, step), summary(state, step)) for step in StepId)


def problems(state: WizardState, step: StepId) -> tuple[Problem, ...]:
    """Problems of a step, the most severe first."""
    cluster = state.cluster
    if step <= StepId.SCALE:
        plan = state.proposal.plan
        every = input_problems(state.answers) + (plan.problems if plan else ())
        own = (problem for problem in every if _STEP_OF_FIELD.get(problem.field, StepId.SCALE) is step)
        return tuple(sorted(own, key=lambda problem: ("error", "warning", "note").index(problem.severity)))
    if step is StepId.CLUSTER and cluster.unreachable is not None:
        return (Problem("cluster", "error", cluster.unreachable.what, ""),)
    if step is StepId.CLUSTER and cluster.preflight is not None:
        failed = (check.title for check in cluster.preflight.checks if check.status == "failed")
        return tuple(Problem("cluster", "error", title, "") for title in failed)
    if step is StepId.INSTALL and cluster.failed_step is not None:
        return (Problem("install", "error", cluster.failed_step.detail or cluster.failed_step.title, ""),)
    return ()


def first_error(state: WizardState) -> str:
    """The first error in the choices, with its fix. While there is one, nothing is checked or installed; else empty."""
    steps = (StepId.WORKLOAD, StepId.HARDWARE, StepId.SCALE)
    errors = (problem for step in steps for problem in problems(state, step) if problem.severity == "error")
    return next((f"{error.reason} {error.fix}".strip() for error in errors), "")


def mark(state: WizardState, step: StepId) -> StepMark:
    """The mark of a step in the rail: done, open, or flagged because it has an error."""
    if any(problem.severity == "error" for problem in problems(state, step)):
        return "flagged"
    answers, cluster = state.answers, state.cluster
    done = {
        StepId.WORKLOAD: answers.recipe is not None,
        StepId.HARDWARE: answers.gpu is not None and answers.dtype is not None,
        StepId.SCALE: answers.scale is not None and answers.strong is not None,
        StepId.CLUSTER: cluster.ready,
        StepId.INSTALL: cluster.installed and not cluster.installing,
        StepId.REVIEW: cluster.launched is not None,
        StepId.RUN: False,
    }
    return "done" if done[step] else "open"


def next_step(state: WizardState) -> StepId:
    """The next step. The steps of a cluster that is ready and of a complete install are skipped."""
    after = StepId(min(state.step + 1, StepId.RUN))
    while after in (StepId.CLUSTER, StepId.INSTALL) and mark(state, after) == "done":
        after = StepId(after + 1)
    return after


def blockers(state: WizardState) -> tuple[Problem, ...]:
    """Problems that prevent a submission now; empty while there is no request."""
    request, cluster = state.proposal.request, state.cluster
    return state.rules.blockers(request, cluster.preflight, cluster.steps) if request is not None else ()


def submit_blocker(state: WizardState) -> str:
    """The reason that no earlier step removes why nothing can be submitted now; empty if there is none."""
    plan = state.proposal.plan
    errors = [problem for problem in (plan.problems if plan else ()) if problem.severity == "error"]
    errors += [problem for problem in blockers(state) if problem.field not in _UNFINISHED_STEP]
    if errors:
        return f"{errors[0].reason} {errors[0].fix}".rstrip()
    return "Another run is being submitted. Wait until it has finished." if state.launch is not None else ""


def unfinished_step(state: WizardState) -> str:
    """The step that must be finished before a run can be submitted, as a sentence; empty if there is none."""
    fields = {problem.field for problem in blockers(state)}
    return next((words for field, words in _UNFINISHED_STEP.items() if field in fields), "")


def read_only_reason(state: WizardState) -> str:
    """The reason why the cluster is read-only; empty if it may be changed."""
    profile = state.proposal.profile
    reasons = state.rules.read_only_problems(profile) if profile is not None else ()
    return f"{reasons[0].reason} {reasons[0].fix}" if reasons else ""


def no_login_node(state: WizardState) -> str:
    """The reason why the cluster has no login node; empty if it has one, or if no cluster is chosen."""
    profile = state.proposal.profile
    return profile.no_login_node if profile is not None else ""


def command_line(state: WizardState) -> str:
    """The selection as a command line; empty while it is incomplete or invalid."""
    profile, chosen = state.proposal.profile, state.proposal.selection
    cluster = profile.name if profile is not None else None
    return command(chosen, cluster, other_procedure(state)) if chosen is not None else ""


def disabled_actions(state: WizardState) -> frozenset[str]:
    """Actions of the step's keys that are disabled now."""
    if state.step is StepId.INSTALL and read_only_reason(state):
        return frozenset({"install", "keys"})
    if state.step in (StepId.CLUSTER, StepId.INSTALL) and no_login_node(state):
        return frozenset({"variables", "keys"})
    if state.step is StepId.REVIEW and (state.cluster.launched is not None or submit_blocker(state)):
        return frozenset({"submit"})
    return frozenset()


def summary(state: WizardState, step: StepId) -> str:
    """The answer of a step in a few words; empty while there is none."""
    answers = state.answers
    words = ""
    if step is StepId.WORKLOAD and answers.recipe and answers.size:
        words = f"{answers.recipe.partition('@')[0]} {answers.size}"
    elif step is StepId.HARDWARE:
        words = " · ".join(part for part in ((answers.gpu or "").upper(), answers.dtype) if part)
    elif step is StepId.SCALE and answers.scale is not None:
        difference = layout_difference(state.proposal.usual, state.proposal.plan)
        procedure = other_procedure(state)
        more = [
            *(["strong"] if answers.strong else ()),
            *(["custom layout"] if difference else ()),
            *(option.word for option in chosen_options(answers.options)),
            *([state.rules.procedures[procedure].title] if procedure else ()),
        ]
        words = " · ".join((f"{count(answers.scale)} GPUs", *more))
    elif step is StepId.CLUSTER and answers.cluster:
        words = answers.cluster
    elif step is StepId.INSTALL and state.proposal.request is not None:
        words = _install_words(state)
    return words


def other_procedure(state: WizardState) -> ProcedureId | None:
    """The chosen launch method; None if it is the default one of the cluster."""
    return None if state.procedure == state.rules.offered(state.proposal.profile)[0] else state.procedure


def typed_value(layout: Parallelism, field: Field) -> str:
    """The value of a field as it is typed. A layout without virtual stages has 1."""
    return str(getattr(layout, field.name) or 1)


def layout_difference(usual: Plan | None, plan: Plan | None) -> tuple[str, ...]:
    """How a plan's layout differs from the recipe's, as at most one sentence; manual overrides that match are ignored.

    `usual` is the plan of the same selection without manual overrides.
    """
    if usual is None or plan is None:
        return ()
    layout, default = plan.parallelism, usual.parallelism
    differing = [field for field in LAYOUT if typed_value(layout, field) != typed_value(default, field)]
    differences = "; ".join(
        f"{field.label} {typed_value(layout, field)}, not {typed_value(default, field)}" for field in differing
    )
    owner = "published" if usual.printed is not None else "recipe's"
    return (f"differs from the {owner} layout: {differences}",) if differing else ()


def layout_problems(plan: Plan) -> tuple[Problem, ...]:
    """Errors in the fields of the layout, and other problems of fields with a manual override."""
    overridden, names = plan.selection.overrides.set_fields(), {field.name for field in LAYOUT}
    return tuple(
        problem
        for problem in plan.problems
        if problem.field in overridden or (problem.field in names and problem.severity == "error")
    )


def _install_words(state: WizardState) -> str:
    cluster = state.cluster
    if cluster.installing:
        return "installing"
    if not cluster.steps:
        return ""
    if cluster.installed:
        return "installed"
    return "install failed" if cluster.failed_step is not None else "not installed"
