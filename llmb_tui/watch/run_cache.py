"""`RunCache`: the JSON objects of finished runs, stored so that their logs are not read and folded again.

An entry is valid under the same conditions as a Python `.pyc`: the same files in the run's folder, the same program.
Only runs in state `done` are kept, because the failure rules, which a user may change, do not affect them.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import llmb_tui
from llmb_tui.errors import LlmbError
from llmb_tui.language.json_text import parse_json
from llmb_tui.launch.run import Run
from llmb_tui.store.files import write_atomic
from llmb_tui.watch.run_records import SETTLED_NS
from llmb_tui.watch.state import RunState

_Stamp = list[list[Any]]


class KeptRun(NamedTuple):
    """A finished run."""

    files: _Stamp
    created_at: float
    document: dict[str, Any]


class RunCache:
    """Reads the listing of every run's folder once, and none of its files."""

    def __init__(self, file: Path, directory: Path, threshold: float) -> None:
        """`directory`: contains one folder per run; `threshold`: the smallest ratio that passes."""
        self._file = file
        self._maker = [llmb_tui.__version__, _code(), threshold]
        self._stamps = _stamps(directory)
        before = self._read()
        self.done = {run_id: entry for run_id, entry in before.items() if self._stamps.get(run_id) == entry.files}
        """Valid entries by run id: the files in their folders are unchanged."""
        self._changed = len(self.done) < len(before)

    def keep(self, run: Run, state: RunState, document: dict[str, Any]) -> None:
        """Keep a run if it is done. The caller reads the run after its folder was listed here."""
        files = self._stamps.get(run.id)
        if run.is_active or run.cancel or run.submission != "submitted" or state.stage != "done" or state.link_note:
            return
        if files and max(changed for *_, changed in files) < time.time_ns() - SETTLED_NS:
            self.done[run.id], self._changed = KeptRun(files, run.created_at, document), True

    def save(self) -> None:
        """Write the entries for the next program, if any changed; without disk space all runs are read again."""
        if self._changed:
            with contextlib.suppress(LlmbError):
                write_atomic(self._file, json.dumps({"maker": self._maker, "runs": self.done}).encode())

    def _read(self) -> dict[str, KeptRun]:
        """Stored entries; empty if the file is damaged or was written by another version."""
        try:
            document = parse_json(self._file.read_bytes() if self._file.is_file() else b"{}")
            if document.get("maker") != self._maker:
                return {}
            return {run_id: KeptRun(*entry) for run_id, entry in document["runs"].items()}
        except (OSError, ValueError, TypeError, LookupError, AttributeError):
            return {}


def _code() -> list[int]:
    """Stamp of the program's own files: a checkout changes without a new version."""
    changed = [file.stat().st_mtime_ns for file in Path(llmb_tui.__file__).parent.rglob("*.py")]
    return [len(changed), max(changed)]


def _stamps(directory: Path) -> dict[str, _Stamp]:
    """Stamps of the files in each run's folder, by folder name; a link is stamped itself, not its target."""
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
