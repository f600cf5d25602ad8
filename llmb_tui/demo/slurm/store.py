"""`Store`: state directory of the simulated Slurm, with one JSON file for each job and one lock for all.

Each active job has a process that holds the lock of its `alive` file; if that process has vanished, the next reader
finds the lock free and marks the job NODE_FAIL.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from llmb_tui.demo import faults
from llmb_tui.demo.slurm import facts
from llmb_tui.demo.slurm.job import NODE_FAIL, DemoJob


class Store:
    """Jobs and settings of one simulated cluster."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings: dict[str, float | str] = json.loads((path / "settings.json").read_text())

    @property
    def speed(self) -> float:
        """Factor by which the clock of a new job is faster than real time."""
        return float(self.settings["speed"])

    @property
    def root(self) -> Path:
        """Root folder of the cluster."""
        return self.path.parent

    def folder(self, job_id: int) -> Path:
        """Spool folder of a job: its record, script and environment."""
        return self.path / "jobs" / str(job_id)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the state. It does not nest."""
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def change(self, job_id: int) -> Iterator[DemoJob]:
        """Job to change under the lock; it is written if the block succeeds."""
        with self.locked():
            job = self.read(job_id)
            yield job
            self.write(job)

    def write(self, job: DemoJob) -> None:
        """Write a job's record; call it with the lock held."""
        _write_json(self.folder(job.id) / "job.json", job.record())

    def add(self, job: DemoJob) -> tuple[DemoJob, int]:
        """Assign the next id to a job, and write it.

        Returns it with the open file that proves that the job is alive: pass that to the job's process.
        """
        with self.locked():
            job.id = self.next_id()
            self.folder(job.id).mkdir(mode=0o700)
            handle = self._alive(job.id)
            fcntl.flock(handle, fcntl.LOCK_EX)
            self.write(job)
        return job, handle

    def next_id(self) -> int:
        """Id of the next job."""
        return max((int(folder.name) for folder in (self.path / "jobs").iterdir()), default=0) + 1

    def spool(self, job_id: int, script: str) -> None:
        """Store a batch script and the environment of its submission."""
        _write_json(self.folder(job_id) / "environment.json", dict(os.environ))
        path = self.folder(job_id) / "slurm_script"
        path.write_text(script, encoding="utf-8", errors="surrogateescape")
        path.chmod(0o700)

    def spooled(self, job_id: int) -> tuple[Path, dict[str, str]]:
        """Batch script and the environment of its submission."""
        folder = self.folder(job_id)
        return folder / "slurm_script", json.loads((folder / "environment.json").read_text())

    def read(self, job_id: int) -> DemoJob:
        """Record of a job, as it was last written."""
        return DemoJob.of(json.loads((self.folder(job_id) / "job.json").read_text()))

    def all(self) -> list[DemoJob]:
        """All jobs, oldest first; jobs whose process has vanished are marked before."""
        with self.locked():
            return [self._settled(self.read(number)) for number in sorted(self._ids())]

    def remembered(self) -> list[DemoJob]:
        """Jobs that the controller still knows: it forgets finished ones after a while."""
        return [
            job for job in self.all() if job.active or (job.closed and time.time() - job.closed < facts.MIN_JOB_AGE_S)
        ]

    def busy_now(self) -> set[str]:
        """Nodes with a job."""
        with self.locked():
            return self.busy()

    def busy(self) -> set[str]:
        """Nodes with a job; call it with the lock held."""
        jobs = (self._settled(self.read(number)) for number in self._ids())
        return {name for job in jobs if job.active for name in job.node_names}

    def fault(self, name: str) -> str | None:
        """Text of an active fault, else None."""
        return faults.text(self.path, name)

    def is_alive(self, job_id: int) -> bool:
        """True while the job's process lives."""
        handle = self._alive(job_id)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(handle)
        return False

    def _settled(self, job: DemoJob) -> DemoJob:
        if not job.active or self.is_alive(job.id):
            return job
        job.state, job.reason = NODE_FAIL, "NodeDown"
        job.close()
        self.write(job)
        return job

    def _alive(self, job_id: int) -> int:
        return os.open(self.folder(job_id) / "alive", os.O_RDWR | os.O_CREAT, 0o600)

    def _ids(self) -> list[int]:
        return [int(entry.name) for entry in (self.path / "jobs").iterdir() if (entry / "job.json").exists()]


def create(path: Path, settings: Mapping[str, float | str]) -> Store:
    """Make a state directory, or use an existing one, with these settings.

    Jobs that another version of llmb-tui stored in an unknown form are put aside.
    """
    for folder in (path, path / "jobs", faults.folder(path)):
        folder.mkdir(mode=0o700, exist_ok=True)
    _write_json(path / "settings.json", settings)
    store = Store(path)
    try:
        store.all()
    except (KeyError, TypeError, ValueError):
        (path / "jobs").rename(path / f"jobs-put-aside-{time.time_ns()}")
        (path / "jobs").mkdir(mode=0o700)
    return store


def _write_json(path: Path, document: Mapping[str, object]) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(document))
    fresh.replace(path)
