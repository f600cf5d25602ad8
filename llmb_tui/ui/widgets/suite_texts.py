"""Texts of the suite screens: rows and sums of a draft and of a submitted suite. Pure."""

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

_WAITING = re.compile(r"\d+ of \d+ runs? done")
"""Text of a submission that waits: the state of the suite at that time."""


_PLUS_OVERHEAD = ", plus start-up and queue"


class DraftRow(NamedTuple):
    """A row of a suite before its submission."""

    planned: PlannedRow
    label: str
    excluded: bool


def draft_things(plan: DraftPlan) -> dict[Key, DraftRow]:
    return {row.row.key: DraftRow(row, plan.labels[row.row.key], plan.is_out(row)) for row in plan.rows}


def _quiet_if_excluded(value: Callable[[PlannedRow], Cell]) -> Callable[[DraftRow], Cell]:
    """Cell of a planned row, quiet if the row is excluded."""

    def cell(row: DraftRow) -> Cell:
        shown = value(row.planned)
        return Toned(cell_text(shown), "quiet") if row.excluded else shown

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
    if row.excluded:
        return Toned("–", "quiet")
    if row.planned.blockers:
        worst = severity_label("error")
    elif any(note.severity == "warning" for note in row.planned.notes):
        worst = severity_label("warning")
    else:
        return ""
    return Toned(worst.glyph, worst.tone)


DRAFT: tuple[Column, ...] = (
    Column("", _mark, "mark", 1),
    Column("run", lambda row: Toned(row.label, "quiet" if row.excluded else "plain"), "run", 8),
    Column("GPUs", _quiet_if_excluded(lambda row: str(row.row.selection.scale)), "gpus", 5, figures=True),
    Column("nodes", _quiet_if_excluded(lambda row: str(row.plan.nodes)), "nodes", 5, figures=True),
    Column("step, s", _quiet_if_excluded(lambda row: expected_cell(row.plan.estimate)), "step", 7, figures=True),
    Column("band", _quiet_if_excluded(_band), "band", 13, figures=True, drop=1),
    Column("", _quiet_if_excluded(_source), "source", 13, drop=2),
    Column("GPU-h", _quiet_if_excluded(_hours), "hours", 7, figures=True),
    Column("limit", _quiet_if_excluded(lambda row: Toned(row.plan.time_limit, "quiet")), "limit", 8, figures=True),
)
"""Columns of the rows of a suite before its submission."""


def about_row(planned: PlannedRow, excluded: bool) -> tuple[Paragraph, ...]:
    """Details of the row under the cursor: problems and expected step time."""
    parts = [fact("run", (planned.row.key, "bold"), ("   excluded · x: include" if excluded else "", MUTED))]
    for problem in (*planned.blockers, *planned.notes):
        parts.append(fact(severity_label(problem.severity).text, problem.reason, (f" {problem.fix}".rstrip(), MUTED)))
    if (estimate := planned.plan.estimate) is not None:
        step = f"{estimate.step_time_text}, {step_time_range(estimate.low_s, estimate.high_s)}"
        method, anchor = f" {method_phrase(estimate.method)}", f", {estimate.anchor}"
        parts.insert(1, fact("expected", step, (method, MUTED), (anchor, MUTED)))
    return tuple(parts)


def draft_sums(plan: DraftPlan, nodes: Nodes) -> tuple[Paragraph, ...]:
    """Problems of the whole suite, its cost, its time, and the rules of its submission."""
    if plan.nothing is not None:
        return (fact("✗ no runs", f"{plan.nothing.what} {plan.nothing.why}", (f" {plan.nothing.fix}", MUTED)),)
    if plan.submission is None:
        return (fact("✗ no runs", "All rows are excluded."),)
    return (
        *_blockers(plan),
        fact("cost", *cost_parts(plan.submission)),
        fact("time", *duration_parts(plan.submission, nodes)),
        fact("submission", plan.submission.suite.submission_words),
    )


def cost_parts(plan: SuitePlan) -> tuple[Part, ...]:
    """Number of runs and their GPU-hours."""
    most = f", at most {gpu_hours_digits(plan.most_gpu_hours)} by the time limits"
    unknown = f"; {plural(plan.without_estimate, 'run')} without an estimate by the time limit"
    return (
        f"{plural(len(plan.rows), 'run')}: ",
        (gpu_hours(plan.gpu_hours), "bold"),
        (most + unknown * bool(plan.without_estimate), MUTED),
    )


