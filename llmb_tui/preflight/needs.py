"""`Needs`: the requirements of an install and a run on a cluster: software, servers, CPU architecture."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.cluster.runai.profile import RunaiProfile
    from llmb_tui.cluster.slurm.profile import SlurmProfile
    from llmb_tui.plan.plan import Plan

_GRACE = re.compile(r"g[bh]\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sources:
    """Servers for the downloads of installs: scheme, host and port without a path; for git a repository."""

    registry: str = "https://nvcr.io"
    """Container registry."""
    git: str = "https://github.com/NVIDIA/dgxc-benchmarking.git"
    """Repository of NVIDIA's recipes, which git lists if the procedure names no repository."""
    hub: str = "https://huggingface.co"
    """Model hub."""


PUBLIC = Sources()
"""The public servers."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements of a procedure for a plan's cluster. Without a plan there are none, and no check blocks."""

    profile: SlurmProfile
    plan: Plan | None = None
    """None: no plan is chosen, and the other fields have no meaning."""
    image: str = ""
    """Path of the imported container image. If it exists, its space and the registry are not needed."""
    brought_image: str = ""
    """Path where the install finds an image that the user copied there."""
    brought_sources: tuple[str, ...] = ()
    """Paths where it finds copies of everything that it would fetch from the git host."""
    brought_packages: str = ""
    """Directory of Python packages that the user copied there; pip may also reach an index."""
    venv: bool = False
    """True if the procedure makes a Python environment on the cluster."""
    environment_gb: float | None = None
    """Measured size of the recipe's environment in decimal GB; None: not measured."""
    python: str | None = None
    """Oldest Python version for that environment, such as `3.10.12`; None if the recipe names none."""
    python_only: bool = False
    """True if `python`, such as `3.12`, is the only possible version."""
    repository: str = ""
    """Address of the recipe's repository, which git fetches; empty if git fetches none."""
    hub: bool = False
    """True if the procedure fetches files from the model hub."""
    set_up: str = ""
    """File that marks a complete install: if it exists, git fetches nothing, and the environment exists."""
    hub_each_run: bool = False
    """True if every run fetches from the model hub, not only the install."""
    sbatch_variables: bool = False
    """True if the job's sbatch reads the user's SBATCH_ variables, as in NVIDIA's scripts."""
    sources: Sources = PUBLIC

    @property
    def known(self) -> bool:
        """True if there is a plan, so that the requirements are known."""
        return self.plan is not None


@dataclass(frozen=True, slots=True)
class RunaiNeeds:
    """Requirements of a workload for a Run:ai cluster. Without a plan there are none, and no check blocks."""

    profile: RunaiProfile
    plan: Plan | None = None
    image: str = ""
    """Full name of the image, such as `nvcr.io/nvidia/nemo:25.09.00`."""
    hub: bool = False
    """True if the run fetches from the model hub."""


class ClusterNeeds(Protocol):
    """Requirements for a cluster of any kind."""

    @property
    def profile(self) -> ClusterProfile:
        """Cluster that is checked."""

    @property
    def plan(self) -> Plan | None:
        """Plan to run there; None: none is chosen."""


def architecture_of(gpu: str) -> str:
    """CPU architecture, as in `uname -m`, of the nodes of a GPU type: images are built for one architecture.

    `aarch64` for GPUs with a Grace CPU, such as GB200 and GB300; `x86_64` for others.
    """
    return "aarch64" if _GRACE.fullmatch(gpu) else "x86_64"
