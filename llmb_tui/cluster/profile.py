"""`ClusterProfile`: how to reach a cluster and what to ask of it. It never holds a secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GpuRequest = Literal["gres", "gpus-per-node", "none"]


@dataclass(frozen=True, slots=True)
class ClusterProfile:
    """One saved cluster."""

    name: str
    host: str
    """Host name or address of the login node."""
    account: str
    partition: str
    install_dir: str
    """Absolute path on the cluster's shared file system; `$LLMB_INSTALL` of the recipes."""
    port: int = 22
    user: str | None = None
    """None: the local user's name."""
    identity_file: str | None = None
    """Private key; None: the agent and the default keys."""
    known_hosts: str | None = None
    """None: the user's own `~/.ssh/known_hosts`."""
    gpu_request: GpuRequest = "gpus-per-node"
    notice: str | None = None
    """Shown wherever the cluster is named, such as `simulated, clock x30`."""
