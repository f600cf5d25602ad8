"""What the suite screens say: the rows of a suite that is chosen or was submitted, and the sums. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from llmb_tui.answers.run_row import RunRow, row_from_progress
from llmb_tui.answers.table import Cell, Column, Quantity, Toned, cell_text, expected_cell
from llmb_tui.language.quantities import (
    duration,
    gpu_hours,
    gpu_hours_digits,
    step_time_digits,
    step_time_range,
    step_time_range_digits,
)
from llmb_tui.language.states import method_phrase, method_word, row_label, severity_label, verdict_label
from llmb_tui.language.text import plural
from llmb_tui.plan.plan import expected_step_time
from llmb_tui.suites.draft_plan import DraftPlan
from llmb_tui.suites.suite_plan import Nodes, PlannedRow, SuitePlan
from llmb_tui.suites.suite_progress import SuiteProgress
from llmb_tui.ui.text import MUTED, STYLES, Part
from llmb_tui.ui.widgets.keyed_table import Key
from llmb_tui.ui.widgets.run_list import screen_columns
from llmb_tui.ui.widgets.texts import Paragraph, fact

if TYPE_CHECKING:
    from llmb_tui.suites.submissions import SuiteSubmissionProgress

_STANDING = re.compile(r"\d+ of \d+ runs? done")
"""What a submission says while it can send nothing: how the suite stood then."""


class DraftRow(NamedTuple):
    """A row of a suite that is being chosen."""

    planned: PlannedRow
    label: str
    out: bool
    """Taken out."""


def draft_things(plan: DraftPlan) -> dict[Key, DraftRow]:
    """The rows by their keys."""
    return {row.row.key: DraftRow(row, plan.labels[row.row.key], plan.is_out(row)) for row in plan.rows}


def _quiet_if_out(value: Callable[[PlannedRow], Cell]) -> Callable[[DraftRow], Cell]:
    """The cell of a planned row, faint in a row that is taken out."""

    def cell(row: DraftRow) -> Cell:
        made = value(row.planned)
        return Toned(cell_text(made), "quiet") if row.out else made

    return cell


def _hours(planned: PlannedRow) -> Cell:
    hours = planned.plan.gpu_hours
    return f"≤{gpu_hours_digits(planned.most_gpu_hours)}" if hours is None else Quantity(hours, gpu_hours_digits)


def _band(planned: PlannedRow) -> Cell:
    estimate = planned.plan.estimate
    return Toned(step_time_range_digits(estimate.low_s, estimate.high_s) if estimate else "no estimate", "quiet")


def _source(planned: PlannedRow) -> Cell:
    estimate = planned.plan.estimate
    return Toned(method_word(estimate.method) if estimate else "", "quiet")


def _mark(row: DraftRow) -> Cell:
    if row.out:
        return Toned("–", "quiet")
    if row.planned.blockers:
        worst = severity_label("error")
    elif any(one.severity == "warning" for one in row.planned.notes):
        worst = severity_label("warning")
    else:
        return ""
    return Toned(worst.glyph, worst.tone)


DRAFT: tuple[Column, ...] = (
    Column("", _mark, "mark", 1),
    Column("run", lambda row: Toned(row.label, "quiet" if row.out else "plain"), "run", 8),
    Column("GPUs", _quiet_if_out(lambda row: str(row.row.selection.scale)), "gpus", 5, figures=True),
    Column("nodes", _quiet_if_out(lambda row: str(row.plan.nodes)), "nodes", 5, figures=True),
    Column("step, s", _quiet_if_out(lambda row: expected_cell(row.plan.estimate)), "step", 7, figures=True),
    Column("band", _quiet_if_out(_band), "band", 13, figures=True, drop=1),
    Column("", _quiet_if_out(_source), "source", 13, drop=2),
    Column("GPU-h", _quiet_if_out(_hours), "hours", 7, figures=True),
    Column("limit", _quiet_if_out(lambda row: Toned(row.plan.time_limit, "quiet")), "limit", 8, figures=True),
)
"""The columns of the rows of a suite that is being chosen."""


def about_row(planned: PlannedRow, out: bool) -> tuple[Paragraph, ...]:
    """The row under the cursor in words: what stands against it first."""
    parts = [fact("run", (planned.row.key, "bold"), ("   taken out: x puts it back" if out else "", MUTED))]
    for problem in (*planned.blockers, *planned.notes):
        parts.append(fact(severity_label(problem.severity).text, problem.reason, (f" {problem.fix}".rstrip(), MUTED)))
    if (estimate := planned.plan.estimate) is not None:
        words = f"{estimate.step_time_text}, {step_time_range(estimate.low_s, estimate.high_s)}"
        method, anchor = f" {method_phrase(estimate.method)}", f", {estimate.anchor}"
        parts.insert(1, fact("expected", words, (method, MUTED), (anchor, MUTED)))
    return tuple(parts)


def draft_sums(plan: DraftPlan, nodes: Nodes) -> tuple[Paragraph, ...]:
    """What stands against all of it, what it costs, how long it takes, and how it is sent."""
    if plan.nothing is not None:
        return (fact("✗ nothing", f"{plan.nothing.what} {plan.nothing.why}", (f" {plan.nothing.fix}", MUTED)),)
    if plan.sent is None:
        return (fact("✗ nothing", "Every row is taken out."),)
    return (
        *_against(plan),
        fact("cost", *cost(plan.sent)),
        fact("takes", *takes(plan.sent, nodes)),
        fact("sent", plan.sent.suite.conduct),
    )


def cost(plan: SuitePlan) -> tuple[Part, ...]:
    """How many runs, and their GPU-hours."""
    most = f", at most {gpu_hours_digits(plan.most_gpu_hours)} by the time limits"
    unknown = f"; {plural(plan.without_estimate, 'run')} without an estimate by the time limit"
    return (
        f"{plural(len(plan.rows), 'run')}: ",
        (gpu_hours(plan.gpu_hours), "bold"),
        (most + unknown * bool(plan.without_estimate), MUTED),
    )


def takes(plan: SuitePlan, nodes: Nodes) -> tuple[Part, ...]:
    """How long its steps take, one after the other and on the free nodes."""
    parts: list[Part] = [f"{duration(plan.serial_s)} one after the other"]
    if nodes.free is None:
        parts.append((", free nodes not known" + ": f asks the cluster" * nodes.askable, MUTED))
    elif plan.parallel_s is None:
        parts.append((f", a run needs more than the {plural(nodes.free, 'free node')}", MUTED))
    else:
        parts.append(f", {duration(plan.parallel_s)} on the {plural(nodes.free, 'free node')}")
    return (*parts, ("; start-up and queue beside it", MUTED))


def _against(plan: DraftPlan) -> tuple[Paragraph, ...]:
    """The suite's own blockers in words; how many rows have some."""
    parts = []
    for problem in plan.sent.suite_blockers if plan.sent else ():
        parts.append(
            fact(severity_label("error").text, (problem.reason, "$text-error"), (f" {problem.fix}".rstrip(), MUTED))
        )
    if blocked := len(plan.blocked):
        words = f"{plural(blocked, 'row')} cannot be run as they are"
        parts.append(
            fact(
                severity_label("error").text, (words, "$text-error"), (": X takes them out, the cursor says why", MUTED)
            )
        )
    return tuple(parts)


