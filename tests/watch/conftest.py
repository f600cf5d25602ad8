from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.catalog.recipe import ResultRule
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.plan import Estimate, Parallelism, Plan
from llmb_tui.plan.selection import Selection

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
    """A genuine progress line of NeMo 2 with its numbers replaced."""

    def line(i: int, seconds: object = 2.693, last: int = 49) -> str:
        return NEMO_LINE.format(i=i, last=last, seconds=seconds, samples=(i + 1) * 256)

    return line


@pytest.fixture
def hydra_frame() -> Callable[..., str]:
    """A genuine frame of NeMo 1's bar with its numbers replaced."""

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
    """Cut bytes into pieces of random lengths, by a seed."""

    def cut(data: bytes, seed: int) -> Iterator[bytes]:
        chance = random.Random(seed)
        at = 0
        while at < len(data):
            size = chance.choice((1, 2, 3, 7, 50, 300, 5000))
            yield data[at : at + size]
            at += size

    return cut


ESTIMATE = Estimate(
    step_time_s=2.0,
    low_s=1.92,
    high_s=2.08,
    method="published",
    anchor="nemotron4@25.04 15b fp8, 64 H100, 2 s",
    tokens_per_s=524_288,
    mfu_pct=38.9,
    days_per_1t_tokens=22.1,
    tflops_per_gpu=770.0,
    model_flops_per_sample=3.85e14,
    peak_tflops=1979,
    flops_formula="grouped queries, full attention",
)
PLAN = Plan(
    selection=Selection("nemotron4", "25.04", "15b", "h100", "fp8", 64),
    scaling="weak",
    nodes=8,
    gpus_per_node=8,
    parallelism=Parallelism(2, 1, 1, 1, 32, None, 2, 256, 4, 4096, 32),
    printed=None,
    published=None,
    estimate=ESTIMATE,
    memory=None,
    checkpoint_gb=None,
    gpu_hours=None,
    steps=50,
    time_limit="00:15:00",
    container="nvidia/nemo:25.02.01",
    problems=(),
)


@pytest.fixture
def plan() -> Plan:
    """A plan of 50 steps that are expected to take 2 seconds, between 1.92 and 2.08."""
    return PLAN


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    """A submitted run of that plan; its folder on the cluster is below `tmp_path`."""

    def make(**changes: Any) -> Run:
        task_dir = str(tmp_path / "cluster" / "task")
        spec = LaunchSpec(
            run_id="run1",
            experiment="pretrain_nemotron4_15b_fp8_64",
            task="pretrain_nemotron4_15b_fp8_64_run1",
            experiment_dir=str(tmp_path / "cluster"),
            task_dir=task_dir,
            job_name="demo-demo.pretrain_nemotron4_15b_fp8_64_run1",
            account="demo",
            partition="batch",
            nodes=8,
            tasks_per_node=8,
            gpu_request="gpus-per-node",
            time_limit="00:15:00",
            container_image="/images/nemo.sqsh",
            mounts=(),
            env=(),
            command=("python", "/nemo_run/code/pretrain.py"),
        )
        run = Run(
            id="run1",
            plan=PLAN,
            spec=spec,
            rule=ResultRule("last", "README"),
            log_format="nemo2",
            procedure="direct",
            cluster="demo",
            created_at=1_760_000_000.0,
            submission="submitted",
            job_ids=("42",),
            submitted_at=1_760_000_001.0,
        )
        return replace(run, **changes)

    return make
