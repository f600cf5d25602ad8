"""`OwnRuns`: the benchmarks that have ended on a cluster, from what this machine holds of them."""

from __future__ import annotations

import threading
from pathlib import Path

from llmb_tui.catalog.catalog import Catalog, Unknown
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.calibration import OwnResult
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.locallog import local_name, newest_restart
from llmb_tui.watch.monitor import replay
from llmb_tui.watch.verdict import benchmark_s

_Stamp = tuple[str, int, int]


class OwnRuns:
    """Reads each log once, and again only when it has changed. Thread-safe; takes no connection."""

    def __init__(self, runs: Runs, catalog: Catalog) -> None:
        self._runs = runs
        self._catalog = catalog
        self._lock = threading.Lock()
        self._known: dict[str, tuple[_Stamp, OwnResult | None]] = {}

    def results(self, cluster: str) -> tuple[OwnResult, ...]:
        """What ran to its end on a cluster and can be compared with other runs, newest first.

        That leaves out what failed or was cancelled, was profiled or traced, loaded a checkpoint, was too short for
        its recipe's rule, or was started by NVIDIA's llmb-run, of which not everything is known that was set.
        """
        done = [run for run in self._runs.all() if run.cluster == cluster and _has_ended(run)]
        with self._lock:
            return tuple(result for run in done if (result := self._result(run)))

    def _result(self, run: Run) -> OwnResult | None:
        folder = self._runs.folder(run.id)
        log = folder / local_name(newest_restart(folder))
        stamp = _stamp(log)
        if stamp is None:
            return None
        before = self._known.get(run.id)
        if before is None or before[0] != stamp:
            before = self._known[run.id] = (stamp, self._read(run, log))
        return before[1]

    def _read(self, run: Run, log: Path) -> OwnResult | None:
        state = replay(self._runs, run)
        seconds = benchmark_s(run.plan, run.rule, state.progress) if state.stage == "done" else None
        if seconds is None:
            return None
        return OwnResult(run.id, self._as_planned_now(run.plan), seconds, log.stat().st_mtime, run.procedure)

    def _as_planned_now(self, then: Plan) -> Plan:
        """The plan with today's estimate, as others are compared with; the old one where it ran otherwise."""
        try:
            now = plan(self._catalog, then.selection)
        except Unknown:
            return then
        return now if now.parallelism == then.parallelism else then


def _has_ended(run: Run) -> bool:
    return bool(run.job_ids) and not run.going and run.procedure != "llmb-run"


def _stamp(log: Path) -> _Stamp | None:
    """What changes whenever a log does; None if there is none."""
    try:
        stat = log.stat()
    except FileNotFoundError:
        return None
    return log.name, stat.st_size, stat.st_mtime_ns
