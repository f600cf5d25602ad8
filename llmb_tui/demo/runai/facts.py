"""Contents of the simulated site: one cluster, one project, node pools, claims, secrets and images."""

from __future__ import annotations

import re
from dataclasses import dataclass

TENANT = 1001
VERSION = "2.25.7"
CLUSTER = "5b1f6c0e-2f4d-4b52-9a53-6d0c7c1f0d11"
CLUSTER_NAME = "simulated"
DEPARTMENT = ("benchmarks", "8c7d2a14-64f2-4be0-9d0a-3f6f1c1b7a22")
PROJECT = "llmb"
PROJECT_ID = "4500105"
NAMESPACE = f"runai-{PROJECT}"
CREATED = 1_760_000_000.0
"""Creation time of everything, Unix time."""


@dataclass(frozen=True)
class Pool:
    """A node pool, and the project's share of it."""

    name: str
    id: str
    gpu_type: str
    gpus_per_node: int
    nodes: int
    deserved: int
    limit: int

    @property
    def node_names(self) -> list[str]:
        return [f"{self.name}-{number:03d}" for number in range(1, self.nodes + 1)]


POOLS = {
    pool.name: pool
    for pool in (
        Pool("default", "101", "NVIDIA-H100-80GB-HBM3", 8, 64, deserved=256, limit=512),
        Pool("b200", "102", "NVIDIA-B200", 8, 32, deserved=64, limit=64),
    )
}
CLAIMS = ("llmb-data", "scratch")
"""PVC claims."""
SECRETS = {"huggingface": "HF_TOKEN"}
"""Generic secrets and the key in each."""
REGISTRIES = ("nvcr",)
SECRET_PREFIX, REGISTRY_PREFIX = "genericsecret-", "dockerreg-"
"""Prefixes of the Kubernetes secrets that Run:ai makes from credentials."""
IMAGES = re.compile(
    r"nvcr\.io/nvidia/nemo:\d\d\.\d\d(\.\w+)*|(docker\.io/(library/)?)?(busybox|ubuntu|python)(:[\w.-]+)?"
)
"""Images that a node can pull."""
