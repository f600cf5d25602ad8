"""`python` in a simulated container: takes the part of NeMo, prints its log, computes nothing.

It understands the two commands that the recipes run, `python /nemo_run/code/pretrain.py LAUNCH.json` and
`python3 -u …/megatron_gpt_pretraining.py --config-path=FOLDER --config-name=FILE OVERRIDE…`; no other program
is offered. The files that a command names must be there; what is trained it reads from
`/nemo_run/configs/plan.json`, through the mounts of the container. Its steps take the expected time, spread as on a
healthy cluster, on the job's clock. The lines follow NeMo's `ProgressPrinter`, and tqdm as Lightning drives it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, TextIO

from llmb_tui.demo import faults
from llmb_tui.demo.slurm.job import DemoJob
from llmb_tui.demo.slurm.options import Refusal, not_offered
from llmb_tui.demo.slurm.pyxis import mounted, place
from llmb_tui.demo.slurm.store import Store

PLAN = "/nemo_run/configs/plan.json"
HYDRA_PROGRAM = "megatron_gpt_pretraining.py"
NEMO2_PROGRAM = "pretrain.py"

START_UP_S = 60.0
"""From the start of the container to the first step, simulated seconds."""
UNKNOWN_STEP_S = 5.0
"""Step time of a plan that has no estimate."""
USUAL_EFFICIENCY = 0.4
"""Part of the peak that a plan without an expected time is given, where its model FLOPs are known."""
WARM_UP = ((1.0, 25.0), (1.25, 0.0), (1.06, 0.0))
"""The first steps: factor and additional simulated seconds."""
SIGMA = 0.004
"""Relative spread of the step time within a run."""
RUN_SPREAD = 0.015
"""A run is slower than expected by up to this."""

_BLOCKS = " ▏▎▍▌▋▊▉█"
_BAR_WIDTH = 10
_PADDED_TO = 5


@dataclass(frozen=True)
class Training:
    """What is to be trained, as far as the log shows it."""

    steps: int
    step_s: float
    gbs: int
    gpus: int
    release: str
    workload: str
    size: str
    peak_bytes: float
    allocated_bytes: float
    flops_per_step: float


@dataclass(frozen=True)
class Measured:
    """One step that was made."""

    index: int
    seconds: float
    loss: float


class Clock:
    """The job's clock, as the program in the job sees it."""

    def __init__(self, job: DemoJob) -> None:
        self._job = job
        self._due = job.now()

    def wait(self, seconds: float) -> None:
        """Let simulated seconds pass; time that was lost before is caught up."""
        self._due += seconds
        ahead = self._due - self._job.now()
        if ahead > 0:
            time.sleep(ahead / self._job.speed)

    def go_on(self) -> None:
        """Let time that was lost be lost."""
        self._due = self._job.now()

    def stamp(self) -> str:
        """The time as NeMo's log writes it."""
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self._job.now()))


def main(store: Store, arguments: list[str]) -> int:
    """Run `python`."""
    mounts = mounted()
    flags = list(takewhile(lambda word: word.startswith("-"), arguments))
    program, *words = arguments[len(flags) :] or [""]
    name = os.path.basename(program)
    if {"-c", "-m"} & set(flags) or name not in (HYDRA_PROGRAM, NEMO2_PROGRAM):
        raise not_offered("python", " ".join(arguments), of="container")
    if name == NEMO2_PROGRAM and not os.path.exists(place(program, mounts)):
        raise Refusal(f"python: can't open file '{program}': [Errno 2] No such file or directory", 2)
    job = store.read(int(os.environ["SLURM_JOB_ID"]))
    _say(sys.stderr, f"simulated: no training happens; the clock of this job runs {job.speed:g} times faster")
    plan = _document(PLAN, mounts)
    if name == HYDRA_PROGRAM:
        overrides = dict(word.lstrip("+").split("=", 1) for word in words if "=" in word)
        _find_configuration(overrides, mounts)
        _train_hydra(store, job, training(plan, overrides))
    else:
        _document(words[0], mounts)
        _train_nemo2(store, job, training(plan, {}))
    return 0


def _document(path: str, mounts: list[tuple[str, str]]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(place(path, mounts) or path).read_text(encoding="utf-8"))
    return document


def _find_configuration(words: Mapping[str, str], mounts: list[tuple[str, str]]) -> None:
    """Raises Refusal, in Hydra's words, where the configuration of the command is not in the container."""
    folder, name = words.get("--config-path", ""), words.get("--config-name", "")
    outside = place(folder, mounts)
    if not outside:
        raise Refusal(
            f"Primary config directory not found.\nCheck that the config directory '{folder}' exists and readable"
        )
    if not Path(outside, name).is_file():
        raise Refusal(f"Cannot find primary config '{name}'. Check that it's in your config search path.")


