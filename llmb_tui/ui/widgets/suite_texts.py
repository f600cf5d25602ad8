"""What the suite screens say: the rows of a suite that is chosen or was submitted, and the sums. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from llmb_tui.language.quantities import (
    duration,
    gpu_hours,
    gpu_hours_digits,
    percent,
    step_time_digits,
    step_time_range,
    step_time_range_digits,
)
from llmb_tui.language.states import method_phrase, method_word, row_label, severity_label, verdict_label
from llmb_tui.language.text import plural
from llmb_tui.plan.plan import expected_step_time
from llmb_tui.suites.draft_plan import DraftPlan
from llmb_tui.suites.suite_plan import Nodes, PlannedRow, SuitePlan
from llmb_tui.suites.suite_progress import RowProgress, SuiteProgress
from llmb_tui.ui.text import MUTED, STYLES, Part
from llmb_tui.ui.widgets.job_table import job_row
from llmb_tui.ui.widgets.keyed_table import Cell, Key, Row, TableColumn, label_cell, room_beside
from llmb_tui.ui.widgets.texts import Paragraph, fact

if TYPE_CHECKING:
    from llmb_tui.suites.submissions import Sending

_BAND_FROM = 64
_SOURCE_FROM = 100
_LEAST = 8
"""Cells for what a row is called."""
_PROGRESS_WIDE_FROM = 110
_STANDING = re.compile(r"\d+ of \d+ runs? done")
"""What a submission says while it can send nothing: how the suite stood then."""


def draft_columns(width: int) -> tuple[TableColumn, ...]:
    """Those that a table of so many cells has room for; what a row is called takes what is left."""
    fixed = [
        TableColumn("gpus", "GPUs", 5, figures=True),
        TableColumn("nodes", "nodes", 5, figures=True),
        TableColumn("step", "step, s", 7, figures=True),
        *([TableColumn("band", "band", 13, figures=True)] if width >= _BAND_FROM else ()),
        *([TableColumn("source", "", 13)] if width >= _SOURCE_FROM else ()),
        TableColumn("hours", "GPU-h", 7, figures=True),
        TableColumn("limit", "limit", 8, figures=True),
    ]
    return _with_name(width, fixed)


def _with_name(width: int, fixed: Sequence[TableColumn]) -> tuple[TableColumn, ...]:
    """These columns behind a mark and a name, which is as wide as there is room."""
    mark = TableColumn("mark", "", 1)
    room = max(room_beside((mark, *fixed), width - 1), _LEAST)
    return mark, TableColumn("run", "run", room), *fixed


def draft_rows(plan: DraftPlan) -> dict[Key, Row]:
    """The cells of every row, by its key; those of one that is taken out are faint."""
    rows: dict[Key, Row] = {}
    for planned in plan.rows:
        out = plan.is_out(planned)
        cells = _cells(planned, plan.labels[planned.row.key])
        if out:
            cells = {name: (text, "quiet") for name, (text, _) in cells.items()} | {"mark": ("–", "quiet")}
        rows[planned.row.key] = cells
    return rows


def _cells(planned: PlannedRow, label: str) -> Row:
    estimate, hours = planned.plan.estimate, planned.plan.gpu_hours
    return {
        "mark": _mark(planned),
        "run": (label, "plain"),
        "gpus": (str(planned.row.selection.scale), "plain"),
        "nodes": (str(planned.plan.nodes), "plain"),
        "step": (expected_step_time(estimate.method)(estimate.step_time_s) if estimate else "–", "plain"),
        "band": (
            step_time_range_digits(estimate.low_s, estimate.high_s) if estimate else "no estimate",
            "quiet",
        ),
        "source": (method_word(estimate.method) if estimate else "", "quiet"),
        "hours": (
            gpu_hours_digits(hours) if hours is not None else f"≤{gpu_hours_digits(planned.most_gpu_hours)}",
            "plain",
        ),
        "limit": (planned.plan.time_limit, "quiet"),
    }


def _mark(planned: PlannedRow) -> Cell:
    if planned.blockers:
        worst = severity_label("error")
    elif any(one.severity == "warning" for one in planned.notes):
        worst = severity_label("warning")
    else:
        return "", "plain"
    return worst.glyph, worst.tone


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


def progress_columns(width: int) -> tuple[TableColumn, ...]:
    """Those that a table of so many cells has room for."""
    wide = width >= _PROGRESS_WIDE_FROM
    fixed = [
        TableColumn("gpus", "GPUs", 5, figures=True),
        TableColumn("state", "state", 15),
        TableColumn("steps", "steps", 9, figures=True),
        *([TableColumn("bar", "", 4)] if wide else ()),
        TableColumn("step", "step, s", 7, figures=True),
        *([TableColumn("against", "of expected", 23)] if wide else ()),
        TableColumn("verdict", "result", 6),
        *([TableColumn("job", "job", 9)] if wide else ()),
    ]
    return _with_name(width, fixed)


def progress_rows(progress: SuiteProgress, labels: Mapping[str, str]) -> dict[Key, Row]:
    """The cells of every row, by its key."""
    return {row.planned.row.key: _progress_cells(row, labels[row.planned.row.key]) for row in progress.rows}


def _progress_cells(row: RowProgress, label: str) -> Row:
    record, estimate = row.record, row.planned.plan.estimate
    if record is None:
        cells: Row = dict.fromkeys(("steps", "bar", "against", "verdict", "job"), ("", "quiet"))
        expected = f"~{expected_step_time(estimate.method)(estimate.step_time_s)}" if estimate else "–"
        cells |= {"state": label_cell(row.label), "step": (expected, "quiet")}
    else:
        cells = job_row(record.run, record.state, False, record.run.created_at)
        cells |= {"step": cells["median"], "job": (", ".join(record.run.job_ids), "quiet")}
        verdict = record.state.verdict
        if verdict is not None and estimate is not None:  # shorter than in a list of runs, where nothing explains it
            cells["against"] = f"{percent(verdict.ratio * 100)} of {method_word(estimate.method)}", "plain"
        if row.step_time_s is not None:
            cells["step"] = step_time_digits(row.step_time_s), "plain"
    gpus = str(row.planned.row.selection.scale)
    return {**cells, "mark": ("", "plain"), "run": (label, "plain"), "gpus": (gpus, "plain")}


def progress_sums(progress: SuiteProgress, sending: Sending | None) -> tuple[Paragraph, ...]:
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


def _sending(progress: SuiteProgress, sending: Sending | None) -> tuple[Paragraph, ...]:
    unsent, word = plural(progress.count("not sent"), "run"), row_label("not sent").word
    if sending is not None and sending.goes_on:
        most, words = progress.plan.suite.at_most, sending.words or "connecting"
        if _STANDING.match(words):  # the line above says it as it is now
            words = f"waits until the next may be sent{f': at most {most} at a time' if most else ''}"
        return (fact("sending", (words, "$text-accent")),)
    parts = []
    if sending is not None and (trouble := sending.trouble) is not None:
        parts.append(fact("✗ stopped", (trouble.what, "$text-error"), (f" {trouble.fix}".rstrip(), MUTED)))
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
