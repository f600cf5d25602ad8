"""`LocalResults`: the finished benchmarks of a cluster, by the data on this machine."""

from __future__ import annotations

from llmb_tui.catalog.catalog import Catalog, UnknownNameError
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.launch.run import Run
from llmb_tui.plan.calibration import ClusterResult
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.run_records import RecordCache, RunRecords
from llmb_tui.watch.state import RunRecord
from llmb_tui.watch.verdict import benchmark_s


class LocalResults:
    """Computes each result once, and again only if its record changes. Thread-safe; opens no connection."""

    def __init__(self, records: RunRecords, catalog: Catalog) -> None:
        self._records = records
        self._catalog = catalog
        self._results = RecordCache(self._measure)

    def of(self, cluster: str) -> tuple[ClusterResult, ...]:
        """Finished runs on a cluster that can be compared with other runs, newest first.

        This excludes runs that failed or were cancelled, were profiled or traced, loaded a checkpoint, were too short
        for their recipe's rule, or were started by NVIDIA's llmb-run, whose settings are not fully known.
        """
        ended = [record for record in self._records.all(cluster) if _has_ended(record.run)]
        return tuple(result for result in self._results.of(ended) if result)

    def _measure(self, record: RunRecord) -> ClusterResult | None:
        run, state = record.run, record.state
        seconds = benchmark_s(run.plan, run.rule, state.progress, state.validity) if state.stage == "done" else None
        if seconds is None:
            return None
        title = PROCEDURES[run.procedure].title
        return ClusterResult(run.id, self._as_planned_now(run.plan), seconds, record.log_grew_at, run.procedure, title)

    def _as_planned_now(self, stored: Plan) -> Plan:
        """The plan with the current estimate, for comparisons; the stored plan if its layout differs."""
        try:
            current = plan(self._catalog, stored.selection)
        except UnknownNameError:
            return stored
        return current if current.parallelism == stored.parallelism else stored


def _has_ended(run: Run) -> bool:
    return bool(run.job_ids) and not run.is_active and run.spec is not None