def duration_parts(plan: SuitePlan, nodes: Nodes) -> tuple[Part, ...]:
    """Duration of the steps of all runs, in sequence and in parallel on the free nodes."""
    parts: list[Part] = [f"{duration(plan.serial_s)} in sequence"]
    if nodes.free is None:
        parts.append((", free nodes unknown" + " (f: ask the cluster)" * nodes.askable, MUTED))
    elif plan.parallel_s is None:
        parts.append((f", a run needs more than the {plural(nodes.free, 'free node')}", MUTED))
    else:
        parts.append(f", {duration(plan.parallel_s)} in parallel on {plural(nodes.free, 'free node')}")
    return (*parts, (_PLUS_OVERHEAD, MUTED))


def _blockers(plan: DraftPlan) -> tuple[Paragraph, ...]:
    """Blockers of the suite itself, and the number of rows with blockers."""
    parts = []
    for problem in plan.submission.suite_blockers if plan.submission else ():
        parts.append(
            fact(severity_label("error").text, (problem.reason, "$text-error"), (f" {problem.fix}".rstrip(), MUTED))
        )
    if blocked := len(plan.blocked):
        rows, hint = f"{plural(blocked, 'row')} cannot be run", " (select a row for the reason · X: exclude them)"
        parts.append(fact(severity_label("error").text, (rows, "$text-error"), (hint, MUTED)))
    return tuple(parts)


def progress_things(progress: SuiteProgress, labels: Mapping[str, str]) -> dict[Key, RunRow]:
    """Rows by key, named by their labels. An active run has its verdict so far."""
    rows: dict[Key, RunRow] = {}
    for row in progress.rows:
        planned, verdict = row.planned.row, row.record.state.verdict if row.record else None
        label, scale, result = labels[planned.key], planned.selection.scale, verdict.result if verdict else None
        rows[planned.key] = replace(row_from_progress(row), key=label, scale=scale, result=result)
    return rows


def _step(row: RunRow) -> Cell:
    """Step time by the rule, or the median so far; before the submission the expected one."""
    step_time_s = row.median_s if row.step_time_s is None else row.step_time_s
    if step_time_s is not None:
        return Quantity(step_time_s, step_time_digits)
    if row.id or row.expected_s is None or row.method is None:
        return None
    return Toned(f"~{expected_step_time(row.method)(row.expected_s)}", "quiet")


def progress_columns() -> tuple[Column, ...]:
    """Columns of the rows of a submitted suite."""
    columns = screen_columns("suite screen")
    return tuple(replace(column, value=_step) if column.key == "step_time_s" else column for column in columns)


def progress_sums(progress: SuiteProgress, sending: SuiteSubmissionProgress | None) -> tuple[Paragraph, ...]:
    """Progress, remaining time, state of the submission, and outcome."""
    from llmb_tui.suites.outcome import outcome_of  # only a submitted suite has an outcome

    parts = [fact("progress", (progress.words, "bold"))]
    if not progress.over:
        parts.append(fact("remaining", *_remaining(progress)))
    parts += _submission(progress, sending)
    outcome = outcome_of(progress)
    for index, text in enumerate(text for text in outcome.lines if text != progress.words):
        style = STYLES[verdict_label(outcome.result).tone] if outcome.result and not index else ""
        parts.append(fact("" if index else "result", (text, style)))
    return tuple(parts)


def _remaining(progress: SuiteProgress) -> tuple[Part, ...]:
    parts: list[Part] = [gpu_hours(progress.gpu_hours_left), f", {duration(progress.serial_left_s)} in sequence"]
    if progress.left_s is not None:
        parts.append(f", {duration(progress.left_s)} in parallel on its own and free nodes")
    return (*parts, (_PLUS_OVERHEAD, MUTED))


def _submission(progress: SuiteProgress, sending: SuiteSubmissionProgress | None) -> tuple[Paragraph, ...]:
    unsent, word = plural(progress.count("not sent"), "run"), row_label("not sent").word
    if sending is not None and sending.is_active:
        most, status = progress.plan.suite.at_most, sending.words or "connecting"
        if _WAITING.match(status):  # the line above has the current state
            status = f"waiting to submit the next run{f' (at most {most} at a time)' if most else ''}"
        return (fact("submitting", (status, "$text-accent")),)
    parts = []
    if sending is not None and (error := sending.error) is not None:
        parts.append(fact("✗ stopped", (error.what, "$text-error"), (f" {error.fix}".rstrip(), MUTED)))
    if progress.plan.suite.cancelled:
        parts.append(fact(row_label("cancelled").word, f"{unsent} will not be submitted."))
    elif progress.stopped:
        parts.append(fact("stopped", f"{plural(progress.failures, 'failure')}: no more runs will be submitted."))
    elif progress.count("not sent"):
        parts.append(fact("next", f"{unsent} {word} · ", ("s: submit", "bold")))
    if (refused := progress.count("refused")) and not progress.plan.suite.cancelled:
        runs = plural(refused, "run")
        parts.append(fact(row_label("refused").word, f"{runs} · ", ("s: submit again", "bold"), " · c: end the suite"))
    return tuple(parts)
