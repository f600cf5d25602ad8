"""`LossDifference`: how far the losses of two runs of the same configuration lie apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

from llmb_tui.results.log_facts import LogFacts


@dataclass(frozen=True, slots=True)
class LossDifference:
    """Of one run against another, in per cent of the other's loss. Nobody published how much is too much."""

    step: int
    """The last one, 0-based, whose loss both have."""
    last_pct: float
    """At that step, with its sign."""
    largest_pct: float
    """The largest of all steps that both have, without a sign."""


def loss_difference(facts: LogFacts, other: LogFacts) -> LossDifference | None:
    """None where no step has a finite loss in both."""
    theirs = {step.index: step.loss for step in other.steps if step.loss and math.isfinite(step.loss)}
    found = [
        (step.index, 100 * (step.loss / theirs[step.index] - 1))
        for step in facts.steps
        if step.index in theirs and step.loss is not None and math.isfinite(step.loss)
    ]
    return LossDifference(*found[-1], max(abs(pct) for _, pct in found)) if found else None
