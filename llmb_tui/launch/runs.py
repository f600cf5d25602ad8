"""`Runs`: the records of runs on this machine, one folder for each run."""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llmb_tui.cluster.job import Job
from llmb_tui.errors import LlmbError, error_with_remedy
from llmb_tui.language.text import clean_line
from llmb_tui.launch.run import Cancel, Run
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import OLD_PROCEDURES
from llmb_tui.store import documents
from llmb_tui.store.files import exclusive_lock, explained_errors, text_in, write_atomic
from llmb_tui.store.paths import UserPaths

ACCOUNTING = "accounting.txt"
"""File in a run's folder: Slurm's accounting of its jobs, once they have ended."""
NETWORK = "network.txt"
"""File in a run's folder: NCCL's network lines by node, once its jobs have ended."""
_ID = re.compile(r"[a-z0-9]{1,64}")
_Stamp = tuple[int, ...]


def _migrate(document: dict[str, Any]) -> dict[str, Any]:
    """Rename the procedure in a document of an older version, which used other ids for two of them."""
    name = document.get("procedure")
    return document | {"procedure": OLD_PROCEDURES.get(name, name)} if isinstance(name, str) else document


class Runs:
    """Records of runs. A folder holds `run.json`, `script.sh` as submitted, and `log`, the copy of the training log.

    Thread-safe. Keep one instance to list the runs repeatedly: it reads only changed files.
    """

    def __init__(self, places: UserPaths) -> None:
        self.directory = places.runs
        """Directory with a folder for each run."""
        self._reading = threading.Lock()
        self.skipped_ids: Container[str] = ()
        """Ids that listings leave out, because the caller knows these runs already."""
        self._cache: dict[str, tuple[_Stamp, Run | LlmbError]] = {}

    def folder(self, run_id: str) -> Path:
        """Folder of a run, which need not exist. Raises LlmbError (exit code 1) for an invalid run id."""
        if not _ID.fullmatch(run_id):
            raise LlmbError(f"{clean_line(run_id)!r} is not a run id.", fix="`llmb-tui jobs` lists runs.", exit_code=1)
        return self.directory / run_id

    def save(self, run: Run) -> None:
        """Write the run; it is on the disk when this returns."""
        documents.save(self.folder(run.id) / "run.json", run)

    def save_script(self, run_id: str, script: str) -> None:
        """Store the batch script in the run's folder."""
        write_atomic(self.folder(run_id) / "script.sh", script.encode())

    def script(self, run_id: str) -> str:
        """Stored batch script; empty if there is none."""
        return text_in(self.folder(run_id) / "script.sh")

    def has(self, run_id: str) -> bool:
        """True if the run was saved on this machine."""
        path = self.folder(run_id) / "run.json"
        with explained_errors("read", path):
            return path.is_file()

    def forget(self, run_id: str, *, mine: bool) -> None:
        """Remove the remains of a run that was never saved; its script only if this thread holds the lock (`mine`).

        A folder that contains anything else is kept.
        """
        folder = self.folder(run_id)
        with contextlib.suppress(OSError):
            if mine:
                (folder / "script.sh").unlink(missing_ok=True)
            if os.listdir(folder) == ["lock"]:
                (folder / "lock").unlink()
            folder.rmdir()

    def load(self, run_id: str) -> Run:
        """Read a run. Raises LlmbError: exit code 1 if there is none, 2 if its file cannot be read."""
        _refuse_links(self.folder(run_id))
        if not self.has(run_id):
            raise LlmbError(f"There is no run {run_id}.", fix="`llmb-tui jobs` lists runs.", exit_code=1)
        path = self.folder(run_id) / "run.json"
        run = documents.load(path, Run, _migrate, only_finite=True)
        if why := _damage(run, run_id):
            raise LlmbError(f"{path} cannot be right.", why, "Restore the file from a backup, or move it away.")
        return run

    def all(self) -> tuple[Run, ...]:
        """Every readable run, newest first. `unreadable` has the errors of the others."""
        return self.listing()[0]

    def unreadable(self) -> tuple[LlmbError, ...]:
        """Errors of the runs that `all` leaves out, one for each."""
        return self.listing()[1]

    def listing(self) -> tuple[tuple[Run, ...], tuple[LlmbError, ...]]:
        """Readable runs and errors, by one look at the folders."""
        entries = self._load_all()
        runs = [run for run in entries if isinstance(run, Run)]
        errors = tuple(error for error in entries if isinstance(error, LlmbError))
        return tuple(sorted(runs, key=lambda run: run.created_at, reverse=True)), errors

    def save_states(self, run: Run, jobs: Sequence[Job]) -> Run | None:
        """Save changed job states of a run, unless another thread or process here is working on the run.

        Returns the saved run, or None. If the run has become active again, data of its earlier end is removed.
        """
        now = time.time()

        def with_states(run: Run) -> Run:
            for job in jobs:
                run = run.seen(job, now)
            return run

        saved = self._change(run.id, with_states) if with_states(run) != run else None
        if saved is not None and saved.is_active and not run.is_active:
            for name in (ACCOUNTING, NETWORK):
                with explained_errors("remove", self.folder(run.id) / name):
                    (self.folder(run.id) / name).unlink(missing_ok=True)
        return saved

    def save_log_read(self, run_id: str) -> None:
        """Save that a run's log was copied to its end, unless another thread or process is working on the run."""
        self._change(run_id, lambda now: replace(now, log_read=True))

    def save_cancel(self, run_id: str, cancel: Cancel | None) -> None:
        """Save an unanswered cancel, or None to remove it."""
        self._change(run_id, lambda now: replace(now, cancel=cancel), wait=True)

    def _change(self, run_id: str, change: Callable[[Run], Run], *, wait: bool = False) -> Run | None:
        with self.lock(run_id, wait=wait) as mine:
            if not mine:
                return None
            run = change(self.load(run_id))
            self.save(run)
            return run

    @contextlib.contextmanager
    def lock(self, run_id: str, *, wait: bool = True) -> Iterator[bool]:
        """Hold the run for this thread alone, among all processes here; the lock ends with the process.

        Yields False, without the lock, if another thread or process holds it and `wait` is False.
        """
        folder = self.folder(run_id)
        _refuse_links(folder)
        with exclusive_lock(folder, wait=wait) as mine:
            yield mine

    def _load_all(self) -> list[Run | LlmbError]:
        """Every run, or why it cannot be read; an unchanged file is not read again."""
        with self._reading:
            cache, self._cache = self._cache, {}
            for folder in self._folders():
                stamp, before = _stamp(folder), cache.get(folder)
                if before is not None and before[0] == stamp:
                    self._cache[folder] = before
                elif stamp is not None:
                    self._cache[folder] = (stamp, self._try(Path(folder).name))
            return [run for _, run in self._cache.values()]

    def _folders(self) -> list[str]:
        try:
            return [entry.path for entry in os.scandir(self.directory) if entry.name not in self.skipped_ids]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise error_with_remedy(error, "read the runs in", self.directory) or error from error

    def _try(self, run_id: str) -> Run | LlmbError:
        try:
            return self.load(run_id)
        except LlmbError as error:
            # For a folder whose name is not a run id, `load` does not name the path.
            return LlmbError(error.what, f"{self.directory / run_id}", error.fix) if error.exit_code == 1 else error