def training(plan: dict[str, Any], overrides: Mapping[str, str]) -> Training:
    """What a plan document, and the overrides of a Hydra command, ask for."""
    selection, estimate = plan["selection"], plan.get("estimate") or {}
    gpus, gbs = int(selection["scale"]), int(plan["parallelism"]["gbs"])
    flops = float(estimate.get("model_flops_per_sample") or 0) * gbs
    step_s = estimate.get("step_time_s")
    if step_s is None and flops and estimate.get("peak_tflops"):
        step_s = flops / (gpus * float(estimate["peak_tflops"]) * 1e12 * USUAL_EFFICIENCY)
    memory = plan.get("memory") or {}
    return Training(
        steps=int(overrides.get("trainer.max_steps", plan.get("steps", 50))),
        step_s=float(UNKNOWN_STEP_S if step_s is None else step_s),
        gbs=gbs,
        gpus=gpus,
        release=selection["release"],
        workload=selection["workload"],
        size=selection["size"],
        peak_bytes=float(memory.get("peak_gb", 70)) * 1e9,
        allocated_bytes=float(memory.get("state_gb", 34)) * 1e9,
        flops_per_step=flops,
    )


def step_seconds(seed: str, index: int, expected_s: float) -> float:
    """Simulated time of one step: the same for the same seed and index."""
    base = expected_s * (1 + RUN_SPREAD * _chance(f"{seed}/run"))
    factor, extra = WARM_UP[index] if index < len(WARM_UP) else (1.0, 0.0)
    first, second = _chance(f"{seed}/{index}/a"), _chance(f"{seed}/{index}/b")
    normal = math.sqrt(-2 * math.log(1 - first)) * math.cos(2 * math.pi * second)
    return base * factor * (1 + SIGMA * normal) + extra


