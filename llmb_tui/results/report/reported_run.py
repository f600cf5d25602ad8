"""`ReportedRun`: all that a report needs of one run; and what it comes to in a sentence and in a line of a table."""

from __future__ import annotations

import time
from dataclasses import dataclass

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.launch.run import Run
from llmb_tui.plan.over_scale import AtScale
from llmb_tui.plan.plan import Plan
from llmb_tui.results.charts import seconds
from llmb_tui.results.losses import LossDifference
from llmb_tui.results.report.blocks import Banner
from llmb_tui.results.result import RunResult
from llmb_tui.results.table import Cell

_MARKS = {"PASS": "as fast as it should be", "WARN": "to be looked at", "FAIL": "slower than it should be"}
SIMULATED = " Simulated: no GPU has trained anything."
SUMMARY = (
    "run", "verdict", "what", "release", "cluster", "state", "step s", "expected s", "% of expected speed", "tokens/s",
    "MFU %",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """All that a report needs of one run."""

    run: Run
    result: RunResult
    recipe: Recipe | None
    """None where this machine does not have it any more."""
    threshold: float
    """Smallest ratio that passes."""
    why_failed: str = ""
    """Why a run that did not end well did not, as far as it is known."""
    script: str = ""
    """What was submitted, without secrets; empty where it is not here."""
    script_sha256: str = ""
    """Of the file as it was submitted."""
    log_sha256: str = ""
    """Of the copy of the log; empty without one."""
    log_unread: bool = False
    """More of its log may be on the cluster than was copied."""
    log_removed: bool = False
    """Its copy was removed from this machine; what had been read of it stays."""
    accounting: str = ""
    """What the scheduler's accounting said when it was over, without secrets."""
    first_loss: tuple[str, LossDifference] | None = None
    """The first run of the same configuration, and how the losses differ; None where it is itself that."""
    note: str = ""
    """What a person has said of it."""
    simulated: bool = False
    over_scale: tuple[AtScale, ...] = ()
    other_scales: tuple[RunResult, ...] = ()
    """Comparable runs that differ in their scale alone, itself among them."""
    repeats: tuple[RunResult, ...] = ()
    """Comparable runs of the same configuration, cluster and procedure, itself among them."""

    @property
    def title(self) -> str:
        """What ran, in a few words."""
        selection = self.result.plan.selection
        return (
            f"{selection.workload}@{selection.release} {selection.size} {selection.dtype} on {gpus(self.result.plan)}"
        )

    @property
    def subtitle(self) -> str:
        """Which run, where and when."""
        submitted = f", submitted {moment(self.result.submitted_at)}" if self.result.submitted_at else ""
        simulated = "simulated cluster" if self.simulated else "cluster"
        return f"Run {self.run.id} on {simulated} {self.run.cluster}{submitted}; {self.result.state}"


def banner(one: ReportedRun) -> Banner:
    """The verdict in a sentence, or that there is none."""
    verdict, simulated = one.result.verdict, SIMULATED if one.simulated else ""
    if verdict is None:
        said = (one.result.no_verdict.removeprefix("No verdict: "), one.why_failed)
        words = " ".join(filter(None, said)) or f"The run is {one.result.state}."
        return Banner("", words[0].upper() + words[1:] + simulated)
    kind = "Measured" if verdict.by_rule else "So far"
    words = (
        f"{_MARKS[verdict.result]}: {100 * verdict.ratio:.1f} % of the expected speed. {kind}: "
        f"{seconds(verdict.measured_s)} for a step, against {verdict.against}."
    )
    return Banner(verdict.result, words[0].upper() + words[1:] + simulated)


def summary_row(one: ReportedRun) -> tuple[Cell, ...]:
    """A run in one line of a table; `SUMMARY` has its headings."""
    result, estimate, figures = one.result, one.result.plan.estimate, one.result.figures
    verdict = result.verdict
    return (
        one.run.id,
        verdict.result if verdict else None,
        result.configuration.label,
        result.configuration.release,
        one.run.cluster,
        result.state,
        result.step_time_s,
        estimate.step_time_s if estimate else None,
        100 * verdict.ratio if verdict else None,
        figures.tokens_per_s if figures else None,
        figures.mfu_pct if figures else None,
    )


def gpus(plan: Plan) -> str:
    """How many of which type: `64 × H100`."""
    return f"{plan.selection.scale:,} × {plan.selection.gpu.upper()}"


def moment(at: float) -> str:
    """A Unix time in UTC, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
