"""`SLURM`: the entry of Slurm in the registry of kinds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llmb_tui.cluster.kind import ClusterKind
from llmb_tui.cluster.slurm.kept_accounting import accounted_gpus, accounted_jobs
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.slurm.profile_check import check_profile
from llmb_tui.cluster.slurm.profile_fields import EMPTY, EXTRA_FIELDS, FIELDS, profile_of
from llmb_tui.cluster.slurm.words import SLURM_WORDS

if TYPE_CHECKING:
    from llmb_tui.cluster.cluster import Cluster


def _profile_of(texts: dict[str, str]) -> SlurmProfile:
    extra: dict[str, Any] = {field.name: texts[field.name] for field in EXTRA_FIELDS if texts[field.name]}
    return profile_of(replace(EMPTY, **extra), texts)


def _open(profile: SlurmProfile) -> Cluster:
    from llmb_tui.cluster.slurm.cluster import SlurmCluster  # noqa: PLC0415 - reading a profile needs no connection

    return SlurmCluster(profile)


SLURM = ClusterKind(
    SlurmProfile,
    SLURM_WORDS,
    (*FIELDS, *EXTRA_FIELDS),
    "--host LOGIN_NODE --account A --partition P --install-dir DIRECTORY",
    check_profile,
    _profile_of,
    _open,
    accounted_jobs,
    accounted_gpus,
)
