"""`RunRecords`: every remembered run with its state, by what this machine has of it. The one cache of folded logs."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import ACCOUNTING, NETWORK, Runs
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.watch.line_reader import last_lines
from llmb_tui.watch.local_run import LocalRun
from llmb_tui.watch.state import RunRecord, RunState

SETTLED_NS = 1_000_000_000
"""A file or folder that changed more recently may have changed again without another time stamp."""

_FILES = ("beside.json", ACCOUNTING, NETWORK)
"""Files besides the logs on which a state depends."""
_Stamp = tuple[tuple[str, int, int], ...]
Value = TypeVar("Value")


@dataclass(slots=True)
class _CacheEntry:
    """What was read of a run, and the stamp that tells whether that still holds."""

    record: RunRecord
    local: LocalRun | None
    """Goes on reading where it stopped; None once no more will come."""
    stamp: _Stamp
    folder_ns: int
    """When files came to or left the folder; 0 where that is not certain."""


class RecordCache(Generic[Value]):
    """A value for the record of each run, computed again only when the record changes. Thread-safe."""

    def __init__(self, work_out: Callable[[RunRecord], Value]) -> None:
        self._work_out = work_out
        self._lock = threading.Lock()
        self._values: dict[str, tuple[RunRecord, Value]] = {}

    def of(self, records: Iterable[RunRecord]) -> list[Value]:
        """The values of these records, in order."""
        with self._lock:
            return [self._value(record) for record in records]

    def _value(self, record: RunRecord) -> Value:
        known = self._values.get(record.run.id)
        if known is None or known[0] is not record:
            known = self._values[record.run.id] = (record, self._work_out(record))
        return known[1]


class RunRecords:
    """Reads a log once, and then only what was appended while its run goes on. Thread-safe; asks no cluster."""

    def __init__(self, runs: Runs, threshold: float = THRESHOLD) -> None:
        self._runs = runs
        self._threshold = threshold
        self._lock = threading.Lock()
        self._cache: dict[str, _CacheEntry] = {}

    def all(self, cluster: str | None = None) -> tuple[RunRecord, ...]:
        """Every run that can be read, newest first; those of one cluster where it is named."""
        return tuple(self.record(run) for run in self._runs.all() if cluster in (None, run.cluster))

    def record(self, run: Run) -> RunRecord:
        """How a remembered run stands: the very object of the call before unless something changed."""
        folder = self._runs.folder(run.id)
        with self._lock:
            entry = self._cache.get(run.id)
            folder_ns, stamp = _look_into(folder, entry)
            if entry is None or stamp != entry.stamp or run != entry.record.run:
                entry = self._cache[run.id] = self._read(run, entry, stamp)
            entry.folder_ns = folder_ns
            return entry.record

    def last(self, run: Run) -> RunRecord:
        """How it stood when that was read last, without reading anything."""
        with self._lock:
            entry = self._cache.get(run.id)
        if entry is None:
            return RunRecord(run, RunState(run.id))
        return entry.record if entry.record.run == run else replace(entry.record, run=run)

    def last_lines(self, record: RunRecord, count: int) -> list[str]:
        """The last lines of the copy of a run's log, clean; none if there is no copy."""
        return last_lines(self._runs.folder(record.run.id) / record.state.log_name, count)

    def _read(self, run: Run, entry: _CacheEntry | None, stamp: _Stamp) -> _CacheEntry:
        local = entry.local if entry and run == entry.record.run and _grew(entry.stamp, stamp) else None
        local = local or LocalRun(self._runs, run, self._threshold)
        local.read_on("closed")
        record = RunRecord(run, local.state(), local.log_grew_at)
        if entry is not None and record == entry.record:
            record = entry.record
        return _CacheEntry(record, local if run.going else None, stamp, 0)


def _look_into(folder: Path, entry: _CacheEntry | None) -> tuple[int, _Stamp]:
    """When the folder changed, and what changes with the files in it that a state depends on.

    What another program or a person takes away meanwhile is not there.
    """
    stats: list[tuple[str, os.stat_result]] = []
    folder_ns = 0
    with contextlib.suppress(FileNotFoundError):
        folder_ns = os.stat(folder).st_mtime_ns
        if entry is not None and entry.folder_ns == folder_ns:
            names = [name for name, _, _ in entry.stamp]
        else:
            names = sorted(name for name in os.listdir(folder) if name.startswith("log") or name in _FILES)
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                stats.append((name, os.stat(f"{folder}/{name}")))
    settled = time.time_ns() - folder_ns > SETTLED_NS
    return folder_ns if settled else 0, tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def _grew(before: _Stamp, now: _Stamp) -> bool:
    """True if files at most became longer: then a log is read on where its reading stopped."""
    return [name for name, _, _ in before] == [name for name, _, _ in now] and all(
        old[1] <= new[1] for old, new in zip(before, now, strict=True)
    )
