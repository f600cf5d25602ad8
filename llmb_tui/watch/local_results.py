"""`LocalResults`: the benchmarks that have ended on a cluster, from what this machine holds of them."""

from __future__ import annotations

from llmb_tui.catalog.catalog import Catalog, Unknown
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.launch.run import Run
from llmb_tui.plan.calibration import OwnResult
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.watch.run_records import RecordCache, RunRecords
from llmb_tui.watch.state import RunRecord
from llmb_tui.watch.verdict import benchmark_s


class LocalResults:
    """Works out each result once, and again only when its record is another. Thread-safe; takes no connection."""

    def __init__(self, records: RunRecords, catalog: Catalog) -> None:
        self._records = records
        self._catalog = catalog
        self._results = RecordCache(self._measure)

    def of(self, cluster: str) -> tuple[OwnResult, ...]:
        """What ran to its end on a cluster and can be compared with other runs, newest first.

        That leaves out what failed or was cancelled, was profiled or traced, loaded a checkpoint, was too short for
        its recipe's rule, or was started by NVIDIA's llmb-run, of which not everything is known that was set.
        """
        ended = [record for record in self._records.all(cluster) if _has_ended(record.run)]
        return tuple(result for result in self._results.of(ended) if result)

    def _measure(self, record: RunRecord) -> OwnResult | None:
        run, state = record.run, record.state
        seconds = benchmark_s(run.plan, run.rule, state.progress, state.validity) if state.stage == "done" else None
        if seconds is None:
            return None
        title = PROCEDURES[run.procedure].title
        return OwnResult(run.id, self._as_planned_now(run.plan), seconds, record.log_grew_at, run.procedure, title)

    def _as_planned_now(self, then: Plan) -> Plan:
        """The plan with today's estimate, as others are compared with; the old one where it ran otherwise."""
        try:
            now = plan(self._catalog, then.selection)
        except Unknown:
            return then
        return now if now.parallelism == then.parallelism else then


def _has_ended(run: Run) -> bool:
    return bool(run.job_ids) and not run.going and run.spec is not None
