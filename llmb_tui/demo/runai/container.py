"""`output`: timed output of rank 0's container: a NeMo training, from the files that the workload contains.

The files are in the variable LLMB_FILES, a compressed tar as base64, and the command starts one of them by torchrun;
any other command ends at once. Obstacles to the ranks' rendezvous, and a `timeout` before torchrun, work as they really
do. Pure.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
import re
import tarfile
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from llmb_tui.demo.training import (
    TRACEBACK,
    CompletedStep,
    Training,
    completed_step,
    end_line,
    gpu_line,
    nemo2_log,
    training,
)

FILES = "LLMB_FILES"
PLAN = "configs/plan.json"
QUICK_S = 2.0
"""Simulated seconds of a command that is not ours, or that cannot begin."""
MEETING_S = 900.0
"""Seconds that torchrun waits for the other nodes."""
_NAMED = re.compile(r"/nemo_run/([\w/-]+\.\w+)")
_LIMIT = re.compile(r"\btimeout (?:-\S+ )*(\d+)")
_BY_OPERATOR = re.compile(r"\$\{?(RANK|MASTER_ADDR)\b")


@dataclass(frozen=True)
class Container:
    """Rank 0's container: its start parameters, and its start on the workload's clock."""

    command: str
    environment: tuple[tuple[str, str], ...]
    host: str
    """Name of its pod."""
    pods: int
    gpus: int
    """Number of GPUs of all pods."""
    has_master: bool
    """True if there is a master; only then the training operator sets RANK and MASTER_ADDR."""
    seed: str
    began: float
    speed: float
    knobs: tuple[tuple[str, float], ...]
    """Faults of `demo/faults.py` that were active when the workload was queued."""


@dataclass(frozen=True)
class Output:
    """Lines, each with the simulated second of its output, and the end of the container."""

    lines: tuple[tuple[float, str], ...]
    seconds: float
    code: int


class _Clock:
    """Clock that advances by waiting."""

    def __init__(self, began: float) -> None:
        self._began = began
        self.seconds = 0.0

    def wait(self, seconds: float) -> None:
        self.seconds += seconds

    def stamp(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self._began + self.seconds))


@lru_cache(maxsize=1024)
def output(started: Container) -> Output:
    """Complete output of the container."""
    complete, limit = _run(started), _LIMIT.search(started.command)
    if limit is None or complete.seconds <= float(limit[1]):
        return complete
    ends = float(limit[1])
    last = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 1 got signal: 15"
    return Output((*(line for line in complete.lines if line[0] < ends), (ends, last)), ends, 124)


def _run(started: Container) -> Output:
    """Complete output without a time limit."""
    environment, knobs, clock = dict(started.environment), dict(started.knobs), _Clock(started.began)
    lines = [(0.0, f"simulated: no training happens; the clock of this workload runs {started.speed:g} times faster")]
    if "torchrun" not in started.command:
        return Output(tuple(lines), QUICK_S, 0)
    memory = environment.get("NEMO_LOG_MEMORY_USAGE") == "1"
    try:
        task = _task(_documents(environment.get(FILES, ""), started.command), started.gpus)
        if started.pods > 1 and not started.has_master and _BY_OPERATOR.search(started.command):
            clock.wait(MEETING_S)
            why = f"Timed out after {MEETING_S + 1:g} seconds waiting for clients. 1/{started.pods} clients joined."
            raise _EndedError(f"torch.distributed.DistStoreError: {why}")
        lines.append((clock.seconds, gpu_line(task, started.host, started.gpus // started.pods)))
        for text in nemo2_log(task, clock, _steps(task, clock, started.seed, knobs), memory=memory):
            lines.append((clock.seconds, text))
    except _EndedError as ended:
        clock.wait(QUICK_S)
        lines += [(clock.seconds, text) for text in str(ended).splitlines()]
        return Output(tuple(lines), clock.seconds, 1)
    if "hang-at-step" in knobs:
        return Output(tuple(lines), math.inf, 0)
    return Output((*lines, (clock.seconds, end_line(task))), clock.seconds, 0)


class _EndedError(Exception):
    """The program has ended with exit code 1 and these last lines."""


def _documents(files: str, command: str) -> dict[str, Any]:
    """Contents of the JSON files that the command names, and of the plan; the other named files must exist."""
    try:
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(files, validate=True))) as archive:
            members = {member.name.removeprefix("./"): member for member in archive}
            files_of = {name: archive.extractfile(members[name]) for name in (PLAN, *_NAMED.findall(command))}
            return {name: json.load(file) for name, file in files_of.items() if file and name.endswith(".json")}
    except (binascii.Error, tarfile.TarError, OSError, EOFError, zlib.error) as problem:
        raise _EndedError(f"tar: {FILES} is not an archive: {problem}\ntar: Exiting with failure status") from None
    except KeyError as missing:
        raise _EndedError(f"python: can't open file '/nemo_run/{missing.args[0]}': No such file or directory") from None
    except ValueError as problem:
        raise _EndedError(f"pretrain.py: {problem}") from None


def _task(documents: dict[str, Any], gpus: int) -> Training:
    task = training(documents[PLAN], {})
    if task.gpus != gpus:
        raise _EndedError(
            f"[rank0]: RuntimeError: world_size ({gpus}) differs from the plan's ({task.gpus}): "
            "the workload has another number of pods, or of GPUs in each, than its files"
        )
    return task


def _steps(task: Training, clock: _Clock, seed: str, knobs: Mapping[str, float]) -> Iterator[CompletedStep]:
    for index in range(task.steps):
        if knobs.get("fail-at-step") == index:
            raise _EndedError(TRACEBACK)
        if knobs.get("hang-at-step") == index:
            return
        step = completed_step(seed, index, task, knobs.get("slow", 1.0))
        clock.wait(step.seconds)
        yield step
