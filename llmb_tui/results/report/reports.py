"""`Reports`: makes the report of runs from all that this machine has of them. Takes no connection."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from llmb_tui.catalog.catalog import Catalog, Unknown
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.over_scale import AtScale, over_scale
from llmb_tui.plan.plan import Plan
from llmb_tui.results.compare import group
from llmb_tui.results.configuration import Configuration
from llmb_tui.results.history import History
from llmb_tui.results.losses import LossDifference, loss_difference
from llmb_tui.results.notes import Notes
from llmb_tui.results.redact import without_secrets
from llmb_tui.results.report.blocks import Document
from llmb_tui.results.report.document import document
from llmb_tui.results.report.reported_run import ReportedRun
from llmb_tui.results.result import RunResult
from llmb_tui.results.scaling import scaling_curves
from llmb_tui.results.suite.suites import Suites
from llmb_tui.store.files import file_trouble
from llmb_tui.watch.accounting import ACCOUNTING
from llmb_tui.watch.run_records import RunRecords

_PIECE = 1 << 20


class Reports:
    """What is known of runs, put together."""

    def __init__(  # noqa: PLR0913 - all that a run is described by
        self,
        *,
        runs: Runs,
        records: RunRecords,
        history: History,
        notes: Notes,
        suites: Suites,
        catalog: Catalog,
        threshold: float,
    ) -> None:
        self._runs = runs
        self._records = records
        self._history = history
        self._notes = notes
        self._suites = suites
        self._catalog = catalog
        self._threshold = threshold

    def document(self, names: Iterable[str], now: float) -> Document:
        """The report of these runs and suites, in order, each once; `now` is Unix time.

        Raises Trouble (exit code 1) for what is neither.
        """
        names, others = tuple(names), _Others(self._history)
        run_ids = dict.fromkeys(run_id for name in names for run_id in self._suites.run_ids(name))
        suites = [self._suites.load(name) for name in dict.fromkeys(names) if self._suites.has(name)]
        runs = [self._reported(run_id, others) for run_id in run_ids]
        return document(runs, now, [self._suites.progress(suite) for suite in suites])

    def _reported(self, run_id: str, others: _Others) -> ReportedRun:
        result = self._history.result(run_id)
        run = self._runs.load(run_id)
        state = self._records.record(run).state
        folder = self._runs.folder(run_id)
        return ReportedRun(
            run=run,
            result=result,
            recipe=_recipe(self._catalog, result.plan),
            threshold=self._threshold,
            why_failed=state.why_failed,
            script=without_secrets(self._runs.script(run_id)),
            script_sha256=_sha256(folder / "script.sh"),
            log_sha256=_sha256(folder / state.log_name),
            log_unread=state.log_unread,
            log_removed=state.log_removed,
            accounting=without_secrets(_text(folder / ACCOUNTING)),
            first_loss=others.first_loss(result),
            note=self._notes.of(run_id).words,
            simulated=result.facts is not None and result.facts.simulated,
            over_scale=_over_scale(self._catalog, result.plan),
            other_scales=others.scales.get(run_id, ()),
            repeats=others.repeats.get(run_id, ()),
        )


class _Others:
    """What else ran: worked out once for all runs of a report."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._firsts: dict[Configuration, RunResult | None] = {}
        groups = group(history.all())
        self.repeats = {run.id: one.runs for one in groups for run in one.runs}
        """Runs of the same configuration, cluster and procedure, by the id of each."""
        curves = scaling_curves(run for one in groups for run in one.runs)
        families = [tuple(run for point in curve.points for run in point.group.runs) for curve in curves]
        self.scales = {run.id: family for family in families for run in family}
        """Those that differ in their scale alone."""

    def first_loss(self, result: RunResult) -> tuple[str, LossDifference] | None:
        """The first run of the same configuration, and how the losses differ; None for itself."""
        if result.configuration not in self._firsts:
            self._firsts[result.configuration] = self._history.first_of(result.configuration)
        first = self._firsts[result.configuration]
        if first is None or first.id == result.id or first.facts is None or result.facts is None:
            return None
        difference = loss_difference(result.facts, first.facts)
        return None if difference is None else (first.id, difference)


def _recipe(catalog: Catalog, plan: Plan) -> Recipe | None:
    try:
        return catalog.recipe(plan.selection.workload, plan.selection.release)
    except Unknown:
        return None


def _over_scale(catalog: Catalog, plan: Plan) -> tuple[AtScale, ...]:
    """None for a recipe that is not here any more, and for a layout of one's own, which has a scale of its own."""
    if plan.scaling == "proxy" or plan.selection.overrides.set_fields():
        return ()
    try:
        return over_scale(catalog, plan.selection)
    except Unknown:
        return ()


def _text(path: Path) -> str:
    """Of a file of ours; empty where there is none."""
    with file_trouble("read", path):
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _sha256(path: Path) -> str:
    if not path.is_file():
        return ""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(_PIECE):
            found.update(data)
    return found.hexdigest()
