"""`KeptRuns`: the JSON objects of runs that are done, as they were made last, so that none is read and folded again.

They are believed as far as Python believes a `.pyc`: for the very files of the run's folder, by the very program. Only
runs that are done are kept: no rule of failures, which a person may change, speaks of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import llmb_tui
from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.store.files import write_atomic
from llmb_tui.watch.run_records import SETTLED_NS
from llmb_tui.watch.state import RunState

_Stamp = list[list[Any]]


class KeptRun(NamedTuple):
    """A run that is done."""

    files: _Stamp
    created_at: float
    document: dict[str, Any]


class KeptRuns:
    """Looks at every run's folder once, and reads none of its files."""

    def __init__(self, file: Path, directory: Path, threshold: float) -> None:
        """`directory`: with a folder for each run; `threshold`: the smallest ratio that passes."""
        self._file = file
        self._maker = [llmb_tui.__version__, _code(), threshold]
        self._stamps = _stamps(directory)
        before = self._read()
        self.done = {run_id: one for run_id, one in before.items() if self._stamps.get(run_id) == one.files}
        """By their ids, those whose folders are as they were."""
        self._changed = len(self.done) < len(before)

    def keep(self, run: Run, state: RunState, document: dict[str, Any]) -> None:
        """Keep a run if it is done. It was read after its folder was looked at."""
        files = self._stamps.get(run.id)
        if run.going or run.cancel or run.submission != "submitted" or state.stage != "done" or state.link_note:
            return
        if files and max(changed for *_, changed in files) < time.time_ns() - SETTLED_NS:
            self.done[run.id], self._changed = KeptRun(files, run.created_at, document), True

    def save(self) -> None:
        """Write them for the next program, if there is anything new; without room all runs are read again."""
        if self._changed:
            with contextlib.suppress(Trouble):
                write_atomic(self._file, json.dumps({"maker": self._maker, "runs": self.done}).encode())

    def _read(self) -> dict[str, KeptRun]:
        """Nothing where the file is damaged, or somebody else's."""
        try:
            found = json.loads(self._file.read_bytes() if self._file.is_file() else b"{}")
            if found.get("maker") != self._maker:
                return {}
            return {run_id: KeptRun(*one) for run_id, one in found["runs"].items()}
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return {}


def _code() -> list[int]:
    """What this program is made of: a checkout changes without another version."""
    changed = [file.stat().st_mtime_ns for file in Path(llmb_tui.__file__).parent.rglob("*.py")]
    return [len(changed), max(changed)]


def _stamps(directory: Path) -> dict[str, _Stamp]:
    """What changes with each file of a run, by its folder's name; a link is another file than what it leads to."""
    stamps = {}
    with contextlib.suppress(OSError):
        for folder in os.scandir(directory):
            with contextlib.suppress(OSError):
                if folder.is_dir(follow_symlinks=False):
                    stamps[folder.name] = sorted(map(_stamp, os.scandir(folder.path)))
    return stamps


def _stamp(file: os.DirEntry[str]) -> list[Any]:
    stat = file.stat(follow_symlinks=False)
    return [file.name, stat.st_mode, stat.st_ino, stat.st_size, stat.st_mtime_ns]
