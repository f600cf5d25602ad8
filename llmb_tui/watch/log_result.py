"""`LogResult`: the result of a run by one log, also of a run that another program started."""

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
    """The trained configuration, from a file next to the log or from the user; None if unknown."""
    rule: ResultRule
    """Rule of the recipe; the last step if the recipe is unknown."""
    step_time_s: float | None
    """Step time by that rule."""
    verdict: Verdict | None
    reason: str
    """Reason why there is no verdict; empty if there is a verdict."""
    validity: tuple[ValidityCheck, ...] = ()
    """Checks of a log whose plan is known."""
