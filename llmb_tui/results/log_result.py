"""`LogResult`: what one log says of its run, whoever started it; judged where it is known what was trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import ResultRule
from llmb_tui.errors import Trouble
from llmb_tui.launch.llmb.import_run import plan_of
from llmb_tui.plan.plan import Plan
from llmb_tui.results.log_facts import LogFacts, facts_of
from llmb_tui.results.plan_file import plan_in
from llmb_tui.results.result import steady_of
from llmb_tui.results.statistics import Spread
from llmb_tui.results.training_log import TrainingLog
from llmb_tui.watch.progress import fold
from llmb_tui.watch.state import Progress, Verdict
from llmb_tui.watch.verdict import judge, rule_s

NOT_KNOWN = "A log alone does not say which configuration it is, so there is nothing to compare with."
_LAST = ResultRule("last", "")


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
    last_s: float | None
    """Time of the last step."""
    median_s: float | None
    """Of the steps after the warm-up."""
    steady: Spread | None
    steps_done: int
    steps_total: int | None
    verdict: Verdict | None
    reason: str
    """Why there is no verdict; empty where there is one."""


def log_result(
    catalog: Catalog, log: TrainingLog, earlier: Sequence[str], plan: Plan | None, threshold: float
) -> LogResult:
    """`plan`: what a person says that was trained; None: what was written beside the log, where something was.

    Raises Trouble (exit code 1) for a log that cannot be read.
    """
    reason = NOT_KNOWN
    if plan is None and (log.run or log.plan):
        try:
            plan = plan_of(catalog, log.run) if log.run else plan_in(catalog, log.plan)
        except Trouble as trouble:
            reason = f"What was written beside the log cannot be used: {trouble.what} {trouble.why}".rstrip()
    recipe = catalog.recipe(plan.selection.workload, plan.selection.release) if plan else None
    try:
        with log.open() as file:
            facts = facts_of(file, recipe.launch.kind if recipe else None)
    except OSError as error:
        raise Trouble(
            f"{log.name} cannot be read.", f"{error.strerror}.", "Name a training log.", exit_code=1
        ) from error
    rule = recipe.rule if recipe else _LAST
    steps, verdict = facts.steps, None
    times = [(step.index, step.step_time_s) for step in steps if step.step_time_s is not None]
    last = steps[-1] if steps else None
    step_time_s = last.step_time_s if last else None
    if plan is not None:
        progress = fold(Progress(), steps, plan)
        total = progress.steps_total if progress.steps_total is not None else plan.steps
        ended = progress.steps_done >= total
        step_time_s = rule_s(plan, rule, progress)
        verdict, reason = judge(plan, rule, progress, finished=ended, threshold=threshold)
    steady = steady_of(_LAST, times)
    return LogResult(
        log,
        tuple(earlier),
        facts,
        plan,
        rule,
        step_time_s,
        last.step_time_s if last else None,
        steady.median if steady else None,
        steady_of(rule, times),
        last.index + 1 if last else 0,
        last.total if last else None,
        verdict,
        reason,
    )
