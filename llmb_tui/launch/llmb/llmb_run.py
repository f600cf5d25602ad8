"""`LlmbRun`: a run that NVIDIA's llmb-run started, by the file that llmb-run writes next to its logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.plan.selection import ProcedureId


@dataclass(frozen=True, slots=True)
class LlmbRun:
    """One job of llmb-run's. Texts are clean of control characters."""

    procedure: ClassVar[ProcedureId] = "llmb"
    job_id: str
    workload: str
    """As llmb-run names it, such as `pretrain_nemotron4-340b`."""
    folder: str
    """Where its logs are."""
    written_at: float
    """Unix time at which its file was written, just after it was submitted; 0 where the cluster does not say."""
    release: str = ""
    """Of the recipes, such as `25.12`."""
    framework: str = ""
    """`nemo2`, `megatron_bridge`, …"""
    size: str = ""
    gpu: str = ""
    dtype: str = ""
    scale: int = 0
    """Number of GPUs."""
    strong_scaling: bool = False
    profile: bool = False
    planned: tuple[tuple[str, str], ...] = ()
    """(name, value) of the variables it was started with that change a plan."""
    changed: tuple[str, ...] = ()
    """Names of all other variables and parameters that it was started with."""
    parameters: tuple[str, ...] = ()
    """Those of them that are parameters of the model."""
    log: JobLog | None = None
    """None where its logs have no name that can be known."""
    unreadable: str = ""
    """Reason why the file cannot be read; empty if it was read."""
