"""`LogResult`: what one log says of its run, whoever started it."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.recipe import ResultRule
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.log_facts import LogFacts
from llmb_tui.watch.state import ValidityCheck, Verdict
from llmb_tui.watch.training_log import TrainingLog

LAST_STEP = ResultRule("last", "")
"""The rule for a log whose recipe is not known."""


@dataclass(frozen=True, slots=True)
class LogResult:
    """One run by its log. Times are seconds."""

    log: TrainingLog
    earlier: tuple[str, ...]
    """Logs of earlier starts of the same job, which do not count."""
    facts: LogFacts
    plan: Plan | None
    """What was trained, as it was written down or a person said; None where nobody did."""
    rule: ResultRule
    """Of its recipe; where that is not known, its last step."""
    step_time_s: float | None
    """By that rule."""
    verdict: Verdict | None
    reason: str
    """Why there is no verdict; empty where there is one."""
    validity: tuple[ValidityCheck, ...] = ()
    """The checks that can be made of a log whose plan is known."""
