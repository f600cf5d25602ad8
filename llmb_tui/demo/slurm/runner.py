"""The life of a job: its turn in the queue, its batch script as a real process, its time limit, its end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Literal

from llmb_tui.demo.slurm import facts, times
from llmb_tui.demo.slurm.environment import job_environment
from llmb_tui.demo.slurm.group import Group
from llmb_tui.demo.slurm.job import CANCELLED, COMPLETED, FAILED, PENDING, RUNNING, TIMEOUT, Job, Step
from llmb_tui.demo.slurm.store import Store

LOOK_S = 0.1
"""How often a waiting or running job looks at its record, real seconds."""
OVERHEAD_S = 3.0
"""Real seconds that a job may use beyond its time limit: starting processes takes as long at any clock speed."""
REQUEUE_WAIT_S = 120.0
"""A requeued job may not start earlier, simulated seconds."""
NO_OUTPUT = (0, 53)
"""Exit code and signal that Slurm gives a job whose output file cannot be opened."""


def start_runner(store: Store, job_id: int, handle: int, *, again: bool = False) -> None:
    """Start the process that lives as long as the job, detached; it takes over the job's `alive` lock."""
    command = [sys.executable, "-S", "-E", str(Path(__file__).parents[1] / "command.py"), str(store.path), "runner"]
    with (store.folder(job_id) / "runner.log").open("ab") as log:
        subprocess.Popen(
            [*command, str(job_id), *(["again"] if again else [])],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
            pass_fds=(handle,),
        )
    os.close(handle)


def main(store: Store, arguments: list[str]) -> int:
    """Run a batch job to its end, and again as long as it is requeued."""
    job_id = int(arguments[0])
    if arguments[1:] == ["again"]:
        with store.change(job_id) as job:
            _put_back(job)
    while queue(store, job_id):
        if not _run(store, store.read(job_id)):
            break
    return 0


def queue(store: Store, job_id: int) -> bool:
    """Wait until the job has its nodes. False when it was cancelled before that."""
    while True:
        with store.locked():
            job = store.read(job_id)
            if job.state != PENDING:
                return False
            taken = store.busy() if job.now() >= job.eligible else None
            if taken is not None:
                free = [name for name in facts.NODES if name not in taken]
                if len(free) >= job.nodes:
                    job.node_names = free[: job.nodes]
                    job.state, job.reason, job.started = RUNNING, "None", job.now()
                    store.write(job)
                    return True
                if job.reason != "Resources":
                    job.reason = "Resources"
                    store.write(job)
        waits = (job.eligible - job.now()) / job.speed
        time.sleep(min(LOOK_S, max(waits, 0.005)) if taken is None else LOOK_S)


def watch(store: Store, job: Job, group: Group, output: IO[bytes] | None) -> tuple[int, int]:
    """Wait for the processes that are the job; end them when it is cancelled, requeued or out of time.

    The reason is written to `output` first, in Slurm's words. Answers with exit code and signal.
    """
    limit = time.monotonic() + job.minutes * 60 / job.speed + OVERHEAD_S
    while True:
        with suppress(subprocess.TimeoutExpired):
            group.process.wait(LOOK_S)
            break
        why = _why_ended(store, job.id, out_of_time=time.monotonic() > limit)
        if why is not None:
            if output:
                output.write(_notice("JOB", str(job.id), job, why).encode())
                output.flush()
            group.end(facts.KILL_WAIT_S)
            break
    group.kill()  # what the script left in the background ends with the job
    return status(group.process)


def finish(store: Store, job_id: int, exit_code: int, by_signal: int) -> bool:
    """Write how the job ended. True when it is to run again."""
    with store.change(job_id) as job:
        if job.requeue_wanted and job.state == RUNNING:
            _put_back(job)
            return True
        if job.state == RUNNING:
            job.state = FAILED if exit_code or by_signal else COMPLETED
            job.reason = "NonZeroExitCode" if job.state == FAILED else "None"
        job.exit_code, job.signal = exit_code, by_signal
        job.close()
        for step in job.steps:
            if step.ended is None:
                step.ended, step.exit_code, step.signal = job.ended, exit_code, by_signal
                step.state = CANCELLED if job.state in (CANCELLED, TIMEOUT) else job.state
    return False


def status(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Exit code and signal of a process that has ended."""
    return (process.returncode, 0) if process.returncode >= 0 else (0, -process.returncode)


def step_notice(store: Store, job: Job, step: str) -> str:
    """The line that Slurm writes into the log of a step that is ended with its job."""
    current = store.read(job.id)
    why = " DUE TO TIME LIMIT" if current.state == TIMEOUT else " DUE TO JOB REQUEUE" if current.requeue_wanted else ""
    return _notice("STEP", f"{job.id}.{step}", job, why)


def _notice(what: str, number: str, job: Job, why: str) -> str:
    node = job.node_names[0]
    return f"slurmstepd: error: *** {what} {number} ON {node} CANCELLED AT {times.stamp(job.now())}{why} ***\n"


def _why_ended(store: Store, job_id: int, *, out_of_time: bool) -> str | None:
    job = store.read(job_id)
    if job.state == CANCELLED:
        return ""
    if job.requeue_wanted:
        return " DUE TO JOB REQUEUE"
    if not out_of_time:
        return None
    with store.change(job_id) as job:
        if job.state == RUNNING:
            job.state, job.reason, job.completing = TIMEOUT, "TimeLimit", True
    return " DUE TO TIME LIMIT"


def _put_back(job: Job) -> None:
    job.state, job.reason, job.requeue_wanted, job.completing = PENDING, "BeginTime", False, False
    job.eligible = job.now() + REQUEUE_WAIT_S
    job.started = job.ended = job.closed = job.cancelled_by = None
    job.node_names, job.steps, job.exit_code, job.signal = [], [], 0, 0
    job.restarts += 1


def _run(store: Store, job: Job) -> bool:
    """Run the batch script once. True when the job is to run again."""
    with store.change(job.id) as changed:
        changed.steps.append(Step("batch", "batch", nodes=1, tasks=1, started=changed.now()))
    mode: Literal["ab", "wb"] = "ab" if job.append or job.restarts else "wb"
    try:
        with ExitStack() as files:
            output = files.enter_context(Path(job.fill(job.output)).open(mode))
            error = files.enter_context(Path(job.fill(job.error)).open(mode)) if job.error else output
            ended = watch(store, job, _start(store, job, output, error), error)
    except OSError as problem:
        sys.stderr.write(f"{problem}\n")
        return finish(store, job.id, *NO_OUTPUT)
    return finish(store, job.id, *ended)


def _start(store: Store, job: Job, output: IO[bytes], error: IO[bytes]) -> Group:
    script, arguments, submitted_from = store.spooled(job.id)
    with script.open() as text:
        interpreter = text.readline()[2:].split()
    streams = (subprocess.DEVNULL, output, error)
    environment = job_environment(job, submitted_from, store.root)
    return Group([*interpreter, str(script), *arguments], streams, job.work_dir, environment)
