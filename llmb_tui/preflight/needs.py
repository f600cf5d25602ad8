"""`Needs`: what installing and running take from a cluster: software, servers, the CPU architecture of an image."""

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
    """Servers that installs download from: scheme, host and port of each, without a path; and one repository."""

    registry: str = "https://nvcr.io"
    """Container registry."""
    git: str = "https://github.com/NVIDIA/dgxc-benchmarking.git"
    """NVIDIA's recipes: git is asked for this repository where the procedure names none."""
    hub: str = "https://huggingface.co"
    """Model hub."""


PUBLIC = Sources()
"""The servers that everybody uses."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the chosen procedure needs of a plan's cluster. Without a plan nothing is known, and nothing is gated."""

    profile: SlurmProfile
    plan: Plan | None = None
    """None: no plan is chosen, and the rest says nothing."""
    image: str = ""
    """Path of the imported container image: once it is there, neither its space nor the registry is needed."""
    brought_image: str = ""
    """Path where the install finds an image that a person brought."""
    brought_sources: tuple[str, ...] = ()
    """Paths where it finds what a person brought in place of all that is fetched from the git host."""
    brought_packages: str = ""
    """Directory of Python packages that a person brought; it may be that pip reaches an index all the same."""
    venv: bool = False
    """True where the procedure makes a Python environment on the cluster."""
    environment_gb: float | None = None
    """Its size in decimal GB, as measured for the recipe; None: nobody has measured it."""
    python: str | None = None
    """Oldest Python version for that environment, such as `3.10.12`; None where the recipe names none."""
    python_only: bool = False
    """True where `python`, such as `3.12`, is the only version that is right."""
    repository: str = ""
    """Address of the recipe's repository, which git fetches; empty: nothing is fetched by git."""
    hub: bool = False
    """True where something is fetched from the model hub."""
    set_up: str = ""
    """File that says that the install is whole: once it is there, git fetches nothing, and the environment is there."""
    hub_each_run: bool = False
    """True where every run fetches from the model hub, and not only the install."""
    sbatch_variables: bool = False
    """True where the job's sbatch heeds the person's own SBATCH_ variables, as NVIDIA's scripts let it."""
    sources: Sources = PUBLIC

    @property
    def known(self) -> bool:
        """True where a plan says what is needed."""
        return self.plan is not None


@dataclass(frozen=True, slots=True)
class RunaiNeeds:
    """What a workload needs of a plan's Run:ai cluster. Without a plan nothing is known, and nothing is gated."""

    profile: RunaiProfile
    plan: Plan | None = None
    image: str = ""
    """The image's whole name, such as `nvcr.io/nvidia/nemo:25.09.00`."""
    hub: bool = False
    """True where the run fetches from the model hub."""


class ClusterNeeds(Protocol):
    """What is needed of a cluster, whatever its kind."""

    @property
    def profile(self) -> ClusterProfile:
        """Cluster that is checked."""

    @property
    def plan(self) -> Plan | None:
        """Plan that is to run there; None: none is chosen."""


def architecture_of(gpu: str) -> str:
    """CPU architecture of the nodes that a GPU type comes in, as `uname -m`: images are built for one.

    `aarch64` for GPUs that sit beside a Grace CPU, such as GB200 and GB300; `x86_64` for others.
    """
    return "aarch64" if _GRACE.fullmatch(gpu) else "x86_64"
