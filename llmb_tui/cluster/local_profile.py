"""`local_profile`: the cluster whose login node this machine is, as it describes itself. For `--cluster local`."""

from __future__ import annotations

import platform
import shutil

from llmb_tui.cluster.offers import Offers
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble

NAME = "local"
"""What such a profile is called, unless a saved one has the name."""


def unfilled_local_profile() -> ClusterProfile:
    """As much of it as running commands here takes. Raises Trouble (exit code 1) where there is no Slurm."""
    if shutil.which("sbatch") is None:
        raise Trouble(
            "This machine is no login node: there is no `sbatch` on the PATH.",
            f"The cluster {NAME!r} is for running llmb-tui on the login node itself, without SSH.",
            "Choose a saved cluster (`llmb-tui clusters` lists them), or load Slurm's module first.",
            exit_code=1,
        )
    return ClusterProfile(NAME, platform.node() or "localhost", "", "", "", transport="local")


def local_profile(offers: Offers) -> ClusterProfile:
    """The whole profile: the user's default account, the default partition with GPUs, `$LLMB_INSTALL` or a guess.

    Raises Trouble (exit code 1) where Slurm shows no partition.
    """
    if offers.default_partition is None:
        raise Trouble(
            "This login node shows no partition that is up.",
            "`sinfo` lists none.",
            "Ask the cluster's administrators, or save a profile that names one.",
            exit_code=1,
        )
    return offers.filled(unfilled_local_profile())
