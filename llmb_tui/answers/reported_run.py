"""`ReportedRun`: all that a report needs of one run; and what it comes to in a sentence and in a line of a table."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.analysis.result import LossDifference, RunResult
from llmb_tui.analysis.table import Column, expected_cell, quantity
from llmb_tui.answers.blocks import Banner
from llmb_tui.language.instants import utc_time
from llmb_tui.language.labels import gpus_label, workload_label
from llmb_tui.language.quantities import count, percent, percent_digits, step_time, step_time_digits, tokens_per_s
from llmb_tui.language.text import capital, plural
from llmb_tui.launch.run import Run
from llmb_tui.plan.over_scale import AtScale
from llmb_tui.watch.state import BAD_ENDS, RunState

_MARKS = {"PASS": "as fast as it should be", "WARN": "to be looked at", "FAIL": "slower than it should be"}
SIMULATED = " Simulated: no GPU has trained anything."


def speed_pct(run: RunResult) -> float | None:
    """The reached speed in per cent of the expected one; None without a verdict that counts."""
    return 100 * run.verdict.ratio if run.verdict and run.state not in BAD_ENDS else None


SUMMARY: tuple[Column, ...] = (
    ("run", "id"),
    ("verdict", lambda run: run.verdict.result if run.verdict and run.state not in BAD_ENDS else None),
    ("what", "configuration.label"),
    ("release", "configuration.release"),
    ("cluster", "cluster"),
    ("state", "state"),
    ("step s", quantity("step_time_s", step_time_digits)),
    ("expected s", lambda run: expected_cell(run.plan.estimate)),
    ("% of expected speed", quantity(speed_pct, percent_digits)),
    ("tokens/s", quantity("figures.tokens_per_s", tokens_per_s)),
    ("MFU %", quantity("figures.mfu_pct", percent_digits)),
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
        name = workload_label(f"{what.workload}@{what.release}", what.size, what.dtype)
        return f"{name} on {gpus_label(what.scale, what.gpu)}"

    @property
    def subtitle(self) -> str:
        """Which run, where and when."""
        submitted = f", submitted {utc_time(self.result.submitted_at)}" if self.result.submitted_at else ""
        simulated = "simulated cluster" if self.result.simulated else "cluster"
        return f"Run {self.run.id} on {simulated} {self.run.cluster}{submitted}; {self.result.state}"

    @property
    def bad_end(self) -> str:
        """How a run that was judged ended all the same, and why; empty where it ended well, or is without a verdict."""
        result = self.result
        if result.verdict is None or result.state not in BAD_ENDS:
            return ""
        steps = f"{count(result.steps_done)} of {plural(result.steps_total, 'step')}"
        return f"The run {_BAD_END_WORDS[result.state]} after {steps}. {self.state.why_failed}".rstrip()


def banner(one: ReportedRun) -> Banner:
    """The verdict in a sentence, or that there is none; a run that did not end well has none, whatever came before."""
    verdict, simulated = one.result.verdict, SIMULATED if one.result.simulated else ""
    if verdict is None:
        said = (one.result.no_verdict.removeprefix("No verdict: "), one.state.why_failed)
        words = " ".join(filter(None, said)) or f"The run is {one.result.state}."
        return Banner("", capital(words) + simulated)
    kind = "Measured" if verdict.by_rule else "So far"
    words = (
        f"{_MARKS[verdict.result]}: {percent(100 * verdict.ratio)} of the expected speed. {kind}: "
        f"{step_time(verdict.measured_s)} for a step, against {verdict.against}."
    )
    if one.bad_end:
        return Banner("", f"{one.bad_end} Until then it was {verdict.result}, {words}{simulated}")
    return Banner(verdict.result, capital(words) + simulated)
