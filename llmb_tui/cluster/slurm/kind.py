"""Slurm, for the registry of kinds."""

from __future__ import annotations

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.kind import ClusterKind
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.slurm.profile_check import check_profile


def _open(profile: SlurmProfile) -> Cluster:
    from llmb_tui.cluster.slurm.cluster import SlurmCluster  # noqa: PLC0415 - reading a profile needs no connection

    return SlurmCluster(profile)


SLURM = ClusterKind(SlurmProfile, check_profile, _open)
