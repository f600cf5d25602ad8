from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from llmb_tui.launch.run import Run
from llmb_tui.plan.plan import Plan
from tests.kit import runs

NEMO_LINE = (
    "Training epoch 0, iteration {i}/{last} | lr: 4.491e-06 | global_batch_size: 256 | global_step: {i} | "
    "peak_memory_usage: 72972500992 | memory_allocated: 34466545664 | reduced_train_loss: 12.81 | "
    "train_step_timing in s: {seconds} | consumed_samples: {samples}\n"
)
HYDRA_FRAME = (
    "\rEpoch 0: :  {percent:3}%|{bar:10}| {n}/{total} [16:26<00:00, v_num=gjbq, reduced_train_loss=11.70, "
    "global_step={step}, consumed_samples={samples}.0, train_step_timing in s={seconds}]"
)


@pytest.fixture
def nemo_line() -> Callable[..., str]:
    """Function that returns a real progress line of NeMo 2 with other numbers."""

    def line(i: int, seconds: object = 2.693, last: int = 49) -> str:
        return NEMO_LINE.format(i=i, last=last, seconds=seconds, samples=(i + 1) * 256)

    return line


@pytest.fixture
def hydra_frame() -> Callable[..., str]:
    """Function that returns a real frame of NeMo 1's progress bar with other numbers."""

    def frame(i: int, seconds: object = "12.80", total: int = 50, count: int | None = None) -> str:
        n = i + 1 if count is None else count
        return HYDRA_FRAME.format(
            percent=100 * n // total,
            bar="█" * (10 * n // total),
            n=n,
            total=total,
            step=f"{i:.3f}"[:5],
            samples=(i + 1) * 252,
            seconds=seconds,
        )

    return frame


@pytest.fixture
def pieces() -> Callable[[bytes, int], Iterator[bytes]]:
    """Function that cuts bytes into pieces of random lengths, for a seed."""

    def cut(data: bytes, seed: int) -> Iterator[bytes]:
        chance = random.Random(seed)
        at = 0
        while at < len(data):
            size = chance.choice((1, 2, 3, 7, 50, 300, 5000))
            yield data[at : at + size]
            at += size

    return cut


PLAN = replace(runs.PLAN, estimate=replace(runs.ESTIMATE, step_time_s=2.0, low_s=1.92, high_s=2.08), memory=None)


@pytest.fixture
def plan() -> Plan:
    """Plan of 50 steps with an expected step time of 2 s and a band from 1.92 s to 2.08 s."""
    return PLAN


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    """Function that returns a submitted run of `PLAN`; its directory on the cluster is below `tmp_path`."""
    task_dir = tmp_path / "cluster" / "task"
    return partial(runs.make_run, "run1", task_dir, plan=PLAN, cluster="demo", job_ids=("42",), job_state=None)
