"""Life of a job: its wait in the queue, its batch script as a real process, its time limit, its end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from llmb_tui.demo.slurm import facts, notation
from llmb_tui.demo.slurm.job import CANCELLED, COMPLETED, FAILED, PENDING, RUNNING, TIMEOUT, DemoJob
from llmb_tui.demo.slurm.store import Store

LOOK_S = 0.1
"""Interval in which a waiting or running job reads its record, real seconds."""
OVERHEAD_S = 3.0
"""Real seconds that a job may exceed its time limit: starting processes takes equally long at any clock speed."""
NO_OUTPUT = (0, 53)
"""Exit code and signal that Slurm gives a job whose output file cannot be opened."""


class Script:
    """The batch script as a process that leads its own group, together with all its children.

    All of them inherit the writing end of a pipe, whose end shows that they have ended. Their process group does not
    show it, because it still contains zombies.
    """

    def __init__(self, store: Store, job: DemoJob, output: IO[bytes]) -> None:
        """Start the script on the first node of the job. Raises OSError."""
        script, environment = store.spooled(job.id)
        with script.open() as text:
            interpreter = text.readline()[2:].split()
        path = f"{store.root / 'node-bin'}:{environment.get('PATH', '')}"
        self._ended, writer = os.pipe()
        try:
            self.process = subprocess.Popen(
                [*interpreter, str(script)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=job.work_dir,
                env={**environment, "PATH": path, **job.variables()},
                start_new_session=True,
                pass_fds=(writer,),
            )
        finally:
            os.close(writer)

    def end(self) -> None:
        """Send SIGTERM to all processes, and SIGKILL to those that have not ended in time."""
        self._signal(signal.SIGTERM)
        select.select([self._ended], [], [], facts.KILL_WAIT_S)
        self.kill()

    def kill(self) -> None:
        """Send SIGKILL to all remaining processes."""
        self._signal(signal.SIGKILL)
        self.process.wait()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


def start_runner(store: Store, job_id: int, handle: int) -> None:
    """Start the detached process that lives as long as the job; it takes over the job's `alive` lock."""
    command = [sys.executable, "-S", "-E", str(Path(__file__).parents[1] / "command.py"), str(store.path), "runner"]
    with (store.folder(job_id) / "runner.log").open("ab") as log:
        subprocess.Popen(
            [*command, str(job_id)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            pass_fds=(handle,),
        )
    os.close(handle)


def main(store: Store, arguments: list[str]) -> int:
    """Run a batch job to its end."""
    job_id = int(arguments[0])
    if _wait_for_nodes(store, job_id):
        job = store.read(job_id)
        try:
            with Path(job.fill(job.output)).open("ab") as output:
                ended = _watch(store, job, Script(store, job, output), output)
        except OSError as problem:
            sys.stderr.write(f"{problem}\n")
            ended = NO_OUTPUT
        _finish(store, job_id, *ended)
    return 0


def status(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Exit code and signal of an ended process."""
    return (process.returncode, 0) if process.returncode >= 0 else (0, -process.returncode)


def cancel_notice(job: DemoJob, step: str = "") -> str:
    """Line that Slurm writes into the log of a job or step that it ends."""
    what, number = ("STEP", f"{job.id}.{step}") if step else ("JOB", str(job.id))
    why = " DUE TO TIME LIMIT" if job.state == TIMEOUT else ""
    where = f"{number} ON {job.node_names[0]} CANCELLED AT {notation.stamp(job.now())}"
    return f"slurmstepd: error: *** {what} {where}{why} ***\n"


def _wait_for_nodes(store: Store, job_id: int) -> bool:
    """Wait until the job has its nodes. False if it was cancelled before that."""
    while True:
        with store.locked():
            job = store.read(job_id)
            if job.state != PENDING:
                return False
            waits_s = (job.eligible - job.now()) / job.speed
            if not _depends(store, job) and waits_s <= 0 and _start(store, job):
                return True
        time.sleep(min(LOOK_S, max(waits_s, 0.005)) if waits_s > 0 else LOOK_S)


def _depends(store: Store, job: DemoJob) -> bool:
    """True if it waits for other jobs; it is cancelled if they can never succeed. Call it with the lock held."""
    how, *ids = job.dependency.split(":")
    others = [store.read(int(other)) for other in ids if (store.folder(int(other)) / "job.json").exists()]
    if how == "afterok" and any(not other.active and other.state != COMPLETED for other in others):
        job.state, job.reason = CANCELLED, "DependencyNeverSatisfied"
        job.close()
        store.write(job)
        return True
    waits = any(other.active for other in others)
    if waits and job.reason != "Dependency":
        job.reason = "Dependency"
        store.write(job)
    return waits


def _start(store: Store, job: DemoJob) -> bool:
    """Assign nodes to a job if enough are free; call it with the lock held."""
    busy = store.busy()
    free = [name for name in facts.NODES if name not in busy]
    fits = len(free) >= job.nodes
    if fits:
        job.node_names = free[: job.nodes]
        job.state, job.reason, job.started = RUNNING, "None", job.now()
    elif job.reason != "Resources":
        job.reason = "Resources"
    else:
        return False
    store.write(job)
    return fits


def _watch(store: Store, job: DemoJob, script: Script, output: IO[bytes]) -> tuple[int, int]:
    """Wait for the script, and end it if the job is cancelled or out of time. Returns exit code and signal."""
    limit = time.monotonic() + job.minutes * 60 / job.speed + OVERHEAD_S
    while True:
        with suppress(subprocess.TimeoutExpired):
            script.process.wait(LOOK_S)
            break
        if time.monotonic() > limit:
            _time_out(store, job.id)
        current = store.read(job.id)
        if current.state != RUNNING:
            output.write(cancel_notice(current).encode())
            output.flush()
            script.end()
            break
    script.kill()  # background processes end with the job
    return status(script.process)


def _time_out(store: Store, job_id: int) -> None:
    with store.change(job_id) as job:
        if job.state == RUNNING:
            job.state, job.reason, job.completing = TIMEOUT, "TimeLimit", True


def _finish(store: Store, job_id: int, exit_code: int, by_signal: int) -> None:
    with store.change(job_id) as job:
        if job.state == RUNNING:
            failed = bool(exit_code or by_signal)
            job.state, job.reason = (FAILED, "NonZeroExitCode") if failed else (COMPLETED, "None")
        job.exit_code, job.signal = exit_code, by_signal
        job.close()
