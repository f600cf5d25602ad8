"""`PREFLIGHTS`: the registry of the checks for each kind of cluster. A new kind is a module, and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.preflight.check_group import CheckGroup
from llmb_tui.preflight.login_node import login_node_group
from llmb_tui.preflight.needs import ClusterNeeds, Needs, RunaiNeeds, Sources
from llmb_tui.preflight.network import network_group
from llmb_tui.preflight.scheduler import slurm_group
from llmb_tui.preflight.site_environment import environment_group

P = TypeVar("P", bound=ClusterProfile)
N = TypeVar("N", bound=ClusterNeeds)


@dataclass(frozen=True, slots=True)
class PreflightKind(Generic[P, N]):
    """Checks for one kind of cluster."""

    needs: Callable[[P, Sources], N]
    """Makes the needs of a cluster without a plan."""
    checks: Callable[[N], tuple[CheckGroup, ...]]
    """Makes the checks of the cluster itself, in their order."""


def _slurm(needs: Needs) -> tuple[CheckGroup, ...]:
    """Checks of the scheduler, the login node, its environment and its access to servers."""
    return (slurm_group(needs), login_node_group(needs), environment_group(needs), network_group(needs))


def _runai(needs: RunaiNeeds) -> tuple[CheckGroup, ...]:
    from llmb_tui.preflight.runai import runai_groups  # noqa: PLC0415 - it loads HTTPS, which Slurm does not need

    return runai_groups(needs)


PREFLIGHTS: dict[str, PreflightKind[Any, Any]] = {
    SlurmProfile.kind: PreflightKind(lambda profile, sources: Needs(profile, sources=sources), _slurm),
    RunaiProfile.kind: PreflightKind(lambda profile, _: RunaiNeeds(profile), _runai),
}
"""Preflights by the `kind` of a profile."""


def needs_of(profile: ClusterProfile, sources: Sources) -> ClusterNeeds:
    """Needs of a cluster without a plan."""
    needs: ClusterNeeds = PREFLIGHTS[profile.kind].needs(profile, sources)
    return needs


def cluster_checks(needs: ClusterNeeds) -> tuple[CheckGroup, ...]:
    """Checks of the cluster itself."""
    return PREFLIGHTS[needs.profile.kind].checks(needs)
