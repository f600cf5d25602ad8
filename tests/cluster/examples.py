"""A profile and a plan for checks of clusters."""

from __future__ import annotations

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.plan.plan import Parallelism, Plan
from llmb_tui.plan.selection import Selection

PROFILE = SlurmProfile("eos", "eos", "llmbench", "batch", "/lustre/llmb")
PLAN = Plan(
    selection=Selection("nemotron4", "25.04", "15b", "h100", "bf16", 64),
    scaling="weak",
    nodes=8,
    gpus_per_node=8,
    parallelism=Parallelism(2, 1, 1, 1, 32, None, 2, 256, 4, 4096, 32),
    printed=None,
    published=None,
    estimate=None,
    memory=None,
    checkpoint_gb=None,
    gpu_hours=None,
    steps=50,
    time_limit="00:30:00",
    container="nvidia/nemo:25.02.01",
    problems=(),
)
