"""What the list of runs says: the cells of a row, the lines around the rows, and the question before a cancel. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual.content import Content

from llmb_tui.cluster.job import TERMINAL_STATES
from llmb_tui.launch.run import Run
from llmb_tui.plan.plan import METHOD_WORDS
from llmb_tui.results.notes import NO_NOTE, Note
from llmb_tui.text import plural
from llmb_tui.ui.text import MUTED, Part, line, lines
from llmb_tui.ui.units import bare_seconds, filled, percent, short_age
from llmb_tui.ui.widgets.keyed_table import Cell, Row, Tone
from llmb_tui.ui.widgets.run_header import what_runs
from llmb_tui.ui.widgets.run_parts import RESULTS
from llmb_tui.watch.state import Result, RunState, Stage

STAGES: dict[Stage, Cell] = {
    "queued": ("◐ queued", "warning"),
    "image": ("● image", "now"),
    "start": ("● start", "now"),
    "warm-up": ("● warm-up", "now"),
    "measuring": ("● measuring", "now"),
    "suspended": ("‖ suspended", "warning"),
    "completing": ("● completing", "now"),
    "done": ("✓ done", "good"),
    "failed": ("✗ failed", "bad"),
    "timeout": ("✗ timeout", "bad"),
    "node_fail": ("✗ node fail", "bad"),
    "cancelled": ("■ cancelled", "quiet"),
}
_SUBMISSIONS: dict[str, Cell] = {
    "unknown": ("? unknown", "warning"),
    "refused": ("✗ refused", "bad"),
    "withdrawn": ("✗ withdrawn", "bad"),
    "intended": ("○ prepared", "quiet"),
}
_BY_STATE: dict[str, Cell] = {
    "PENDING": STAGES["queued"],
    "RUNNING": ("● running", "now"),
    "COMPLETED": STAGES["done"],
    "SUSPENDED": STAGES["suspended"],
    "CANCELLED": STAGES["cancelled"],
}
_TONES: dict[Result, Tone] = {"PASS": "good", "WARN": "warning", "FAIL": "bad"}
BAR_CELLS = 4
_NAMED_IN_QUESTION = 8


def job_row(run: Run, state: RunState, marked: bool, now: float, note: Note = NO_NOTE) -> Row:
    """The cells of a run by column, and what is said of it, which has none. `now` is Unix time."""
    selection, estimate = run.plan.selection, run.plan.estimate
    progress, verdict = state.progress, state.verdict
    total = progress.steps_total or run.plan.steps
    against = f"{percent(verdict.ratio * 100)} of {METHOD_WORDS[estimate.method]}" if verdict and estimate else ""
    return {
        "mark": ("x", "now") if marked else ("•" if note else "", "quiet"),
        "state": state_cell(run, state),
        "workload": (f"{selection.workload} {selection.size} {selection.dtype}", "plain"),
        "scale": (f"{selection.scale}×{selection.gpu.upper()}", "plain"),
        "where": (run.cluster, "plain"),
        "procedure": (run.procedure, "quiet"),
        "steps": (f"{progress.steps_done}/{total}" if progress.steps_done else "–", "plain"),
        "bar": (filled(progress.steps_done, total, BAR_CELLS), "now"),
        "median": ("–" if progress.median_s is None else bare_seconds(progress.median_s), "plain"),
        "against": (against, "plain"),
        "verdict": result_cell(verdict.result) if verdict else ("–", "quiet"),
        "age": age_cell(run, now),
        "note": (note.words, "plain"),
    }


def age_cell(run: Run, now: float) -> Cell:
    """How long ago it was submitted, at `now`, Unix time."""
    return short_age(now - (run.submitted_at or run.created_at)), "quiet"


def result_cell(result: Result) -> Cell:
    """Glyph and word."""
    return f"{RESULTS[result][0]} {result}", _TONES[result]


def state_cell(run: Run, state: RunState) -> Cell:
    """Glyph and word: the submission while it is open, else the stage, else what its scheduler last said."""
    if run.submission != "submitted":
        return _SUBMISSIONS[run.submission]
    if state.stage in STAGES:
        return STAGES[state.stage]
    said = run.job_state or "submitted"
    if said in _BY_STATE:
        return _BY_STATE[said]
    return STAGES["failed"] if said in TERMINAL_STATES else (f"○ {said.lower()}", "quiet")


def has_words(run_id: str, row: Row, words: Sequence[str]) -> bool:
    """True if a row has every word, all lower case, in its id or a cell."""
    text = " ".join([run_id, *(cell for cell, _ in row.values())]).lower() if words else ""
    return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many runs the list has."""

    total: int
    going: int
    prepared: int
    """Of which nothing was sent."""
    shown: int
    marked: int


def heading(counts: Counts, notices: Mapping[str, str]) -> Content:
    """The line above the rows; `notices` are what has to be said of clusters, by name; empty for nothing."""
    ended = counts.total - counts.going - counts.prepared
    words = f"{counts.going} going · {ended} ended" if counts.total else "none yet"
    words += f" · {counts.prepared} prepared" if counts.prepared else ""
    parts: list[Part] = [("Runs", "bold"), f"   {words}"]
    if counts.shown != counts.total:
        parts.append((f"   {counts.shown} shown", "$text-accent"))
    if counts.marked:
        parts.append((f"   {counts.marked} marked", "$text-accent"))
    for cluster, notice in sorted(notices.items()):
        parts += ["   ", (f" {cluster}: {notice} ", "reverse")] if notice else []
    if not counts.total:
        parts.append(("   The wizard's last step submits one.", MUTED))
    return line(*parts)


def what_is_missing(silent: Mapping[str, str], unreadable: int, prepared: int, cancels: Sequence[str]) -> list[str]:
    """What the rows do not say: what could not be asked or read, what can be done with runs that were not sent.

    And `cancels`, what is known of those whose answer was lost.
    """
    notes = [f"{cluster} could not be asked: {why}" for cluster, why in silent.items()]
    notes += cancels
    if prepared:
        notes.append("What is prepared was not sent: its own screen submits it, c withdraws it.")
    if unreadable:
        notes.append(f"{plural(unreadable, 'run file')} could not be read: `llmb-tui jobs` says why.")
    return notes


def cancel_question(runs: Sequence[Run]) -> Content:
    """What would be cancelled, and withdrawn."""
    named = runs[:_NAMED_IN_QUESTION]
    jobs = Counter(run.words for run in runs for _ in run.job_ids)
    prepared = sum(not run.job_ids for run in runs)
    what = [f"Cancel {words.count(number)}" for words, number in jobs.items()]
    what += [f"Withdraw {plural(prepared, 'run')} of which nothing was sent"] * bool(prepared)
    rows = [line(f"{'; '.join(what)}?"), Content("")]
    for run in named:
        job = f"{', '.join(run.job_ids) or 'not sent':<10}"
        rows.append(line((job, "bold"), f"  {what_runs(run)} · {run.cluster}"))
    if len(runs) > len(named):
        rows.append(line((f"and {len(runs) - len(named)} more", MUTED)))
    rows += [Content(""), *(line((words.cancelling, MUTED)) for words in jobs)] if jobs else []
    return lines(rows)
