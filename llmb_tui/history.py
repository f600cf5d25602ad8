"""`History`: the results of the runs that this machine remembers, each computed once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from llmb_tui.analysis.difference import RunSources
from llmb_tui.analysis.result import (
    Configuration,
    LossDifference,
    RunResult,
    configuration_of,
    loss_difference,
)
from llmb_tui.errors import LlmbError
from llmb_tui.launch.runs import Runs
from llmb_tui.watch.log_reader import kept_facts, read_log
from llmb_tui.watch.run_records import RecordCache, RunRecords
from llmb_tui.watch.state import RunRecord


class History:
    """Computes a result again only if its record changes. Thread-safe; opens no connection."""

    def __init__(self, records: RunRecords, runs: Runs) -> None:
        self._records = records
        self._runs = runs
        self._results = RecordCache(RunResult)

    def all(self) -> tuple[RunResult, ...]:
        """Results of every run that can be read, newest first; no log is read again."""
        return self.of(self._records.all())

    def of(self, records: Iterable[RunRecord]) -> tuple[RunResult, ...]:
        """Results of these records, in the form of `all`."""
        return tuple(self._results.of(records))

    def result(self, run_id: str) -> RunResult:
        """Result of one run with all facts of its log. Raises LlmbError (exit code 1) if there is no such run."""
        run = self._runs.load(run_id)
        record = self._records.record(run)
        log = self._runs.folder(run_id) / record.state.log_name
        facts = read_log(log, run.log_format) if log.is_file() else kept_facts(log.parent)
        return RunResult(record, facts)

    def sources(self, result: RunResult) -> RunSources:
        """The sources of a difference for one run; `result` has its whole log. Raises LlmbError."""
        return RunSources(result.run, self._runs.script(result.id), result.facts)

    def first_of(self, configuration: Configuration) -> RunResult | None:
        """First finished run of a configuration, with all facts of its log; None without one."""
        for run in reversed(self._runs.all()):
            if configuration_of(run.plan) == configuration and self._records.record(run).state.stage == "done":
                return self.result(run.id)
        return None


class LossComparer:
    """Differences of losses from the first run of the same configuration. For one answer: it caches first runs."""

    def __init__(self, history: History) -> None:
        self._first_of = cache(history.first_of)

    def against_first(self, result: RunResult) -> LossDifference | None:
        """Difference for one run; None if it is the first, if that cannot be read, or if no losses can be compared."""
        try:
            first = self._first_of(result.configuration)
        except LlmbError:
            return None  # the log of another run
        return None if first is None else loss_difference(result, first)
