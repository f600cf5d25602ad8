"""`srun`: run a program in a job, or in an allocation of its own. Only task 0 is a real process."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import IO, Literal

from llmb_tui.demo.slurm import facts, hostlist, pyxis
from llmb_tui.demo.slurm.environment import step_environment
from llmb_tui.demo.slurm.group import Group
from llmb_tui.demo.slurm.job import CANCELLED, COMPLETED, FAILED, RUNNING, Job, Step
from llmb_tui.demo.slurm.options import Parsed, Parser, Refusal
from llmb_tui.demo.slurm.pyxis import ContainerError
from llmb_tui.demo.slurm.request import RESOURCES, Refused, check_shape, job_of, record_refusal
from llmb_tui.demo.slurm.runner import finish, queue, status, step_notice, watch
from llmb_tui.demo.slurm.scancel import cancel
from llmb_tui.demo.slurm.store import Store

OPTIONS = (
    f"{RESOURCES} {pyxis.OPTIONS} cpu-bind= distribution=/m exact help jobid= kill-on-bad-exit?/K mpi= nodelist=/w "
    "overcommit/O overlap pty quiet/Q unbuffered/u verbose/v version/V wait=/W"
)


def main(store: Store, arguments: list[str]) -> int:
    """Run `srun`."""
    asked = Parser("srun", OPTIONS, refused=255).parse(arguments, until_operand=True)
    if "version" in asked:
        sys.stdout.write(f"slurm {facts.VERSION}\n")
        return 0
    if "help" in asked:
        sys.stdout.write(f"Usage: srun [OPTIONS(0)... [executable(0) [args(0)...]]]\n\n{pyxis.HELP}")
        return 0
    if asked.get("mpi") == "list":
        sys.stdout.write("MPI plugin types are...\n\tnone\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n")
        return 0
    if not asked.operands:
        raise Refusal("srun: fatal: No command given to execute.")
    job_id = asked.get("jobid") or os.environ.get("SLURM_JOB_ID", "")
    return _within(store, asked, job_id) if job_id else _on_its_own(store, asked, arguments)


def _within(store: Store, asked: Parsed, job_id: str) -> int:
    job = store.get(int(job_id)) if job_id.isdigit() else None
    if job is None or job.state != RUNNING:
        raise Refusal(
            f"srun: error: Unable to confirm allocation for job {job_id}: Invalid job id specified\n"
            f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {job_id}"
        )
    return _Run(store, job, asked, alone=False).main()


def _on_its_own(store: Store, asked: Parsed, arguments: list[str]) -> int:
    name = os.path.basename(asked.operands[0])
    try:
        job = job_of(store, "srun", asked, name=name, command="(null)")
        job.submit_line, job.requeue = shlex.join(["srun", *arguments]), False
        check_shape(job)
    except Refused as refused:
        if refused.recorded:
            record_refusal(store, job)
        raise Refusal(refused.words("srun", "Unable to allocate resources")) from refused
    job, _alive = store.add(job)  # the open file lives as long as this process

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        # Not here: the code that the signal interrupts may hold the lock of the state.
        threading.Thread(target=cancel, args=(store, job.id)).start()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, give_up)
    sys.stderr.write(f"srun: job {job.id} queued and waiting for resources\n")
    if not queue(store, job.id):
        raise Refusal("srun: Force Terminated job " + str(job.id))
    sys.stderr.write(f"srun: job {job.id} has been allocated resources\n")
    code = 1
    try:
        code = _Run(store, store.read(job.id), asked, alone=True).main()
    finally:
        finish(store, job.id, min(code, 128), max(code - 128, 0))
    return code


class _Run:
    """One step: its place in the job, its files, task 0."""

    def __init__(self, store: Store, job: Job, asked: Parsed, *, alone: bool) -> None:
        """`alone`: the job is this step and ends with it."""
        self.store = store
        self.job = job
        self.asked = asked
        self.alone = alone
        self.step = ""
        self.nodes: list[str] = []
        self.tasks = 0
        self.error: IO[bytes] | None = None
        """Where the step's own messages go; None: with srun's."""

    def main(self) -> int:
        """Run the step to its end, say how it ended, and answer with srun's exit code."""
        self._take_place()
        with ExitStack() as files:
            output = self._open("output", files)
            self.error = self._open("error", files) or output
            process = self._start(output)
            code, by_signal = (process, 0) if isinstance(process, int) else self._wait(process)
        self._record_end(code, by_signal)
        if by_signal:
            sys.stderr.write(f"srun: error: {self.nodes[0]}: task 0: {signal.strsignal(by_signal)}\n")
            return 128 + by_signal
        if code:
            sys.stderr.write(f"srun: error: {self.nodes[0]}: task 0: Exited with exit code {code}\n")
        return code

    def _take_place(self) -> None:
        job, asked = self.job, self.asked
        names = hostlist.expand(asked.get("nodelist")) or job.node_names
        count = int(asked.get("nodes", str(min(len(names), job.nodes))).partition("-")[0])
        if not set(names) <= set(job.node_names) or count > len(job.node_names):
            raise Refusal(
                f"srun: error: Unable to create step for job {job.id}: Requested node configuration is not available"
            )
        tasks = job.tasks
        if "nodes" in asked or "ntasks-per-node" in asked:
            tasks = count * int(asked.get("ntasks-per-node", str(job.tasks_per_node)))
        self.tasks = int(asked.get("ntasks", str(tasks)))
        self.nodes = names[: min(count, self.tasks)]
        name = os.path.basename(asked.operands[0])
        with self.store.change(job.id) as changed:
            self.step = str(sum(known.id != "batch" for known in changed.steps))
            changed.steps.append(Step(self.step, name, len(self.nodes), self.tasks, started=changed.now()))
        if self.tasks > 1:
            sys.stderr.write(f"srun: simulated cluster: task 0 of {self.tasks} is a real process, the others are not\n")
            sys.stderr.flush()

    def _open(self, name: str, files: ExitStack) -> IO[bytes] | None:
        """The step's output or error file; None where none is asked for."""
        pattern = self.asked.get(name).replace("%s", self.step).replace("%N", self.nodes[0])
        if not pattern:
            return None
        append = (self.asked.get("open-mode") or os.environ.get("SLURM_OPEN_MODE", "t")).startswith("a")
        mode: Literal["ab", "wb"] = "ab" if append else "wb"
        try:
            return files.enter_context(Path(self.job.fill(os.path.join(os.getcwd(), pattern))).open(mode))
        except OSError as problem:
            raise Refusal(f"srun: error: Could not open std{name[:3]} file: {problem.strerror}") from problem

    def _start(self, output: IO[bytes] | None) -> subprocess.Popen[bytes] | Group | int:
        """Task 0, or the exit code of a step that could not start; then its log says why."""
        environment = step_environment(self.job, dict(os.environ), self.step, self.nodes, self.tasks)
        node_bin = str(self.store.root / "node-bin")
        if node_bin not in environment.get("PATH", "").split(":"):
            environment["PATH"] = f"{node_bin}:{environment.get('PATH', '')}"
        folder = self.asked.get("chdir", os.getcwd())
        if not os.path.isdir(folder):
            self._log(f"couldn't chdir to `{folder}': No such file or directory: going to /tmp instead")
            folder = "/tmp"  # noqa: S108  # where slurmstepd goes
        try:
            environment, folder = pyxis.enter(self.asked, self.store.root, environment, folder)
            if pyxis.MOUNTS in environment:
                time.sleep(pyxis.START_S / self.job.speed)
            return self._task_0(output, folder, environment)
        except ContainerError as problem:
            self._log(*(f"pyxis: {line}" for line in problem.lines))
            self._log("spank: required plugin spank_pyxis.so: task_init() failed with rc=-1")
            self._log("Failed to invoke spank plugin stack")
            return 1
        except OSError as problem:
            self._log(f"execve(): {self.asked.operands[0]}: {problem.strerror}")
            return 2

    def _task_0(
        self, output: IO[bytes] | None, folder: str, environment: dict[str, str]
    ) -> subprocess.Popen[bytes] | Group:
        command = self.asked.operands
        if self.alone:
            return Group(command, (None, output, self.error), folder, environment)
        return subprocess.Popen(command, stdout=output, stderr=self.error, cwd=folder, env=environment)

    def _wait(self, process: subprocess.Popen[bytes] | Group) -> tuple[int, int]:
        if isinstance(process, Group):
            return watch(self.store, self.job, process, self.error)

        def ended_with_the_job(_signal: int, _frame: FrameType | None) -> None:
            sys.stderr.write("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n")
            sys.stderr.flush()
            self._write(step_notice(self.store, self.job, self.step))
            process.terminate()

        signal.signal(signal.SIGTERM, ended_with_the_job)
        process.wait()
        return status(process)

    def _record_end(self, code: int, by_signal: int) -> None:
        with self.store.change(self.job.id) as changed:
            for step in changed.steps:
                if step.id == self.step:
                    step.ended, step.exit_code, step.signal = changed.now(), code, by_signal
                    step.state = FAILED if code or by_signal else COMPLETED
                    if by_signal == signal.SIGTERM:
                        step.state = CANCELLED

    def _log(self, *lines: str) -> None:
        self._write("".join(f"slurmstepd: error: {line}\n" for line in lines))

    def _write(self, text: str) -> None:
        if self.error:
            self.error.write(text.encode())
            self.error.flush()
        else:
            sys.stderr.write(text)
            sys.stderr.flush()
