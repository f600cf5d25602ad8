"""What the screen of a submitted suite says: a row for each run, and how all of it stands. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from llmb_tui.plan.plan import METHOD_NAMES
from llmb_tui.results.suite.outcome import outcome_of
from llmb_tui.results.suite.submissions import Sending
from llmb_tui.results.suite.suite_progress import RowProgress, SuiteProgress
from llmb_tui.text import plural
from llmb_tui.ui import units
from llmb_tui.ui.text import MUTED, Part
from llmb_tui.ui.widgets.job_texts import job_row
from llmb_tui.ui.widgets.keyed_table import Key, Row, TableColumn
from llmb_tui.ui.widgets.run_parts import RESULTS
from llmb_tui.ui.widgets.suite_texts import with_name
from llmb_tui.ui.widgets.texts import Paragraph, fact

_WIDE_FROM = 110
_STANDING = re.compile(r"\d+ of \d+ runs? done")
"""What a submission says while it can send nothing: how the suite stood then."""


def progress_columns(width: int) -> tuple[TableColumn, ...]:
    """Those that a table of so many cells has room for."""
    wide = width >= _WIDE_FROM
    fixed = [
        TableColumn("gpus", "GPUs", 5, figures=True),
        TableColumn("state", "state", 11),
        TableColumn("steps", "steps", 7, figures=True),
        *([TableColumn("bar", "", 4)] if wide else ()),
        TableColumn("step", "step, s", 7, figures=True),
        *([TableColumn("against", "of expected", 23)] if wide else ()),
        TableColumn("verdict", "result", 6),
        *([TableColumn("job", "job", 9)] if wide else ()),
    ]
    return with_name("run", "run", width, fixed)


def progress_rows(progress: SuiteProgress, labels: Mapping[str, str]) -> dict[Key, Row]:
    """The cells of every row, by its key."""
    return {row.planned.row.key: _cells(row, labels[row.planned.row.key]) for row in progress.rows}


def _cells(row: RowProgress, label: str) -> Row:
    record, estimate = row.record, row.planned.plan.estimate
    if record is None:
        cells: Row = dict.fromkeys(("steps", "bar", "against", "verdict", "job"), ("", "quiet"))
        expected = f"~{units.bare_seconds(estimate.step_time_s)}" if estimate else "–"
        cells |= {"state": ("○ not sent", "quiet"), "step": (expected, "quiet")}
    else:
        cells = job_row(record.run, record.state, False, record.run.created_at)
        cells |= {"step": cells["median"], "job": (", ".join(record.run.job_ids), "quiet")}
        verdict = record.state.verdict
        if verdict is not None and estimate is not None:  # shorter than in a list of runs, where nothing explains it
            cells["against"] = f"{units.percent(verdict.ratio * 100)} of {METHOD_NAMES[estimate.method]}", "plain"
        if row.step_time_s is not None:
            cells["step"] = units.bare_seconds(row.step_time_s), "plain"
    gpus = str(row.planned.row.selection.scale)
    return {**cells, "mark": ("", "plain"), "run": (label, "plain"), "gpus": (gpus, "plain")}


def progress_sums(progress: SuiteProgress, sending: Sending | None) -> tuple[Paragraph, ...]:
    """How far it is, what is left, what it has answered, and whether anything is being sent."""
    parts = [fact("so far", (progress.words, "bold"))]
    if not progress.over:
        parts.append(fact("left", *_left(progress)))
    outcome = outcome_of(progress)
    for at, words in enumerate(words for words in outcome.lines if words != progress.words):
        style = RESULTS[outcome.result][1] if outcome.result and not at else ""
        parts.append(fact("" if at else "answer", (words, style)))
    return (*parts, *_sending(progress, sending))


def _left(progress: SuiteProgress) -> tuple[Part, ...]:
    parts: list[Part] = [units.gpu_hours(progress.gpu_hours_left), f", {units.clock(progress.serial_left_s)} in a row"]
    if progress.left_s is not None:
        parts.append(f", {units.clock(progress.left_s)} on its nodes and those that were free")
    return (*parts, ("; start-up and queue beside it", MUTED))


def _sending(progress: SuiteProgress, sending: Sending | None) -> tuple[Paragraph, ...]:
    unsent = plural(progress.count("not sent"), "run")
    if sending is not None and sending.goes_on:
        most, words = progress.plan.suite.at_most, sending.words or "connecting"
        if _STANDING.match(words):  # the line above says it as it is now
            words = f"waits until the next may be sent{f': at most {most} at a time' if most else ''}"
        return (fact("sending", (words, "$text-accent")),)
    parts = []
    if sending is not None and (trouble := sending.trouble) is not None:
        parts.append(fact("✗ stopped", (trouble.what, "$text-error"), (f" {trouble.fix}".rstrip(), MUTED)))
    if progress.plan.suite.cancelled:
        parts.append(fact("cancelled", f"{unsent} not sent, and none will be."))
    elif progress.stopped:
        parts.append(fact("stopped", f"{plural(progress.failures, 'failure')}: nothing more is sent."))
    elif progress.count("not sent"):
        parts.append(fact("not sent", f"{unsent}: ", ("s goes on", "bold"), " where it stopped."))
    return tuple(parts)
