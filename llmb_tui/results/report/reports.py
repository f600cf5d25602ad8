"""`Reports`: makes the report of runs from all that this machine has of them. Takes no connection."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from llmb_tui.catalog.catalog import Catalog, Unknown
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.over_scale import AtScale, over_scale
from llmb_tui.plan.plan import Plan
from llmb_tui.results.compare import Group, group
from llmb_tui.results.configuration import Configuration
from llmb_tui.results.history import History
from llmb_tui.results.losses import LossDifference, loss_difference
from llmb_tui.results.notes import Notes
from llmb_tui.results.redact import without_secrets
from llmb_tui.results.report.blocks import Document
from llmb_tui.results.report.document import document
from llmb_tui.results.report.reported_run import ReportedRun
from llmb_tui.results.result import RunResult
from llmb_tui.results.scaling import ScalingCurve, scaling_curves
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
        catalog: Catalog,
        threshold: float,
    ) -> None:
        self._runs = runs
        self._records = records
        self._history = history
        self._notes = notes
        self._catalog = catalog
        self._threshold = threshold

    def document(self, run_ids: Iterable[str], now: float, title: str = "") -> Document:
        """The report of these runs, in order, each once; `title` names several, `now` is Unix time.

        Raises Trouble (exit code 1) for a run that is not here.
        """
        groups, firsts = group(self._history.all()), _Firsts(self._history)
        return document([self._reported(run_id, groups, firsts) for run_id in dict.fromkeys(run_ids)], now, title)

    def _reported(self, run_id: str, groups: Sequence[Group], firsts: _Firsts) -> ReportedRun:
        result = self._history.result(run_id)
        run = self._runs.load(run_id)
        state = self._records.record(run).state
        folder = self._runs.folder(run_id)
        log, script = folder / state.log_name, self._runs.script(run_id)
        curves = map(_runs_of, scaling_curves(other for one in groups for other in one.runs))
        return ReportedRun(
            run=run,
            result=result,
            recipe=_recipe(self._catalog, result.plan),
            threshold=self._threshold,
            why_failed=state.why_failed,
            script=without_secrets(script),
            script_sha256=hashlib.sha256(script.encode()).hexdigest() if script else "",
            log_sha256=_sha256(log),
            log_unread=state.log_unread,
            accounting=without_secrets(_text(folder / ACCOUNTING)),
            first_loss=firsts.loss(result),
            note=self._notes.of(run_id).words,
            simulated=result.facts is not None and result.facts.simulated,
            over_scale=_over_scale(self._catalog, result.plan),
            other_scales=_with(run_id, curves),
            repeats=_with(run_id, (one.runs for one in groups)),
        )


class _Firsts:
    """The first run of each configuration, whose log is read once."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._known: dict[Configuration, RunResult | None] = {}

    def loss(self, result: RunResult) -> tuple[str, LossDifference] | None:
        """Its id, and how the losses differ from its own; None for itself."""
        if result.configuration not in self._known:
            self._known[result.configuration] = self._history.first_of(result.configuration)
        first = self._known[result.configuration]
        if first is None or first.id == result.id or first.facts is None or result.facts is None:
            return None
        difference = loss_difference(result.facts, first.facts)
        return None if difference is None else (first.id, difference)


def _with(run_id: str, sets: Iterable[tuple[RunResult, ...]]) -> tuple[RunResult, ...]:
    """Those runs among which it is; none where it is in none."""
    return next((runs for runs in sets if any(one.id == run_id for one in runs)), ())


def _runs_of(curve: ScalingCurve) -> tuple[RunResult, ...]:
    return tuple(run for point in curve.points for run in point.group.runs)


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
