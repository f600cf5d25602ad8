"""`ReportedRun`: all that a report needs of one run; and what it comes to in a sentence and in a line of a table."""

from __future__ import annotations

import time
from dataclasses import dataclass

from llmb_tui.analysis.charts import seconds
from llmb_tui.analysis.result import LossDifference, RunResult
from llmb_tui.analysis.table import Column
from llmb_tui.answers.blocks import Banner
from llmb_tui.language.states import run_label
from llmb_tui.language.text import capital, plural
from llmb_tui.launch.run import Run
from llmb_tui.plan.over_scale import AtScale
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.state import BAD_ENDS, RunState

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


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """All that a report needs of one run."""

    run: Run
    result: RunResult
    state: RunState
    threshold: float
    """Smallest ratio that passes."""
    recipe_title: str = ""
    """Empty where this machine does not have the recipe any more."""
    script: str = ""
    """What was submitted, without secrets; empty where it is not here."""
    script_sha256: str = ""
    """Of the file as it was submitted."""
    log_sha256: str = ""
    """Of the copy of the log; empty without one."""
    accounting: str = ""
    """What the scheduler's accounting said when it was over, without secrets."""
    loss_against_first: LossDifference | None = None
    """How losses differ from those of the first run of the same configuration; None where it is itself that."""
    note: str = ""
    """What a person has said of it."""
    over_scale: tuple[AtScale, ...] = ()
    other_scales: tuple[RunResult, ...] = ()
    """Comparable runs that differ in their scale alone, itself among them."""
    repeats: tuple[RunResult, ...] = ()
    """Comparable runs of the same configuration, cluster and procedure, itself among them."""

    @property
    def title(self) -> str:
        """What ran, in a few words."""
        what = self.result.configuration
        return f"{what.workload}@{what.release} {what.size} {what.dtype} on {gpus(self.result.plan)}"

    @property
    def subtitle(self) -> str:
        """Which run, where and when."""
        submitted = f", submitted {moment(self.result.submitted_at)}" if self.result.submitted_at else ""
        simulated = "simulated cluster" if self.result.simulated else "cluster"
        return f"Run {self.run.id} on {simulated} {self.run.cluster}{submitted}; {run_label(self.result.state).word}"

    @property
    def bad_end(self) -> str:
        """How a run that was judged ended all the same, and why; empty where it ended well, or is without a verdict."""
        result = self.result
        if result.verdict is None or result.state not in BAD_ENDS:
            return ""
        steps = f"{result.steps_done:,} of {plural(result.steps_total, 'step')}"
        return f"The run {_BAD_END_WORDS[result.state]} after {steps}. {self.state.why_failed}".rstrip()


def banner(one: ReportedRun) -> Banner:
    """The verdict in a sentence, or that there is none; a run that did not end well has none, whatever came before."""
    verdict, simulated = one.result.verdict, SIMULATED if one.result.simulated else ""
    if verdict is None:
        said = (one.result.no_verdict.removeprefix("No verdict: "), one.state.why_failed)
        words = " ".join(filter(None, said)) or f"The run is {run_label(one.result.state).word}."
        return Banner("", capital(words) + simulated)
    kind = "Measured" if verdict.by_rule else "So far"
    words = (
        f"{_MARKS[verdict.result]}: {100 * verdict.ratio:.1f} % of the expected speed. {kind}: "
        f"{seconds(verdict.measured_s)} for a step, against {verdict.against}."
    )
    if one.bad_end:
        return Banner("", f"{one.bad_end} Until then it was {verdict.result}, {words}{simulated}")
    return Banner(verdict.result, capital(words) + simulated)


def gpus(plan: Plan) -> str:
    """How many of which type: `64 × H100`."""
    return f"{plan.selection.scale:,} × {plan.selection.gpu.upper()}"


def moment(at: float) -> str:
    """A Unix time in UTC, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
