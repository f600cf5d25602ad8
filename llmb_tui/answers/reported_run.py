"""A run in a report: its title, its verdict in a sentence."""

from __future__ import annotations

from llmb_tui.answers.blocks import Banner
from llmb_tui.evidence.reported_run import ReportedRun
from llmb_tui.language.instants import utc_time
from llmb_tui.language.labels import gpus_label, workload_label
from llmb_tui.language.quantities import count, percent, step_time
from llmb_tui.language.states import state_label
from llmb_tui.language.text import capital, plural
from llmb_tui.watch.state import BAD_ENDS

_MARKS = {"PASS": "as fast as it should be", "WARN": "to be looked at", "FAIL": "slower than it should be"}
SIMULATED = " Simulated: no GPU has trained anything."


_BAD_END_WORDS: dict[str, str] = {
    "failed": "failed",
    "timeout": "timed out",
    "node_fail": "lost its nodes",
    "cancelled": "was cancelled",
}


def title(one: ReportedRun) -> str:
    """What ran, in a few words."""
    what = one.result.configuration
    name = workload_label(f"{what.workload}@{what.release}", what.size, what.dtype)
    return f"{name} on {gpus_label(what.scale, what.gpu)}"


def subtitle(one: ReportedRun) -> str:
    """Which run, where and when."""
    at = one.result.run.submitted_at
    submitted = f", submitted {utc_time(at)}" if at else ""
    simulated = "simulated cluster" if one.result.simulated else "cluster"
    return f"Run {one.result.id} on {simulated} {one.result.cluster}{submitted}; {state_label(one.result.state).word}"


def bad_end(one: ReportedRun) -> str:
    """How and why a judged run ended badly; empty for a run that ended well or has no verdict."""
    result = one.result
    if result.verdict is None or result.state not in BAD_ENDS:
        return ""
    steps = f"{count(result.progress.steps_done)} of {plural(result.steps_total, 'step')}"
    return f"The run {_BAD_END_WORDS[result.state]} after {steps}. {result.record.state.why_failed}".rstrip()


def banner(one: ReportedRun) -> Banner:
    """The verdict in a sentence. A run that ended badly is headed by its end and not by a verdict."""
    verdict, simulated = one.result.verdict, SIMULATED if one.result.simulated else ""
    if verdict is None:
        state = one.result.record.state
        said = (state.no_verdict.removeprefix("No verdict: "), state.why_failed)
        words = " ".join(filter(None, said)) or f"The run is {state_label(one.result.state).word}."
        return Banner("", capital(words) + simulated)
    kind = "Measured" if verdict.by_rule else "So far"
    words = (
        f"{_MARKS[verdict.result]}: {percent(100 * verdict.ratio)} of the expected speed. {kind}: "
        f"{step_time(verdict.measured_s)} for a step, against {verdict.against}."
    )
    if ended := bad_end(one):
        return Banner("", f"{ended} Until then it was {verdict.result}, {words}{simulated}")
    return Banner(verdict.result, capital(words) + simulated)
