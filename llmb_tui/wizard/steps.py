"""`StepId`: the seven steps in their order; `StepStatus`: mark and summary of a step."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from llmb_tui.language.states import StepMark


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


@dataclass(frozen=True, slots=True)
class StepStatus:
    """A step as the rail shows it."""

    step: StepId
    mark: StepMark
    summary: str
