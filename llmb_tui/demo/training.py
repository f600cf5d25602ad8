"""A simulated training and its NeMo log, on any clock. Pure: the caller provides the clock.

Steps take the expected time, with the spread of a healthy cluster. The lines follow NeMo's `ProgressPrinter`, and tqdm
as Lightning uses it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

START_UP_S = 60.0
"""Simulated seconds from the start of the container to the first step."""
UNKNOWN_STEP_S = 5.0
"""Step time of a plan that has no estimate."""
USUAL_EFFICIENCY = 0.4
"""Fraction of the peak for a plan without an expected time, if its model FLOPs are known."""
WARM_UP = ((1.0, 25.0), (1.25, 0.0), (1.06, 0.0))
"""The first steps: factor and additional simulated seconds."""
SIGMA = 0.004
"""Relative spread of the step time within a run."""
RUN_SPREAD = 0.015
"""Largest relative excess of a run's step time over the expected one."""

_PRODUCTS = {"h100": "NVIDIA H100 80GB HBM3"}
"""Product names of GPU types for which it is not just `NVIDIA` and the type."""
_BLOCKS = " ▏▎▍▌▋▊▉█"
_DEVICE = (
    "You are using a CUDA device ('{}') that has Tensor Cores. To properly utilize them, you should set "
    "`torch.set_float32_matmul_precision('medium' | 'high')` which will trade-off precision for performance. For more "
    "details, read "
    "https://pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html#torch.set_float32_matmul_precision"
)
"""Lightning's line about rank 0's GPU."""
_BAR_WIDTH = 10
_PADDED_TO = 5


@dataclass(frozen=True)
class Training:
    """Description of a training, as far as its log shows it."""

    steps: int
    step_s: float
    gbs: int
    gpus: int
    release: str
    workload: str
    size: str
    gpu: str
    """Product name of the GPUs."""
    peak_bytes: float
    allocated_bytes: float
    flops_per_step: float


@dataclass(frozen=True)
class CompletedStep:
    index: int
    seconds: float
    loss: float


class Clock(Protocol):
    """Simulated time."""

    def wait(self, seconds: float) -> None:
        """Let simulated seconds pass."""

    def stamp(self) -> str:
        """The time in the format of NeMo's log."""


def training(plan: dict[str, Any], overrides: Mapping[str, str]) -> Training:
    """Training that a plan document and the overrides of a Hydra command describe."""
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
        gpu=_PRODUCTS.get(selection["gpu"], f"NVIDIA {selection['gpu'].upper()}"),
        peak_bytes=float(memory.get("peak_gb", 70)) * 1e9,
        allocated_bytes=float(memory.get("state_gb", 34)) * 1e9,
        flops_per_step=flops,
    )


def step_seconds(seed: str, index: int, expected_s: float) -> float:
    """Simulated time of one step, always the same for a seed and an index."""
    base = expected_s * (1 + RUN_SPREAD * chance(f"{seed}/run"))
    factor, extra = WARM_UP[index] if index < len(WARM_UP) else (1.0, 0.0)
    first, second = chance(f"{seed}/{index}/a"), chance(f"{seed}/{index}/b")
    normal = math.sqrt(-2 * math.log(1 - first)) * math.cos(2 * math.pi * second)
    return base * factor * (1 + SIGMA * normal) + extra


def chance(text: str) -> float:
    """Number in [0, 1), derived from a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def completed_step(seed: str, index: int, task: Training, factor: float = 1.0) -> CompletedStep:
    """One step; `factor` multiplies its time."""
    noise = 0.02 * (chance(f"{seed}/{index}/loss") - 0.5)
    seconds = step_seconds(seed, index, task.step_s) * factor
    return CompletedStep(index, seconds, 11.7 + 1.4 * math.exp(-index / 18) + noise)


def nemo2_log(task: Training, clock: Clock, steps: Iterable[CompletedStep], *, memory: bool) -> Iterator[str]:
    """Output of NeMo 2 up to its last step, line by line on time; `memory` adds the GPUs' memory use."""
    yield from _start_up(task, clock)
    tflops = 0.0
    for step in steps:
        values: dict[str, float] = {
            "lr": 4.5e-5 * (step.index + 1) / 501,
            "global_batch_size": task.gbs,
            "global_step": step.index,
        }
        if memory:
            values |= {"peak_memory_usage": int(task.peak_bytes), "memory_allocated": int(task.allocated_bytes)}
        values |= {"reduced_train_loss": step.loss, "train_step_timing in s": step.seconds}
        if step.index:
            values["consumed_samples"] = (step.index + 1) * task.gbs
        if tflops and task.release >= "25.05":  # printed from then on, one step late
            values["TFLOPS_per_GPU"] = tflops
        yield nemo2_line(step.index, task.steps, values)
        tflops = task.flops_per_step / step.seconds / task.gpus / 1e12


