"""`read_runai`: what a project on Run:ai has to choose from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from llmb_tui.cluster.runai.cluster import RunaiCluster
from llmb_tui.cluster.runai.failures import ApiTrouble
from llmb_tui.cluster.runai.values import Claim, Credential, NodePool, Project

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunaiInventory:
    """What the project has, as far as the application may ask."""

    project: Project
    node_pools: tuple[NodePool, ...] = ()
    claims: tuple[Claim, ...] = ()
    credentials: tuple[Credential, ...] = ()
    not_asked: tuple[str, ...] = ()
    """What it may not ask, a sentence each."""


def read_runai(cluster: RunaiCluster) -> RunaiInventory:
    """Ask for it. Raises Trouble where not even the project is seen."""
    api, project, not_asked = cluster.api, cluster.patiently(cluster.project), []

    def ask(question: Callable[[], list[T]]) -> tuple[T, ...]:
        try:
            return tuple(cluster.patiently(question))
        except ApiTrouble as trouble:
            not_asked.append(f"{trouble.what} {trouble.why}".rstrip())
            return ()

    pools = ask(lambda: api.node_pools(project.cluster_id))
    claims = ask(lambda: api.claims(project.id))
    credentials = ask(lambda: api.credentials(project.id))
    return RunaiInventory(project, pools, claims, credentials, tuple(not_asked))