def progress_things(progress: SuiteProgress, labels: Mapping[str, str]) -> dict[Key, RunRow]:
    """The rows by their keys, each called as its label says. A run that is not done has its verdict so far."""
    rows: dict[Key, RunRow] = {}
    for row in progress.rows:
        planned, verdict = row.planned.row, row.record.state.verdict if row.record else None
        label, scale, result = labels[planned.key], planned.selection.scale, verdict.result if verdict else None
        rows[planned.key] = replace(row_from_progress(row), key=label, scale=scale, result=result)
    return rows


def _step(row: RunRow) -> Cell:
    """The step time by the rule, or the median so far; before the submission what is expected."""
    step_time_s = row.median_s if row.step_time_s is None else row.step_time_s
    if step_time_s is not None:
        return Quantity(step_time_s, step_time_digits)
    if row.id or row.expected_s is None or row.method is None:
        return None
    return Toned(f"~{expected_step_time(row.method)(row.expected_s)}", "quiet")


def progress_columns() -> tuple[Column, ...]:
    """The columns of the rows of a suite that was submitted."""
    columns = screen_columns("suite screen")
    return tuple(replace(one, value=_step) if one.key == "step_time_s" else one for one in columns)


def progress_sums(progress: SuiteProgress, sending: SuiteSubmissionProgress | None) -> tuple[Paragraph, ...]:
    """How far it is, what is left, whether anything is being sent, and what it has answered."""
    from llmb_tui.suites.outcome import outcome_of  # a suite that is being chosen has none

    parts = [fact("so far", (progress.words, "bold"))]
    if not progress.over:
        parts.append(fact("left", *_left(progress)))
    parts += _sending(progress, sending)
    outcome = outcome_of(progress)
    for at, words in enumerate(words for words in outcome.lines if words != progress.words):
        style = STYLES[verdict_label(outcome.result).tone] if outcome.result and not at else ""
        parts.append(fact("" if at else "answer", (words, style)))
    return tuple(parts)


def _left(progress: SuiteProgress) -> tuple[Part, ...]:
    parts: list[Part] = [gpu_hours(progress.gpu_hours_left), f", {duration(progress.serial_left_s)} in a row"]
    if progress.left_s is not None:
        parts.append(f", {duration(progress.left_s)} on its nodes and those that were free")
    return (*parts, ("; start-up and queue beside it", MUTED))


def _sending(progress: SuiteProgress, sending: SuiteSubmissionProgress | None) -> tuple[Paragraph, ...]:
    unsent, word = plural(progress.count("not sent"), "run"), row_label("not sent").word
    if sending is not None and sending.goes_on:
        most, words = progress.plan.suite.at_most, sending.words or "connecting"
        if _STANDING.match(words):  # the line above says it as it is now
            words = f"waits until the next may be sent{f': at most {most} at a time' if most else ''}"
        return (fact("sending", (words, "$text-accent")),)
    parts = []
    if sending is not None and (error := sending.error) is not None:
        parts.append(fact("✗ stopped", (error.what, "$text-error"), (f" {error.fix}".rstrip(), MUTED)))
    if progress.plan.suite.cancelled:
        parts.append(fact(row_label("cancelled").word, f"{unsent} {word}, and none will be."))
    elif progress.stopped:
        parts.append(fact("stopped", f"{plural(progress.failures, 'failure')}: nothing more is sent."))
    elif progress.count("not sent"):
        what = "it" if progress.count("not sent") == 1 else "them"
        parts.append(fact("next", f"{unsent} {word}: ", (f"s submits {what}", "bold"), "."))
    if (refused := progress.count("refused")) and not progress.plan.suite.cancelled:
        again = f"s sends {'it' if refused == 1 else 'them'} again"
        parts.append(
            fact(row_label("refused").word, f"{plural(refused, 'run')}: ", (again, "bold"), ", c ends the suite.")
        )
    return tuple(parts)
