"""`LlmbRun`: a run of NVIDIA's llmb-run, read from the file that llmb-run writes next to its logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.plan.selection import ProcedureId


@dataclass(frozen=True, slots=True)
class LlmbRun:
    """One job of llmb-run. Texts are clean of control characters."""

    procedure: ClassVar[ProcedureId] = "llmb"
    job_id: str
    workload: str
    """Name in llmb-run, such as `pretrain_nemotron4-340b`."""
    folder: str
    """Folder of its logs."""
    written_at: float
    """Unix time at which its file was written, just after the submission; 0 if the cluster does not report it."""
    release: str = ""
    """Release of the recipes, such as `25.12`."""
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
    """(name, value) of the variables set for the run that change a plan."""
    changed: tuple[str, ...] = ()
    """Names of all other variables and parameters that were set for the run."""
    parameters: tuple[str, ...] = ()
    """Names among `changed` that are parameters of the model."""
    log: JobLog | None = None
    """Log of the job; None if its name cannot be determined."""
    unreadable: str = ""
    """Reason why the file cannot be read; empty if it was read."""
