"""`History`: the results of the runs that this machine remembers, each worked out once."""

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
from llmb_tui.errors import Trouble
from llmb_tui.launch.runs import Runs
from llmb_tui.watch.log_reader import kept_facts, read_log
from llmb_tui.watch.run_records import RecordCache, RunRecords
from llmb_tui.watch.state import RunRecord


class History:
    """Works out a result again only when its record is another. Thread-safe; takes no connection."""

    def __init__(self, records: RunRecords, runs: Runs) -> None:
        self._records = records
        self._runs = runs
        self._results = RecordCache(RunResult)

    def all(self) -> tuple[RunResult, ...]:
        """Of every run that can be read, newest first; no log is read again for it."""
        return self.of(self._records.all())

    def of(self, records: Iterable[RunRecord]) -> tuple[RunResult, ...]:
        """Of these, as `all` has them."""
        return tuple(self._results.of(records))

    def result(self, run_id: str) -> RunResult:
        """Of one run, with all that its log says. Raises Trouble (exit code 1) if there is no such run."""
        run = self._runs.load(run_id)
        record = self._records.record(run)
        log = self._runs.folder(run_id) / record.state.log_name
        facts = read_log(log, run.log_format) if log.is_file() else kept_facts(log.parent)
        return RunResult(record, facts)

    def sources(self, result: RunResult) -> RunSources:
        """The sources of a difference for one run; `result` has its whole log. Raises Trouble."""
        return RunSources(result.run, self._runs.script(result.id), result.facts)

    def first_of(self, configuration: Configuration) -> RunResult | None:
        """The first run of it that came to its end, with all that its log says."""
        for run in reversed(self._runs.all()):
            if configuration_of(run.plan) == configuration and self._records.record(run).state.stage == "done":
                return self.result(run.id)
        return None


class Losses:
    """How losses differ from those of the first run of the same configuration. For one answer: firsts are kept."""

    def __init__(self, history: History) -> None:
        self._first_of = cache(history.first_of)

    def against_first(self, result: RunResult) -> LossDifference | None:
        """None where it is itself the first, none can be read, or there is nothing to hold against each other."""
        try:
            first = self._first_of(result.configuration)
        except Trouble:
            return None  # the log of another run
        return None if first is None else loss_difference(result, first)
