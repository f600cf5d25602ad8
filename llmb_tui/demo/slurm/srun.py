"""`srun`: run a program as a step of a job. Only task 0 is a real process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from argparse import REMAINDER, Namespace
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import IO

from llmb_tui.demo.slurm import notation, pyxis
from llmb_tui.demo.slurm.options import Parser, not_offered
from llmb_tui.demo.slurm.runner import cancel_notice, status
from llmb_tui.demo.slurm.store import Store

_TEXTS = (
    "--account --cpu-bind --cpus-per-task --distribution --error --hint --kill-on-bad-exit --output --partition --time"
    " --wait -w"
)


def main(store: Store, arguments: list[str]) -> int:
    """Run `srun`."""
    args = options().parse(arguments)
    if args.help:
        sys.stdout.write(f"Usage: srun [OPTIONS(0)... [executable(0) [args(0)...]]]\n\n{pyxis.HELP}")
    elif args.mpi == "list":
        sys.stdout.write("MPI plugin types are...\n\tnone\n\tpmix\nspecific pmix plugin versions available: pmix_v4\n")
    elif args.test_only:
        sys.stderr.write("srun: simulated cluster: the plugins that the options name are there\n")
    elif not args.command or "SLURM_JOB_ID" not in os.environ:
        raise not_offered("srun", "a command that is not a step of a job")
    else:
        return _Step(store, args).run()
    return 0


def options() -> Parser:
    """Options of a step, and of Pyxis."""
    flags = f"--help --test-only {pyxis.FLAGS}"
    parser = Parser("srun", f"{_TEXTS} {pyxis.VALUES}", flags, "--nodes --ntasks --ntasks-per-node")
    parser.add_argument("--mpi", choices=["list", "none", "pmix"])
    parser.add_argument("command", nargs=REMAINDER)
    return parser


class _Step:
    """One step of a job, with its files and task 0."""

    def __init__(self, store: Store, args: Namespace) -> None:
        self.store, self.args = store, args
        with store.change(int(os.environ["SLURM_JOB_ID"])) as job:
            self.job, self.number = job, str(job.steps)
            job.steps += 1
        self.node = notation.expand(args.w or job.node_list)[0]
        self.tasks = args.ntasks or (args.nodes or job.nodes) * (args.ntasks_per_node or job.tasks_per_node)
        self.error: IO[bytes] = sys.stderr.buffer
        """Stream for the step's own messages."""

    def run(self) -> int:
        """Run the step to its end, report the end, and return srun's exit code."""
        if self.tasks > 1:
            self._write(f"srun: simulated cluster: task 0 of {self.tasks} is a real process, the others are not\n")
        with ExitStack() as files:
            output = self._open(self.args.output, files)
            self.error = self._open(self.args.error, files) or output or self.error
            process = self._start(output)
            code, by_signal = (process, 0) if isinstance(process, int) else self._wait(process)
        how = f"Exited with exit code {code}" if code else signal.strsignal(by_signal) if by_signal else ""
        if how:
            sys.stderr.write(f"srun: error: {self.node}: task 0: {how}\n")
        return code or (128 + by_signal if by_signal else 0)

    def _open(self, pattern: str | None, files: ExitStack) -> IO[bytes] | None:
        """Output or error file of the step; None if it has none."""
        if not pattern:
            return None
        return files.enter_context(Path(self.job.fill(os.path.abspath(pattern))).open("ab"))

    def _start(self, output: IO[bytes] | None) -> subprocess.Popen[bytes] | int:
        """Task 0, or the exit code of a step that could not start, with the reason in its log."""
        environment = {**os.environ, **self.job.variables(), "SLURM_STEP_ID": self.number, "SLURMD_NODENAME": self.node}
        environment["SLURM_NTASKS"] = str(self.tasks)
        folder = os.getcwd()
        try:
            if self.args.container_image:
                environment, folder = pyxis.enter(self.args, self.store.root, environment)
                time.sleep(pyxis.START_S / self.job.speed)
            return subprocess.Popen(self.args.command, stdout=output, stderr=self.error, cwd=folder, env=environment)
        except pyxis.ContainerError as problem:
            self._log(*(f"pyxis: {line}" for line in problem.lines))
            self._log("spank: required plugin spank_pyxis.so: task_init() failed with rc=-1")
            self._log("Failed to invoke spank plugin stack")
            return 1
        except OSError as problem:
            self._log(f"execve(): {self.args.command[0]}: {problem.strerror}")
            return 2

    def _wait(self, process: subprocess.Popen[bytes]) -> tuple[int, int]:
        def ended_with_the_job(_signal: int, _frame: FrameType | None) -> None:
            sys.stderr.write("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n")
            sys.stderr.flush()
            self._write(cancel_notice(self.store.read(self.job.id), self.number))
            process.terminate()

        signal.signal(signal.SIGTERM, ended_with_the_job)
        process.wait()
        return status(process)

    def _log(self, *lines: str) -> None:
        self._write("".join(f"slurmstepd: error: {line}\n" for line in lines))

    def _write(self, text: str) -> None:
        self.error.write(text.encode())
        self.error.flush()
