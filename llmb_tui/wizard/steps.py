"""`StepId`: the seven steps, what stands against each, and which one is next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.plan.options import chosen_options
from llmb_tui.plan.plan import Plan, Problem
from llmb_tui.wizard.answers import Answers, input_problems, settled

Mark = Literal["done", "open", "flagged"]


class StepId(IntEnum):
    """The steps in their order. Review is the last before Run, because the script needs the cluster."""

    WORKLOAD = 1
    HARDWARE = 2
    SCALE = 3
    CLUSTER = 4
    INSTALL = 5
    REVIEW = 6
    RUN = 7


TITLES = {
    StepId.WORKLOAD: "Workload",
    StepId.HARDWARE: "Hardware",
    StepId.SCALE: "Scale, options",
    StepId.CLUSTER: "Cluster",
    StepId.INSTALL: "Install",
    StepId.REVIEW: "Review",
    StepId.RUN: "Run",
}

# Where a problem of the plan is mended, by its field; what is not here is mended at Scale, options.
_STEP_OF_FIELD = {
    "workload": StepId.WORKLOAD,
    "release": StepId.WORKLOAD,
    "size": StepId.WORKLOAD,
    "gpu": StepId.HARDWARE,
    "dtype": StepId.HARDWARE,
}

_OPTION_WORDS = {
    "profile": "profile",
    "nccl_trace": "trace",
    "save_checkpoint": "save",
    "load_checkpoint": "load",
    "hub_tokenizer": "tokenizer",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found on the chosen cluster for the chosen selection."""

    connected: bool = False
    link_note: str = ""
    """Why there is no connection; empty while none was tried."""
    failed_checks: tuple[str, ...] | None = None
    """Titles of the preflight checks that failed; None: not looked yet."""
    install: Literal["unknown", "missing", "running", "done", "failed"] = "unknown"
    install_note: str = ""
    launched: bool = False
    """This selection was submitted to this cluster."""

    @property
    def ready(self) -> bool:
        """The cluster answers and no check failed."""
        return self.connected and self.failed_checks == ()


def confirm(catalog: Catalog, answers: Answers, step: StepId) -> Answers:
    """The answers after a step was left forward: what it showed as chosen is now answered."""
    full = settled(catalog, answers)
    if step is StepId.WORKLOAD:
        return replace(answers, recipe=full.recipe, size=full.size)
    if step is StepId.HARDWARE:
        return replace(answers, gpu=full.gpu, dtype=full.dtype)
    if step is StepId.SCALE:
        return replace(answers, strong=full.strong, scale=full.scale)
    return answers


def problems(answers: Answers, plan: Plan | None, facts: Facts | None, step: StepId) -> tuple[Problem, ...]:
    """What stands against a step, worst first."""
    if step <= StepId.SCALE:
        found = input_problems(answers) + (plan.problems if plan else ())
        mine = (problem for problem in found if _STEP_OF_FIELD.get(problem.field, StepId.SCALE) is step)
        return tuple(sorted(mine, key=lambda problem: ("error", "warning", "note").index(problem.severity)))
    if facts is None:
        return ()
    if step is StepId.CLUSTER and facts.link_note:
        return (Problem("cluster", "error", facts.link_note, ""),)
    if step is StepId.CLUSTER:
        return tuple(Problem("cluster", "error", title, "") for title in facts.failed_checks or ())
    if step is StepId.INSTALL and facts.install == "failed":
        return (Problem("install", "error", facts.install_note, ""),)
    return ()


def mark(answers: Answers, plan: Plan | None, facts: Facts | None, step: StepId) -> Mark:
    """How the rail shows a step: done, still open, or flagged because an error stands against it."""
    if any(problem.severity == "error" for problem in problems(answers, plan, facts, step)):
        return "flagged"
    done = {
        StepId.WORKLOAD: answers.recipe is not None,
        StepId.HARDWARE: answers.gpu is not None and answers.dtype is not None,
        StepId.SCALE: answers.scale is not None and answers.strong is not None,
        StepId.CLUSTER: facts is not None and facts.ready,
        StepId.INSTALL: facts is not None and facts.install == "done",
        StepId.REVIEW: facts is not None and facts.launched,
        StepId.RUN: False,
    }
    return "done" if done[step] else "open"


def following(answers: Answers, plan: Plan | None, facts: Facts | None, step: StepId) -> StepId:
    """The next step. A cluster that answers and an install that is whole are passed by."""
    after = StepId(min(step + 1, StepId.RUN))
    while after in (StepId.CLUSTER, StepId.INSTALL) and mark(answers, plan, facts, after) == "done":
        after = StepId(after + 1)
    return after


def preceding(step: StepId) -> StepId:
    """The step before. Going back is never blocked."""
    return StepId(max(step - 1, StepId.WORKLOAD))


def summary(answers: Answers, facts: Facts | None, step: StepId, other_layout: bool = False) -> str:
    """The answer of a step in a few words; empty while there is none. `other_layout`: than the recipe's."""
    words = ""
    if step is StepId.WORKLOAD and answers.recipe and answers.size:
        words = f"{answers.recipe.partition('@')[0]} {answers.size}"
    elif step is StepId.HARDWARE:
        words = " · ".join(part for part in ((answers.gpu or "").upper(), answers.dtype) if part)
    elif step is StepId.SCALE and answers.scale is not None:
        more = [
            *(["strong"] if answers.strong else ()),
            *(["other layout"] if other_layout else ()),
            *(_OPTION_WORDS[f] for f in chosen_options(answers.options)),
        ]
        more += ["published procedure"] if answers.procedure == "recipe" else []
        words = " · ".join((f"{answers.scale} GPUs", *more))
    elif step is StepId.CLUSTER and answers.cluster:
        words = answers.cluster
    elif step is StepId.INSTALL and facts:
        known = {
            "done": "installed",
            "missing": "not installed",
            "running": "installing",
            "failed": "install failed",
            "unknown": "",
        }
        words = known[facts.install]
    return words