def end_line(task: Training) -> str:
    """Last line of a completed training; it goes to stderr."""
    return f"`Trainer.fit` stopped: `max_steps={task.steps}` reached."


def gpu_line(task: Training, node: str, gpus: int) -> str:
    """Line of the entry script about the GPUs of a node."""
    return f"GPUs of node {node}: {gpus} × {task.gpu}"


def nccl_log(task: Training, node: str, rank: int, per_node: int, transport: str) -> Iterator[str]:
    """NCCL's network lines for the first rank of one of several nodes, with the subsystems INIT and NET.

    `transport` is `IB` or `Socket`.
    """
    device = "NET/Socket : Using [0]eth0:10.0.0.2<0>" if transport == "Socket" else "NET/IB : Using [0]mlx5_0:1/IB [RO]"
    used = "NET/Socket/0" if transport == "Socket" else "NET/IB/0/GDRDMA"
    before, beyond = (rank - 1) % task.gpus, (rank + per_node) % task.gpus
    last = per_node - 1
    yield "NCCL version 2.25.1+cuda12.8"
    for text in (
        "Bootstrap : Using eth0:10.0.0.2<0>",
        device,
        f"Using network {transport}",
        f"Channel 00/0 : {before}[{last}] -> {rank}[0] [receive] via {used}",
        f"Channel 01/0 : {before}[{last}] -> {rank}[0] [receive] via {used}",
        f"Channel 00/0 : {rank}[0] -> {rank + 1}[1] via P2P/CUMEM",
        f"Channel 02/0 : {rank}[0] -> {beyond}[0] [send] via {used}",
    ):
        yield f"{node}:4242:4360 [0] NCCL INFO {text}"


def _start_up(task: Training, clock: Clock) -> Iterator[str]:
    def inform(text: str) -> str:
        return f"[NeMo I {clock.stamp()} nemo_logging:393] {text}"

    clock.wait(START_UP_S * 0.4)
    yield "GPU available: True (cuda), used: True"
    yield "TPU available: False, using: 0 TPU cores"
    yield "HPU available: False, using: 0 HPUs"
    yield inform("Fixing mis-match between ddp-config & mcore-optimizer config")
    yield _DEVICE.format(task.gpu)
    yield inform("Rank 0 has data parallel rank: 0")
    yield inform("Rank 0 has model parallel rank: 0")
    yield f"Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/{task.gpus}"
    clock.wait(START_UP_S * 0.3)
    yield "-" * 100
    yield "distributed_backend=nccl"
    yield f"All distributed processes registered. Starting with {task.gpus} processes"
    yield "-" * 100
    yield ""
    yield inform(f"Copying Trainer's 'max_steps' ({task.steps}) to LR scheduler's 'max_steps'.")
    yield inform(f"Building model for {task.workload} {task.size}")
    clock.wait(START_UP_S * 0.3)
    yield inform("Setting up optimizers")


def nemo2_line(iteration: int, total: int, values: Mapping[str, float]) -> str:
    """One step of NeMo 2, without newline: four significant digits, whole numbers as integers."""
    parts = [f"Training epoch 0, iteration {iteration}/{total - 1}"]
    parts += [f"{name}: {_four_digits(value)}" for name, value in values.items()]
    return " | ".join(parts)


def hydra_bar(done: int, total: int, elapsed_s: float, values: Mapping[str, float | str]) -> str:
    """Progress bar of NeMo 1 after `done` steps; the caller prints the carriage return before it."""
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
    """Number in the format of tqdm (three digits if that is shorter), padded with zeros as Lightning does."""
    if isinstance(value, str):
        return value
    three_digits = f"{value:.3g}".replace("e+0", "e+").replace("e-0", "e-")
    text = three_digits if len(three_digits) < len(str(value)) else str(value)
    if "e" in text:
        return text
    if "." not in text and len(text) < _PADDED_TO:
        text += "."
    return text.ljust(_PADDED_TO, "0")


TRACEBACK = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/usr/local/lib/python3.12/dist-packages/lightning/pytorch/trainer/trainer.py", line 1024, in _run_stage
[rank0]:     self.fit_loop.run()
[rank0]:   File "/usr/local/lib/python3.12/dist-packages/megatron/core/transformer/mlp.py", line 122, in forward
[rank0]:     intermediate_parallel = self.activation_func(intermediate_parallel)
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.17 GiB."""
"""The last words of a training that runs out of memory."""
