"""`Store`: the state directory of the simulated Slurm. One JSON file for each job, one lock for all of them.

Each job that is not finished has a process that holds the lock of its `alive` file; when the machine took
that process away, whoever looks next finds the lock free and marks the job NODE_FAIL.
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
    """The jobs and settings of one simulated cluster."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings: dict[str, float | str] = json.loads((path / "settings.json").read_text())

    @property
    def speed(self) -> float:
        """How much faster than real time the clock of a new job runs."""
        return float(self.settings["speed"])

    @property
    def root(self) -> Path:
        """The cluster's root folder."""
        return self.path.parent

    def folder(self, job_id: int) -> Path:
        """The spool folder of a job: its record, script and environment."""
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
        """A job to be changed under the lock; it is written when the block ends well."""
        with self.locked():
            job = self.read(job_id)
            yield job
            self.write(job)

    def write(self, job: DemoJob) -> None:
        """Write a job's record; call it with the lock held."""
        _write_json(self.folder(job.id) / "job.json", job.record())

    def add(self, job: DemoJob) -> tuple[DemoJob, int]:
        """Give a job the next number and write it.

        Returns it with the open file that proves that the job is alive: hand that to the job's process.
        """
        with self.locked():
            job.id = self.next_id()
            self.folder(job.id).mkdir(mode=0o700)
            handle = self._alive(job.id)
            fcntl.flock(handle, fcntl.LOCK_EX)
            self.write(job)
        return job, handle

    def next_id(self) -> int:
        """The number of the next job."""
        return max((int(folder.name) for folder in (self.path / "jobs").iterdir()), default=0) + 1

    def spool(self, job_id: int, script: str) -> None:
        """Keep a batch script and the environment it was submitted from."""
        _write_json(self.folder(job_id) / "environment.json", dict(os.environ))
        path = self.folder(job_id) / "slurm_script"
        path.write_text(script, encoding="utf-8", errors="surrogateescape")
        path.chmod(0o700)

    def spooled(self, job_id: int) -> tuple[Path, dict[str, str]]:
        """A batch script and the environment it was submitted from."""
        folder = self.folder(job_id)
        return folder / "slurm_script", json.loads((folder / "environment.json").read_text())

    def read(self, job_id: int) -> DemoJob:
        """The record of a job as it was last written."""
        return DemoJob.of(json.loads((self.folder(job_id) / "job.json").read_text()))

    def all(self) -> list[DemoJob]:
        """Every job, oldest first; jobs whose process has vanished are marked first."""
        with self.locked():
            return [self._settled(self.read(number)) for number in sorted(self._ids())]

    def remembered(self) -> list[DemoJob]:
        """The jobs that the controller still knows: it forgets finished ones after a while."""
        return [
            job for job in self.all() if job.active or (job.closed and time.time() - job.closed < facts.MIN_JOB_AGE_S)
        ]

    def busy_now(self) -> set[str]:
        """Nodes that have a job."""
        with self.locked():
            return self.busy()

    def busy(self) -> set[str]:
        """The same, while the lock is held."""
        jobs = (self._settled(self.read(number)) for number in self._ids())
        return {name for job in jobs if job.active for name in job.node_names}

    def fault(self, name: str) -> str | None:
        """The text of a fault that is switched on, else None."""
        return faults.text(self.path, name)

    def is_alive(self, job_id: int) -> bool:
        """True while the process of the job lives."""
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
    """Make a state directory, or take over the one that is there, with these settings.

    Jobs that another version of llmb-tui left in a form that is not understood are put aside.
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
