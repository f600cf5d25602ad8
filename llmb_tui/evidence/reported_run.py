"""`ReportedRun`: all data that a report needs of one run, and `RunGatherer`. Opens no connection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from llmb_tui.analysis.compare import group
from llmb_tui.analysis.result import LossDifference, RunResult
from llmb_tui.analysis.scaling import scaling_curves
from llmb_tui.catalog.catalog import Catalog, UnknownNameError
from llmb_tui.evidence.pack import sum_of
from llmb_tui.history import History, LossComparer
from llmb_tui.language.redact import without_secrets
from llmb_tui.launch.notes import Notes
from llmb_tui.launch.runs import ACCOUNTING, Runs
from llmb_tui.plan.over_scale import AtScale, over_scale
from llmb_tui.plan.plan import Plan
from llmb_tui.store.files import text_in


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """All data that a report needs of one run."""

    result: RunResult
    threshold: float
    """Smallest ratio that passes."""
    recipe_title: str = ""
    """Title of the recipe; empty if this machine no longer has it."""
    script: str = ""
    """The submitted script, without secrets; empty if this machine has no copy."""
    script_sha256: str = ""
    """SHA-256 of the submitted file."""
    log_sha256: str = ""
    """SHA-256 of the log's copy; empty without one."""
    accounting: str = ""
    """The scheduler's accounting after the end of the run, without secrets."""
    loss_against_first: LossDifference | None = None
    """Difference of the losses from the first run of the same configuration; None for that run itself."""
    note: str = ""
    """Note and tags of the run."""
    over_scale: tuple[AtScale, ...] = ()
    other_scales: tuple[RunResult, ...] = ()
    """Comparable runs that differ only in their scale, including this one."""
    repeats: tuple[RunResult, ...] = ()
    """Comparable runs of the same configuration, cluster and procedure, including this one."""


@dataclass(frozen=True, slots=True)
class RunGatherer:
    """Gathers the data of runs on this machine."""

    runs: Runs
    history: History
    notes: Notes
    catalog: Catalog
    threshold: float

    def reported(self, run_ids: Iterable[str]) -> tuple[ReportedRun, ...]:
        """Data of these runs, in order. Raises LlmbError (exit code 1) for a run that this machine does not have."""
        others = _Others(self.history)
        return tuple(self._reported(run_id, others) for run_id in run_ids)

    def _reported(self, run_id: str, others: _Others) -> ReportedRun:
        result = self.history.result(run_id)
        folder = self.runs.folder(run_id)
        return ReportedRun(
            result,
            self.threshold,
            recipe_title=self._recipe_title(result.plan),
            script=without_secrets(self.runs.script(run_id)),
            script_sha256=_sha256(folder / "script.sh"),
            log_sha256=_sha256(folder / result.record.state.log_name),
            accounting=without_secrets(text_in(folder / ACCOUNTING)),
            loss_against_first=others.losses.against_first(result),
            note=self.notes.of(run_id).words,
            over_scale=self._over_scale(result.plan),
            other_scales=others.scales.get(run_id, ()),
            repeats=others.repeats.get(run_id, ()),
        )

    def _recipe_title(self, plan: Plan) -> str:
        try:
            return self.catalog.recipe(plan.selection.workload, plan.selection.release).title
        except UnknownNameError:
            return ""

    def _over_scale(self, plan: Plan) -> tuple[AtScale, ...]:
        """Estimates over scales; empty for an unknown recipe, and for a custom layout, which has only its own scale."""
        if plan.scaling == "proxy" or plan.selection.overrides.set_fields():
            return ()
        try:
            return over_scale(self.catalog, plan.selection)
        except UnknownNameError:
            return ()


class _Others:
    """Other runs of this machine, gathered once for all runs of a report."""

    def __init__(self, history: History) -> None:
        self.losses = LossComparer(history)
        runs = history.all()
        self.repeats = {run.id: repeats.runs for repeats in group(runs) for run in repeats.runs}
        """Runs of the same configuration, cluster and procedure, by the id of each."""
        self.scales = {run.id: curve.runs for curve in scaling_curves(runs) for run in curve.runs}
        """Runs that differ only in their scale, by the id of each."""


def _sha256(path: Path) -> str:
    return sum_of(path)[1] if path.is_file() else ""