def _chance(text: str) -> float:
    """A number in [0, 1) that follows from a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def _steps(store: Store, job: DemoJob, clock: Clock, task: Training) -> Iterator[Measured]:
    """Make the steps, each in its time, with the faults that are switched on."""
    for index in range(task.steps):
        if faults.number(store.path, "fail-at-step") == index:
            _say(sys.stderr, _TRACEBACK)
            raise SystemExit(1)
        while faults.number(store.path, "hang-at-step") == index:
            time.sleep(0.1)
            clock.go_on()
        seconds = step_seconds(str(job.id), index, task.step_s) * (faults.number(store.path, "slow") or 1.0)
        clock.wait(seconds)
        noise = 0.02 * (_chance(f"{job.id}/{index}/loss") - 0.5)
        yield Measured(index, seconds, 11.7 + 1.4 * math.exp(-index / 18) + noise)


def _train_nemo2(store: Store, job: DemoJob, task: Training) -> None:
    clock = Clock(job)

    def inform(text: str) -> None:
        _say(sys.stdout, f"[NeMo I {clock.stamp()} nemo_logging:393] {text}")

    _start_up(clock, inform, task)
    tflops = 0.0
    for step in _steps(store, job, clock, task):
        values: dict[str, float] = {
            "lr": 4.5e-5 * (step.index + 1) / 501,
            "global_batch_size": task.gbs,
            "global_step": step.index,
        }
        if os.environ.get("NEMO_LOG_MEMORY_USAGE") == "1":
            values |= {"peak_memory_usage": int(task.peak_bytes), "memory_allocated": int(task.allocated_bytes)}
        values |= {"reduced_train_loss": step.loss, "train_step_timing in s": step.seconds}
        if step.index:
            values["consumed_samples"] = (step.index + 1) * task.gbs
        if tflops and task.release >= "25.05":  # printed from then on, one step late
            values["TFLOPS_per_GPU"] = tflops
        _say(sys.stdout, nemo2_line(step.index, task.steps, values))
        tflops = task.flops_per_step / step.seconds / task.gpus / 1e12
    _say(sys.stderr, f"`Trainer.fit` stopped: `max_steps={task.steps}` reached.")


def _start_up(clock: Clock, inform: Callable[[str], None], task: Training) -> None:
    clock.wait(START_UP_S * 0.4)
    _say(sys.stdout, "GPU available: True (cuda), used: True\nTPU available: False, using: 0 TPU cores")
    _say(sys.stdout, "HPU available: False, using: 0 HPUs")
    inform("Fixing mis-match between ddp-config & mcore-optimizer config")
    inform("Rank 0 has data parallel rank: 0")
    inform("Rank 0 has model parallel rank: 0")
    _say(sys.stdout, f"Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/{task.gpus}")
    clock.wait(START_UP_S * 0.3)
    _say(sys.stdout, f"{'-' * 100}\ndistributed_backend=nccl")
    _say(sys.stdout, f"All distributed processes registered. Starting with {task.gpus} processes\n{'-' * 100}\n")
    inform(f"Copying Trainer's 'max_steps' ({task.steps}) to LR scheduler's 'max_steps'.")
    inform(f"Building model for {task.workload} {task.size}")
    clock.wait(START_UP_S * 0.3)
    inform("Setting up optimizers")


def _train_hydra(store: Store, job: DemoJob, task: Training) -> None:
    clock = Clock(job)
    title = "************** Experiment configuration ***********"
    _say(sys.stdout, f"[NeMo I {clock.stamp()} megatron_gpt_pretraining:37] {title}")
    clock.wait(START_UP_S)
    elapsed = 0.0
    bar = hydra_bar(0, task.steps, 0.0, {})
    _show(bar)
    for step in _steps(store, job, clock, task):
        elapsed += step.seconds
        values: dict[str, float | str] = {} if task.workload.startswith("grok") else {"v_num": _run_number(job)}
        values |= {
            "reduced_train_loss": step.loss,
            "global_step": float(step.index),
            "consumed_samples": float((step.index + 1) * task.gbs),
            "train_step_timing in s": step.seconds,
        }
        bar = hydra_bar(step.index + 1, task.steps, elapsed, values)
        _show(bar)
    _say(sys.stderr, f"`Trainer.fit` stopped: `max_steps={task.steps}` reached.")
    _show(f"{bar}\n")


def nemo2_line(iteration: int, total: int, values: Mapping[str, float]) -> str:
    """One step of NeMo 2, without newline: four significant digits, whole numbers as integers."""
    parts = [f"Training epoch 0, iteration {iteration}/{total - 1}"]
    parts += [f"{name}: {_four_digits(value)}" for name, value in values.items()]
    return " | ".join(parts)


def hydra_bar(done: int, total: int, elapsed_s: float, values: Mapping[str, float | str]) -> str:
    """The progress bar of NeMo 1 after `done` steps; the carriage return before it is the caller's."""
    fraction = done / total
    full, part = divmod(int(fraction * _BAR_WIDTH * (len(_BLOCKS) - 1)), len(_BLOCKS) - 1)
    bar = _BLOCKS[-1] * full
    if full < _BAR_WIDTH:
        bar += _BLOCKS[part] + _BLOCKS[0] * (_BAR_WIDTH - full - 1)
    left = _interval(elapsed_s / done * (total - done)) if done else "?"
    postfix = "".join(f", {name}={_padded(value)}" for name, value in values.items())
    return f"Epoch 0: : {100 * fraction:3.0f}%|{bar}| {done}/{total} [{_interval(elapsed_s)}<{left}{postfix}]"


def _four_digits(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else f"{value:.4}"


def _interval(seconds: float) -> str:
    minutes, second = divmod(int(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute:02d}:{second:02d}"


def _padded(value: float | str) -> str:
    """A number as tqdm writes it (three digits where that is shorter), filled up with zeros as Lightning does."""
    if isinstance(value, str):
        return value
    three_digits = f"{value:.3g}".replace("e+0", "e+").replace("e-0", "e-")
    text = three_digits if len(three_digits) < len(str(value)) else str(value)
    if "e" in text:
        return text
    if "." not in text and len(text) < _PADDED_TO:
        text += "."
    return text.ljust(_PADDED_TO, "0")


def _run_number(job: DemoJob) -> str:
    """Four letters, as the logger of NeMo 1 names a run."""
    digest = hashlib.sha256(f"{job.id}/v_num".encode()).digest()
    return "".join(chr(ord("a") + byte % 26) for byte in digest[:4])


def _show(frame: str) -> None:
    sys.stdout.buffer.write(f"\r{frame}".encode())
    sys.stdout.buffer.flush()


def _say(stream: TextIO, text: str) -> None:
    stream.buffer.write(f"{text}\n".encode())
    stream.buffer.flush()


_TRACEBACK = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/usr/local/lib/python3.12/dist-packages/lightning/pytorch/trainer/trainer.py", line 1024, in _run_stage
[rank0]:     self.fit_loop.run()
[rank0]:   File "/usr/local/lib/python3.12/dist-packages/megatron/core/transformer/mlp.py", line 122, in forward
[rank0]:     intermediate_parallel = self.activation_func(intermediate_parallel)
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.17 GiB."""