def impossible_count(plan: Plan) -> str:
    """A number of the plan that is missing or out of range, as a sentence; empty if all are valid."""
    layout = plan.parallelism
    counts = {
        "scale": plan.selection.scale,
        "steps": plan.steps,
        "nodes": plan.nodes,
        "gpus_per_node": plan.gpus_per_node,
        **{
            name: getattr(layout, name)
            for name in ("tp", "pp", "cp", "ep", "dp", "mbs", "gbs", "ga", "seq_len", "layers")
        },
    }
    wrong = [name for name, count in counts.items() if count is None or not 1 <= count < 1 << 53]
    return f"{wrong[0]} is {str(counts[wrong[0]])[:40]}." if wrong else ""


def _damage(run: Run, run_id: str) -> str:
    """Why a record of the right form cannot be valid; empty for a valid one."""
    if run.id != run_id:
        return f"It is in the folder {run_id}, but names run {clean_line(run.id)[:80]}."
    if wrong := impossible_count(run.plan):
        return wrong
    if run.submission == "submitted" and not run.job_ids:
        return "It is stored as submitted, without a job."
    estimate = run.plan.estimate
    times = [run.created_at, run.submitted_at or 0.0, estimate.step_time_s if estimate else 1.0]
    return "" if all(map(math.isfinite, times)) and times[-1] > 0 else "One of its times is not a valid number."


def _refuse_links(folder: Path) -> None:
    """Raise LlmbError for a link: only files in the run's own folder are read or written."""
    with explained_errors("read", folder), contextlib.suppress(FileNotFoundError):
        paths = [folder] if folder.is_symlink() else [folder / name for name in os.listdir(folder)]
        link = next((path for path in paths if path.is_symlink()), None)
        if link is not None:
            raise LlmbError(
                f"{link} is a symbolic link, which this program never makes in a run's folder.",
                f"It points to {os.readlink(link)}; nothing there is read, written or removed.",
                "Replace the link with its target, or remove it.",
            )


def _stamp(folder: str) -> _Stamp | None:
    """Value that changes whenever a run is saved or its folder gets a file; None if there is no run.

    Empty if it cannot be determined.
    """
    try:
        if os.path.islink(folder):
            return ()
        stat = os.stat(f"{folder}/run.json")
        return stat.st_ino, stat.st_size, stat.st_mtime_ns, os.stat(folder).st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return () if os.path.islink(f"{folder}/run.json") else None
    except OSError:
        return ()
