"""What the first pod's container prints, and when: a training of NeMo's, from the files that the workload brings along.

They come in the variable LLMB_FILES, a compressed tar as base64, and the command starts the entry script among them by
torchrun. Any other command ends at once, with a line that says so. Pure.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import math
import tarfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from llmb_tui.demo.training import TRACEBACK, Measured, Training, measured, nemo2_log, stopped, training

FILES = "LLMB_FILES"
PLAN, LAUNCH = "configs/plan.json", "configs/launch.json"
QUICK_S = 2.0
"""Simulated seconds of a command that is none of ours."""


@dataclass(frozen=True)
class Container:
    """The container of rank 0: what it was started with, and when, on the workload's clock."""

    command: str
    environment: tuple[tuple[str, str], ...]
    gpus: int
    seed: str
    began: float
    speed: float
    knobs: tuple[tuple[str, float], ...]
    """The faults of `demo/faults.py` that were on when it was submitted."""


@dataclass(frozen=True)
class Output:
    """Lines, each with the simulated second at which it is printed, and how the container ends."""

    lines: tuple[tuple[float, str], ...]
    seconds: float
    code: int


class _Clock:
    """Time that passes by being waited for."""

    def __init__(self, began: float) -> None:
        self._began = began
        self.seconds = 0.0

    def wait(self, seconds: float) -> None:
        self.seconds += seconds

    def stamp(self) -> str:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self._began + self.seconds))


@lru_cache(maxsize=1024)
def output(started: Container) -> Output:
    """Everything that the container prints."""
    environment, knobs, clock = dict(started.environment), dict(started.knobs), _Clock(started.began)
    lines = [(0.0, f"simulated: no training happens; the clock of this workload runs {started.speed:g} times faster")]
    if "torchrun" not in started.command:
        return Output(tuple(lines), QUICK_S, 0)
    memory = environment.get("NEMO_LOG_MEMORY_USAGE") == "1"
    try:
        task = _task(environment.get(FILES, ""), started.gpus)
        for text in nemo2_log(task, clock, _steps(task, clock, started.seed, knobs), memory=memory):
            lines.append((clock.seconds, text))
    except _EndedError as ended:
        clock.wait(QUICK_S)
        lines += [(clock.seconds, text) for text in str(ended).splitlines()]
        return Output(tuple(lines), clock.seconds, 1)
    if "hang-at-step" in knobs:
        return Output(tuple(lines), math.inf, 0)
    return Output((*lines, (clock.seconds, stopped(task))), clock.seconds, 0)


class _EndedError(Exception):
    """The program has ended with exit code 1; these are its last words."""


def _task(files: str, gpus: int) -> Training:
    try:
        packed = base64.b64decode(files, validate=True)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            members = {name.removeprefix("./"): name for name in archive.getnames()}
            texts = {name: archive.extractfile(members[name]) for name in (PLAN, LAUNCH)}
            documents: dict[str, Any] = {name: json.loads(file.read()) for name, file in texts.items() if file}
    except (binascii.Error, tarfile.TarError) as problem:
        raise _EndedError(f"tar: {FILES} holds no archive: {problem}\ntar: Exiting with failure status") from None
    except KeyError as missing:
        raise _EndedError(f"python: can't open file '/nemo_run/{missing.args[0]}': No such file or directory") from None
    except ValueError as problem:
        raise _EndedError(f"pretrain.py /nemo_run/{LAUNCH}: {problem}") from None
    task = training(documents[PLAN], {})
    if task.gpus != gpus:
        raise _EndedError(
            f"[rank0]: RuntimeError: world_size ({gpus}) is not that of the plan ({task.gpus}): "
            "the workload has other pods, or GPUs in each, than its files say"
        )
    return task


def _steps(task: Training, clock: _Clock, seed: str, knobs: Mapping[str, float]) -> Iterator[Measured]:
    for index in range(task.steps):
        if knobs.get("fail-at-step") == index:
            raise _EndedError(TRACEBACK)
        if knobs.get("hang-at-step") == index:
            return
        step = measured(seed, index, task, knobs.get("slow", 1.0))
        clock.wait(step.seconds)
        yield step
