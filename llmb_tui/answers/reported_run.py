"""A run in a report: its title, its verdict in a sentence, its line of a table."""

from __future__ import annotations

import time

from llmb_tui.analysis.charts import seconds
from llmb_tui.analysis.table import Column
from llmb_tui.answers.blocks import Banner
from llmb_tui.evidence.reported_run import ReportedRun
from llmb_tui.language.states import run_label
from llmb_tui.language.text import capital, plural
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.state import BAD_ENDS

_MARKS = {"PASS": "as fast as it should be", "WARN": "to be looked at", "FAIL": "slower than it should be"}
SIMULATED = " Simulated: no GPU has trained anything."
SUMMARY: tuple[Column, ...] = (
    ("run", "id"),
    ("verdict", lambda run: run.verdict.result if run.verdict and run.state not in BAD_ENDS else None),
    ("what", "configuration.label"),
    ("release", "configuration.release"),
    ("cluster", "cluster"),
    ("state", lambda run: run_label(run.state).word),
    ("step s", "step_time_s"),
    ("expected s", "plan.estimate.step_time_s"),
    ("% of expected speed", lambda run: 100 * run.verdict.ratio if run.verdict and run.state not in BAD_ENDS else None),
    ("tokens/s", "figures.tokens_per_s"),
    ("MFU %", "figures.mfu_pct"),
)
"""A result in one line of a table."""
_BAD_END_WORDS: dict[str, str] = {
    "failed": "failed",
    "timeout": "timed out",
    "node_fail": "lost its nodes",
    "cancelled": "was cancelled",
}


def title(one: ReportedRun) -> str:
    """What ran, in a few words."""
    what = one.result.configuration
    return f"{what.workload}@{what.release} {what.size} {what.dtype} on {gpus(one.result.plan)}"


def subtitle(one: ReportedRun) -> str:
    """Which run, where and when."""
    at = one.result.run.submitted_at
    submitted = f", submitted {moment(at)}" if at else ""
    simulated = "simulated cluster" if one.result.simulated else "cluster"
    return f"Run {one.result.id} on {simulated} {one.result.cluster}{submitted}; {run_label(one.result.state).word}"


def bad_end(one: ReportedRun) -> str:
    """How a run that was judged ended all the same, and why; empty where it ended well, or is without a verdict."""
    result = one.result
    if result.verdict is None or result.state not in BAD_ENDS:
        return ""
    steps = f"{result.progress.steps_done:,} of {plural(result.steps_total, 'step')}"
    return f"The run {_BAD_END_WORDS[result.state]} after {steps}. {result.record.state.why_failed}".rstrip()


def banner(one: ReportedRun) -> Banner:
    """The verdict in a sentence, or that there is none; a run that did not end well has none, whatever came before."""
    verdict, simulated = one.result.verdict, SIMULATED if one.result.simulated else ""
    if verdict is None:
        state = one.result.record.state
        said = (state.no_verdict.removeprefix("No verdict: "), state.why_failed)
        words = " ".join(filter(None, said)) or f"The run is {run_label(one.result.state).word}."
        return Banner("", capital(words) + simulated)
    kind = "Measured" if verdict.by_rule else "So far"
    words = (
        f"{_MARKS[verdict.result]}: {100 * verdict.ratio:.1f} % of the expected speed. {kind}: "
        f"{seconds(verdict.measured_s)} for a step, against {verdict.against}."
    )
    if ended := bad_end(one):
        return Banner("", f"{ended} Until then it was {verdict.result}, {words}{simulated}")
    return Banner(verdict.result, capital(words) + simulated)


def gpus(plan: Plan) -> str:
    """How many of which type: `64 × H100`."""
    return f"{plan.selection.scale:,} × {plan.selection.gpu.upper()}"


def moment(at: float) -> str:
    """A Unix time in UTC, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
