"""`python` in a simulated container: stands in for NeMo, prints its log, computes nothing.

It supports the two commands that the recipes run, `python /nemo_run/code/pretrain.py LAUNCH.json` and
`python3 -u …/megatron_gpt_pretraining.py --config-path=FOLDER --config-name=FILE OVERRIDE…`, and no other program.
The files that a command names must exist; the training is described by `/nemo_run/configs/plan.json`, read through the
container's mounts. Times are on the job's clock.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any, TextIO

from llmb_tui.demo import faults
from llmb_tui.demo.slurm import notation
from llmb_tui.demo.slurm.job import DemoJob
from llmb_tui.demo.slurm.options import RefusedError, not_offered
from llmb_tui.demo.slurm.pyxis import container_mounts, place
from llmb_tui.demo.slurm.store import Store
from llmb_tui.demo.training import (
    START_UP_S,
    TRACEBACK,
    CompletedStep,
    Training,
    completed_step,
    end_line,
    gpu_line,
    hydra_bar,
    nccl_log,
    nemo2_log,
    training,
)

PLAN = "/nemo_run/configs/plan.json"
HYDRA_PROGRAM = "megatron_gpt_pretraining.py"
NEMO2_PROGRAM = "pretrain.py"
LAUNCH_FILE = "launch.json"
"""Argument of our entry script."""


class JobClock:
    """The job's clock, for the program in the job."""

    def __init__(self, job: DemoJob) -> None:
        self._job = job
        self._due = job.now()

    def wait(self, seconds: float) -> None:
        """Let simulated seconds pass; earlier delays are caught up."""
        self._due += seconds
        ahead = self._due - self._job.now()
        if ahead > 0:
            time.sleep(ahead / self._job.speed)

    def skip_delay(self) -> None:
        """Do not catch up earlier delays."""
        self._due = self._job.now()

    def stamp(self) -> str:
        """The time in the format of NeMo's log."""
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self._job.now()))


def main(store: Store, arguments: list[str]) -> int:
    """Run `python`."""
    mounts = container_mounts()
    flags = list(takewhile(lambda word: word.startswith("-"), arguments))
    program, *words = arguments[len(flags) :] or [""]
    name = os.path.basename(program)
    if {"-c", "-m"} & set(flags) or name not in (HYDRA_PROGRAM, NEMO2_PROGRAM):
        raise not_offered("python", " ".join(arguments), system="container")
    if name == NEMO2_PROGRAM and not os.path.exists(place(program, mounts)):
        raise RefusedError(f"python: can't open file '{program}': [Errno 2] No such file or directory", 2)
    job = store.read(int(os.environ["SLURM_JOB_ID"]))
    _say(sys.stderr, f"simulated: no training happens; the clock of this job runs {job.speed:g} times faster")
    plan = _document(PLAN, mounts)
    if name == HYDRA_PROGRAM:
        overrides = dict(word.lstrip("+").split("=", 1) for word in words if "=" in word)
        _find_configuration(overrides, mounts)
        task = training(plan, overrides)
        _write_network_lines(store, task, mounts)
        _train_hydra(store, job, task)
    else:
        _document(words[0], mounts)
        task = training(plan, {})
        _write_network_lines(store, task, mounts)
        _train_nemo2(store, job, task, by_our_script=os.path.basename(words[0]) == LAUNCH_FILE)
    return 0


def _document(path: str, mounts: list[tuple[str, str]]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(place(path, mounts) or path).read_text(encoding="utf-8"))
    return document


def _find_configuration(words: Mapping[str, str], mounts: list[tuple[str, str]]) -> None:
    """Raise RefusedError, with Hydra's message, if the container lacks the command's configuration."""
    folder, name = words.get("--config-path", ""), words.get("--config-name", "")
    outside = place(folder, mounts)
    if not outside:
        raise RefusedError(
            f"Primary config directory not found.\nCheck that the config directory '{folder}' exists and readable"
        )
    if not Path(outside, name).is_file():
        raise RefusedError(f"Cannot find primary config '{name}'. Check that it's in your config search path.")


def _steps(store: Store, job: DemoJob, clock: JobClock, task: Training) -> Iterator[CompletedStep]:
    """Make the steps in their time, with the active faults."""
    for index in range(task.steps):
        if faults.number(store.path, "fail-at-step") == index:
            _say(sys.stderr, TRACEBACK)
            raise SystemExit(1)
        while faults.number(store.path, "hang-at-step") == index:
            time.sleep(0.1)
            clock.skip_delay()
        step = completed_step(str(job.id), index, task, faults.number(store.path, "slow") or 1.0)
        clock.wait(step.seconds)
        yield step


def _write_network_lines(store: Store, task: Training, mounts: list[tuple[str, str]]) -> None:
    """Write NCCL's lines for the first rank of each node, if the environment names a file for them."""
    pattern, nodes = os.environ.get("NCCL_DEBUG_FILE", ""), _nodes()
    if os.environ.get("NCCL_DEBUG") != "INFO" or not pattern or len(nodes) == 1:
        return
    transport = "IB" if faults.text(store.path, "socket") is None else "Socket"
    per_node = task.gpus // len(nodes)
    for number, node in enumerate(nodes):
        path = pattern.replace("%h", node).replace("%p", str(os.getpid()))
        lines = nccl_log(task, node, number * per_node, per_node, transport)
        Path(place(path, mounts) or path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _nodes() -> list[str]:
    return notation.expand(os.environ["SLURM_JOB_NODELIST"])


def _train_nemo2(store: Store, job: DemoJob, task: Training, *, by_our_script: bool) -> None:
    clock = JobClock(job)
    memory = os.environ.get("NEMO_LOG_MEMORY_USAGE") == "1"
    nodes = _nodes() if by_our_script else []
    for node in nodes:
        _say(sys.stdout, gpu_line(task, node, task.gpus // len(nodes)))
    for text in nemo2_log(task, clock, _steps(store, job, clock, task), memory=memory):
        _say(sys.stdout, text)
    _say(sys.stderr, end_line(task))


def _train_hydra(store: Store, job: DemoJob, task: Training) -> None:
    clock = JobClock(job)
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
    _say(sys.stderr, end_line(task))
    _show(f"{bar}\n")


def _run_number(job: DemoJob) -> str:
    """Four letters, like a run's name in the logger of NeMo 1."""
    digest = hashlib.sha256(f"{job.id}/v_num".encode()).digest()
    return "".join(chr(ord("a") + byte % 26) for byte in digest[:4])


def _show(frame: str) -> None:
    sys.stdout.buffer.write(f"\r{frame}".encode())
    sys.stdout.buffer.flush()


def _say(stream: TextIO, text: str) -> None:
    stream.buffer.write(f"{text}\n".encode())
    stream.buffer.flush()
