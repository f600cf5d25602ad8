"""Suspending on clusters without support for it, and on read-only ones; no connection is made."""

from __future__ import annotations

import pytest

from llmb_tui.cluster.cluster import SchedulerError
from llmb_tui.cluster.failures import ReadOnlyError
from llmb_tui.cluster.runai.cluster import RunaiCluster
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile

RUNAI = RunaiProfile("acme", "https://acme.run.ai/api/v1", "app", "bench", read_only=True)
SLURM = SlurmProfile("eos", "eos-login", "acct", "batch", "/lustre/llmb")


def test_support_for_suspending_is_known_without_a_connection() -> None:
    assert (RUNAI.can_suspend, SLURM.can_suspend) == (True, False)
    cluster = SlurmCluster(SLURM)
    for change in (cluster.suspend, cluster.resume):
        with pytest.raises(SchedulerError, match="does not let users suspend"):
            change("7")


def test_a_read_only_cluster_refuses_it() -> None:
    cluster = RunaiCluster(RUNAI)
    for change in (cluster.suspend, cluster.resume, cluster.cancel):
        with pytest.raises(ReadOnlyError):
            change("7")
