"""Run:ai, for the registry of kinds."""

from __future__ import annotations

from llmb_tui.cluster.cluster import Cluster
from llmb_tui.cluster.kind import ClusterKind
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.runai.profile_check import check_runai_profile


def _open(profile: RunaiProfile) -> Cluster:
    from llmb_tui.cluster.runai.cluster import RunaiCluster  # noqa: PLC0415 - reading a profile needs no connection

    return RunaiCluster(profile)


RUNAI = ClusterKind(RunaiProfile, check_runai_profile, _open)
