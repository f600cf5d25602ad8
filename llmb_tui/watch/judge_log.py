"""`log_result`: the result of a run by its log, with a verdict if the trained configuration is known."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.errors import LlmbError
from llmb_tui.launch.llmb.import_run import changed_variables, plan_of
from llmb_tui.plan import make
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.request import read_request
from llmb_tui.plan.selection import LAYOUT
from llmb_tui.watch.explanation import explain_log
from llmb_tui.watch.log_formats.registry import known_formats
from llmb_tui.watch.log_reader import facts_of
from llmb_tui.watch.log_result import LAST_STEP, LogResult
from llmb_tui.watch.progress import fold
from llmb_tui.watch.remarks import log_remarks
from llmb_tui.watch.state import Progress, ValidityCheck
from llmb_tui.watch.statements import add_slow_signs
from llmb_tui.watch.training_log import TrainingLog
from llmb_tui.watch.validity import NO_FILES, validity
from llmb_tui.watch.verdict import judge, rule_s, with_caveats

NOT_KNOWN = "A log alone does not say which configuration was trained, so there is nothing to compare with."
_SELECTION = ("workload", "release", "size", "gpu", "dtype", "scale")


def log_result(
    catalog: Catalog, log: TrainingLog, earlier: Sequence[str], plan: Plan | None, threshold: float
) -> LogResult:
    """Result of one log. `plan`: the configuration that the user names; None: use a file next to the log, if any.

    Raises LlmbError (exit code 1) for a log that cannot be read.
    """
    reason = NOT_KNOWN
    if plan is None and (log.run or log.plan):
        try:
            plan = plan_of(catalog, log.run) if log.run else plan_in(catalog, log.plan)
        except LlmbError as error:
            reason = f"The plan file next to the log cannot be used: {error.what} {error.why}".rstrip()
    recipe = catalog.recipe(plan.selection.workload, plan.selection.release) if plan else None
    facts = facts_of(log.open, log.name, recipe.launch.kind if recipe else None)
    if not facts.steps:
        reason = f"No line of a training step was found. {known_formats()} {_why_it_failed(log)}".rstrip()
        return LogResult(log, tuple(earlier), facts, plan, recipe.rule if recipe else LAST_STEP, None, None, reason)
    if plan is None:
        no_times = () if facts.step_times_s else ("The step lines of this log have no step time.",)
        reason = " ".join((*no_times, reason, *log_remarks(facts.steps, facts.again_at, _slow_signs(log))))
    rule = recipe.rule if recipe else LAST_STEP
    verdict, step_time_s = None, facts.steps[-1].step_time_s if facts.steps else None
    checks: tuple[ValidityCheck, ...] = ()
    if plan is not None:
        progress = replace(fold(Progress(), facts.steps, plan), statements=facts.statements)
        total = progress.steps_total if progress.steps_total is not None else plan.steps
        ended = progress.steps_done >= total
        step_time_s = rule_s(plan, rule, progress)
        checks = validity(plan, rule, facts.format, progress, NO_FILES, finished=ended)
        verdict, reason = judge(plan, rule, progress, finished=ended, threshold=threshold, checks=checks)
        if verdict is not None and verdict.result != "PASS" and (signs := _slow_signs(log)):
            progress = replace(progress, slow_signs=signs)
            verdict, reason = judge(plan, rule, progress, finished=ended, threshold=threshold, checks=checks)
        changed = changed_variables(log.run) if log.run else ()
        verdict = verdict and with_caveats(verdict, [f"{name} changed" for name in changed], progress)
    return LogResult(log, tuple(earlier), facts, plan, rule, step_time_s, verdict, reason, checks)


def _why_it_failed(log: TrainingLog) -> str:
    """Most likely cause of a log without steps; empty if it names none."""
    with contextlib.suppress(OSError), log.open() as file:
        for cause in explain_log(file, log.name).causes:
            return f"{cause.what} {cause.fix} Its words: {cause.why}".replace("  ", " ")
    return ""


def _slow_signs(log: TrainingLog) -> tuple[str, ...]:
    """Lines of a log that may explain a slow run, as far as the log can still be read."""
    signs: dict[int, str] = {}
    with contextlib.suppress(OSError), log.open() as file:
        add_slow_signs(signs, file, sys.maxsize)
    return tuple(signs.values())


def plan_in(catalog: Catalog, text: str) -> Plan:
    """Plan from the text of the file that our script leaves next to a log, by the current presets. The text is remote.

    Raises LlmbError (exit code 1) for an invalid text, and for names that no preset has.
    """
    try:
        document: Any = json.loads(text)
        selection, layout = dict(document["selection"]), dict(document["parallelism"])
        request = {
            **{name: selection.get(name) for name in _SELECTION},
            "strong_scaling": selection.get("scaling") == "strong",
            **dict(document.get("options", {})),
        }
        steps = document.get("steps")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise LlmbError("It is not a plan of llmb-tui.", exit_code=1) from None
    default_plan = make.plan(catalog, read_request(catalog, request))
    # Only differences from the usual layout are requested, so that the plan is the published one if there is one.
    named = {field.name: 1 if layout.get(field.name) is None else layout[field.name] for field in LAYOUT}
    changes = {name: value for name, value in named.items() if value != (getattr(default_plan.parallelism, name) or 1)}
    if steps is not None and steps != default_plan.steps:
        changes["steps"] = steps
    return make.plan(catalog, read_request(catalog, request | changes)) if changes else default_plan
