"""`Reports`: makes the report of runs from all that this machine has of them. Takes no connection."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from llmb_tui.analysis.compare import group
from llmb_tui.analysis.scaling import scaling_curves
from llmb_tui.answers.blocks import Document
from llmb_tui.answers.document import document
from llmb_tui.answers.reported_run import ReportedRun
from llmb_tui.catalog.catalog import Catalog, Unknown
from llmb_tui.evidence.pack import sum_of
from llmb_tui.history import History, Losses
from llmb_tui.language.redact import without_secrets
from llmb_tui.launch.notes import Notes
from llmb_tui.launch.runs import ACCOUNTING, Runs
from llmb_tui.plan.over_scale import AtScale, over_scale
from llmb_tui.plan.plan import Plan
from llmb_tui.store.files import text_in
from llmb_tui.suites.suites import Suites
from llmb_tui.watch.run_records import RunRecords


@dataclass(frozen=True, slots=True)
class Reports:
    """What is known of runs, put together."""

    runs: Runs
    records: RunRecords
    history: History
    notes: Notes
    suites: Suites
    catalog: Catalog
    threshold: float

    def document(self, names: Iterable[str], now: float) -> Document:
        """The report of these runs and suites, in order, each once; `now` is Unix time.

        Raises Trouble (exit code 1) for what is neither.
        """
        names, others = tuple(names), _Others(self.history)
        run_ids = dict.fromkeys(run_id for name in names for run_id in self.suites.run_ids(name))
        suites = [self.suites.load(name) for name in dict.fromkeys(names) if self.suites.has(name)]
        runs = [self._reported(run_id, others) for run_id in run_ids]
        return document(runs, now, [self.suites.progress(suite) for suite in suites])

    def _reported(self, run_id: str, others: _Others) -> ReportedRun:
        result = self.history.result(run_id)
        run = self.runs.load(run_id)
        state = self.records.record(run).state
        folder = self.runs.folder(run_id)
        return ReportedRun(
            run,
            result,
            state,
            self.threshold,
            recipe_title=self._recipe_title(result.plan),
            script=without_secrets(self.runs.script(run_id)),
            script_sha256=_sha256(folder / "script.sh"),
            log_sha256=_sha256(folder / state.log_name),
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
        except Unknown:
            return ""

    def _over_scale(self, plan: Plan) -> tuple[AtScale, ...]:
        """None for a recipe that is not here any more, and for a layout of one's own, which has a scale of its own."""
        if plan.scaling == "proxy" or plan.selection.overrides.set_fields():
            return ()
        try:
            return over_scale(self.catalog, plan.selection)
        except Unknown:
            return ()


class _Others:
    """What else ran: worked out once for all runs of a report."""

    def __init__(self, history: History) -> None:
        self.losses = Losses(history)
        runs = history.all()
        self.repeats = {run.id: one.runs for one in group(runs) for run in one.runs}
        """Runs of the same configuration, cluster and procedure, by the id of each."""
        self.scales = {run.id: curve.runs for curve in scaling_curves(runs) for run in curve.runs}
        """Those that differ in their scale alone."""


def _sha256(path: Path) -> str:
    return sum_of(path)[1] if path.is_file() else ""
