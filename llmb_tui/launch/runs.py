"""`Runs`: what this machine remembers of runs, one folder each."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from llmb_tui.errors import Trouble
from llmb_tui.launch.run import Run
from llmb_tui.store import documents
from llmb_tui.store.files import make_private_directory, write_atomic
from llmb_tui.store.paths import Places
from llmb_tui.text import clean_line

_ID = re.compile(r"[a-z0-9]{1,64}")


class Runs:
    """A run's folder holds `run.json`, `script.sh` as it was submitted, and `log`, the copy of its training log."""

    def __init__(self, places: Places) -> None:
        self._directory = places.runs

    def folder(self, run_id: str) -> Path:
        """Folder of a run, which need not exist. Raises Trouble (exit code 1) for what cannot be a run id."""
        if not _ID.fullmatch(run_id):
            raise Trouble(
                f"{clean_line(run_id)!r} is not the id of a run.", fix="`llmb-tui jobs` lists runs.", exit_code=1
            )
        return self._directory / run_id

    def save(self, run: Run) -> None:
        """Write the run; it is on the disk when this returns."""
        documents.save(self.folder(run.id) / "run.json", run)

    def save_script(self, run_id: str, script: str) -> None:
        """Keep the batch script beside the run."""
        write_atomic(self.folder(run_id) / "script.sh", script.encode())

    def has(self, run_id: str) -> bool:
        """True if the run was ever saved here."""
        return (self.folder(run_id) / "run.json").is_file()

    def load(self, run_id: str) -> Run:
        """Read a run. Raises Trouble: exit code 1 if there is none, 2 if its file cannot be read."""
        if not self.has(run_id):
            raise Trouble(f"There is no run {run_id}.", fix="`llmb-tui jobs` lists runs.", exit_code=1)
        return documents.load(self.folder(run_id) / "run.json", Run)

    def all(self) -> tuple[Run, ...]:
        """Every run that can be read, newest first. What cannot be read is in `unreadable`."""
        return tuple(sorted(self._read()[0], key=lambda run: run.created_at, reverse=True))

    def unreadable(self) -> tuple[Trouble, ...]:
        """Why some runs are missing from `all`, one for each."""
        return tuple(self._read()[1])

    @contextlib.contextmanager
    def lock(self, run_id: str, *, wait: bool = True) -> Iterator[bool]:
        """Hold the run for this thread alone, among all processes here; it is free again when the process ends.

        Yields False, without holding it, when another has it and `wait` is False.
        """
        folder = self.folder(run_id)
        make_private_directory(folder)
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(handle)

    def _read(self) -> tuple[list[Run], list[Trouble]]:
        runs, troubles = [], []
        for path in self._directory.glob("*/run.json"):
            try:
                runs.append(self.load(path.parent.name))
            except Trouble as trouble:
                troubles.append(trouble)
        return runs, troubles
