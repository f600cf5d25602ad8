"""A killed laptop: a process that submits one run, and ends with SIGKILL at a given step.

`python -m tests.rig.submit.laptop` reads one JSON object per line, forks a child for each, and answers with one line:
the number of steps that the child reached, and its exit code. Forking spares each child the imports.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.submit import submit_once
from llmb_tui.store.journal import Journal
from tests.rig.submit.intents import Laptop

STEPS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (Runs, ("save", "save_script")),
    (Journal, ("append",)),
    (SlurmCluster, ("run_script", "write_file")),
)
"""All methods by which a submission changes the disk or the cluster."""


class KilledLaptops:
    """The process that forks the children."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def submit(
        self, folder: Path, run: Run, script: str, profile: SlurmProfile, *, dies_at: int = 0, after: bool = False
    ) -> tuple[int, int]:
        """Submit, and be killed before (or right after) step number `dies_at`, counted from 1; 0: never.

        Returns the number of reached steps and the exit code of the process: -9 if it was killed.
        """
        stdin, stdout = self._pipes()
        request = {
            "folder": str(folder),
            "what": pickle.dumps((run, script, profile)).hex(),
            "at": dies_at,
            "after": after,
        }
        stdin.write(f"{json.dumps(request)}\n")
        stdin.flush()
        steps, code = map(int, stdout.readline().split())
        return steps, code

    def close(self) -> None:
        """End the process."""
        stdin, stdout = self._pipes()
        stdin.close()
        self._process.wait()
        stdout.close()

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process has no pipes")
        return self._process.stdin, self._process.stdout


def main() -> None:
    """Serve until stdin ends."""
    for line in sys.stdin:
        request = json.loads(line)
        counter = Path(request["folder"]) / "steps"
        counter.parent.mkdir(parents=True, exist_ok=True)
        counter.write_text("")
        child = os.fork()
        if child == 0:
            _submit_and_leave(request, counter)
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{counter.stat().st_size} {os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _submit_and_leave(request: dict[str, Any], counter: Path) -> None:
    _count_steps(counter, request["at"], after=request["after"])
    run, script, profile = pickle.loads(bytes.fromhex(request["what"]))
    laptop = Laptop(counter.parent)
    code = 0
    try:
        submit_once(SlurmCluster(profile), laptop.runs, laptop.journal, run, script)
    except LlmbError as error:
        sys.stderr.write(f"{error}\n")
        code = 1
    os._exit(code)


def _count_steps(counter: Path, dies_at: int, *, after: bool) -> None:
    """Write one byte to `counter` at the start of each step."""

    def counted(step: Callable[..., Any]) -> Callable[..., Any]:
        def take(*args: Any, **options: Any) -> Any:
            with counter.open("a") as file:
                file.write(".")
            is_fatal = counter.stat().st_size == dies_at
            if is_fatal and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = step(*args, **options)
            if is_fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return take

    for kind, names in STEPS:
        for name in names:
            setattr(kind, name, counted(getattr(kind, name)))


if __name__ == "__main__":
    main()
