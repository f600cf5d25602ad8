"""A run in a report: its subtitle, and its verdict in a sentence."""

from __future__ import annotations

from llmb_tui.answers.blocks import Banner
from llmb_tui.evidence.reported_run import ReportedRun
from llmb_tui.language.instants import utc_time
from llmb_tui.language.quantities import count, percent, step_time
from llmb_tui.language.states import state_label
from llmb_tui.language.text import capital, plural
from llmb_tui.watch.state import BAD_ENDS

_MARKS = {"PASS": "fast enough", "WARN": "inconclusive", "FAIL": "too slow"}
SIMULATED = " Simulated: no GPU trained anything."
_BAD_END_WORDS: dict[str, str] = {
    "failed": "failed",
    "timeout": "timed out",
    "node_fail": "lost its nodes",
    "cancelled": "was cancelled",
}


def subtitle(reported: ReportedRun) -> str:
    """A run's id, cluster, submission time and state."""
    result = reported.result
    submitted = f", submitted {utc_time(result.run.submitted_at)}" if result.run.submitted_at else ""
    simulated = "simulated cluster" if result.simulated else "cluster"
    return f"Run {result.id} on {simulated} {result.cluster}{submitted}; {state_label(result.state).word}"


def bad_end(reported: ReportedRun) -> str:
    """How and why a judged run failed or was cancelled; empty for a run that is done or has no verdict."""
    result = reported.result
    if result.verdict is None or result.state not in BAD_ENDS:
        return ""
    steps = f"{count(result.progress.steps_done)} of {plural(result.steps_total, 'step')}"
    return f"The run {_BAD_END_WORDS[result.state]} after {steps}. {result.record.state.why_failed}".rstrip()


def banner(reported: ReportedRun) -> Banner:
    """The verdict in a sentence. A run that failed or was cancelled starts with its end and has no verdict."""
    result, simulated = reported.result, SIMULATED if reported.result.simulated else ""
    verdict = result.verdict
    if verdict is None:
        state = result.record.state
        reasons = (state.no_verdict.removeprefix("No verdict: "), state.why_failed)
        words = " ".join(filter(None, reasons)) or f"The run is {state_label(result.state).word}."
        return Banner("", capital(words) + simulated)
    kind = "Measured" if verdict.by_rule else "So far"
    words = (
        f"{_MARKS[verdict.result]}: {percent(100 * verdict.ratio)} of the expected speed. {kind}: "
        f"{step_time(verdict.measured_s)} per step, compared with {verdict.against}."
    )
    if ended := bad_end(reported):
        return Banner("", f"{ended} Until then it was {verdict.result}, {words}{simulated}")
    return Banner(verdict.result, capital(words) + simulated)
