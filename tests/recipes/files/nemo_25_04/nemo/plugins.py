"""NeMo's plugins for NeMo-Run that the performance scripts use: environment of the training, and Nsight."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Any

import nemo_run as run


@dataclass(kw_only=True)
class PerfEnvPlugin(run.Plugin):  # type: ignore[misc]
    """Variables that depend on the layout, and more power for the tensor cores before the training starts."""

    enable_vboost: bool = False
    nccl_pp_comm_chunksize: int | None = None

    def setup(self, task: Any, executor: Any) -> None:
        """Called by NeMo-Run before it submits."""
        if task.tensor_parallel > 1 or task.context_parallel > 1:
            executor.env_vars["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
        executor.env_vars["NVTE_FWD_LAYERNORM_SM_MARGIN"] = "16"
        executor.env_vars["NVTE_BWD_LAYERNORM_SM_MARGIN"] = "16"
        if task.pipeline_parallel > 1 and self.nccl_pp_comm_chunksize:
            executor.env_vars["NCCL_P2P_NET_CHUNKSIZE"] = str(self.nccl_pp_comm_chunksize)
        if self.enable_vboost:
            executor.setup_lines = (executor.setup_lines or "") + self._boost(executor)

    def _boost(self, executor: Any) -> str:
        out, err = (os.path.join(executor.tunnel.job_dir, f"vboost.{end}") for end in ("out", "err"))
        command = shlex.quote("sudo nvidia-smi boost-slider --vboost 1")
        step = f"srun --ntasks={executor.nodes} --output {out} --error {err} bash -c {command}"
        return f"\n# Command 0: enable vboost\n\n{step}"


@dataclass(kw_only=True)
class NsysPlugin(run.Plugin):  # type: ignore[misc]
    """A profile of some steps."""

    start_step: int
    end_step: int

    def setup(self, task: Any, executor: Any) -> None:
        """Called by NeMo-Run before it submits."""
        task.profile_steps = f"{self.start_step}-{self.end_step}"
        launcher = executor.get_launcher()
        launcher.nsys_profile = True
        launcher.nsys_trace = ["nvtx", "cuda"]
