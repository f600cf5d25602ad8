"""`RunRecords`: every remembered run with its state, by the data on this machine. The only cache of folded logs."""

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
"""A file or folder that changed more recently may have changed again with the same time stamp."""

_FILES = ("beside.json", ACCOUNTING, NETWORK)
"""Files besides the logs that a state depends on."""
_Stamp = tuple[tuple[str, int, int], ...]
Value = TypeVar("Value")


@dataclass(slots=True)
class _CacheEntry:
    """Data read of a run, and the stamp that shows whether it is still valid."""

    record: RunRecord
    local: LocalRun | None
    """Continues reading at its last position; None if no more data will come."""
    stamp: _Stamp
    folder_ns: int
    """Time of the last change of the folder's listing; 0 if that is uncertain."""


class RecordCache(Generic[Value]):
    """One value for each run's record, computed again only if the record changes. Thread-safe."""

    def __init__(self, work_out: Callable[[RunRecord], Value]) -> None:
        self._work_out = work_out
        self._lock = threading.Lock()
        self._values: dict[str, tuple[RunRecord, Value]] = {}

    def of(self, records: Iterable[RunRecord]) -> list[Value]:
        """Values of these records, in order."""
        with self._lock:
            return [self._value(record) for record in records]

    def _value(self, record: RunRecord) -> Value:
        known = self._values.get(record.run.id)
        if known is None or known[0] is not record:
            known = self._values[record.run.id] = (record, self._work_out(record))
        return known[1]


class RunRecords:
    """Reads a log once, and then only appended data while its run is active. Thread-safe; asks no cluster."""

    def __init__(self, runs: Runs, threshold: float = THRESHOLD) -> None:
        self._runs = runs
        self._threshold = threshold
        self._lock = threading.Lock()
        self._cache: dict[str, _CacheEntry] = {}

    def all(self, cluster: str | None = None) -> tuple[RunRecord, ...]:
        """Every run that can be read, newest first; only those of one cluster if it is named."""
        return tuple(self.record(run) for run in self._runs.all() if cluster in (None, run.cluster))

    def record(self, run: Run) -> RunRecord:
        """Current record of a run; the same object as in the previous call unless something changed."""
        folder = self._runs.folder(run.id)
        with self._lock:
            entry = self._cache.get(run.id)
            folder_ns, stamp = _look_into(folder, entry)
            if entry is None or stamp != entry.stamp or run != entry.record.run:
                entry = self._cache[run.id] = self._read(run, entry, stamp)
            entry.folder_ns = folder_ns
            return entry.record

    def last(self, run: Run) -> RunRecord:
        """Record of the last reading, without reading anything."""
        with self._lock:
            entry = self._cache.get(run.id)
        if entry is None:
            return RunRecord(run, RunState(run.id))
        return entry.record if entry.record.run == run else replace(entry.record, run=run)

    def last_lines(self, record: RunRecord, count: int) -> list[str]:
        """Last lines of the copy of a run's log, clean; empty if there is no copy."""
        return last_lines(self._runs.folder(record.run.id) / record.state.log_name, count)

    def _read(self, run: Run, entry: _CacheEntry | None, stamp: _Stamp) -> _CacheEntry:
        local = entry.local if entry and run == entry.record.run and _grew(entry.stamp, stamp) else None
        local = local or LocalRun(self._runs, run, self._threshold)
        local.read_on("closed")
        record = RunRecord(run, local.state(), local.log_grew_at)
        if entry is not None and record == entry.record:
            record = entry.record
        return _CacheEntry(record, local if run.is_active else None, stamp, 0)


def _look_into(folder: Path, entry: _CacheEntry | None) -> tuple[int, _Stamp]:
    """Time of the folder's last change, and the stamps of its files that a state depends on.

    Files that are removed during the call are left out.
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
    """Whether the same files only became longer, so that reading can continue at its last position."""
    return [name for name, _, _ in before] == [name for name, _, _ in now] and all(
        old[1] <= new[1] for old, new in zip(before, now, strict=True)
    )
