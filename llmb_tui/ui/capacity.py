"""`capacity`: how many nodes the partition of a cluster has, and how many of them are free. Asks the cluster."""

from __future__ import annotations

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.results.suite.suite_plan import Nodes, nodes_of
from llmb_tui.services import Services


def capacity(services: Services, profile: ClusterProfile, prompter: Prompter | None = None) -> Nodes:
    """In a thread. Nothing is known where it has no partitions. `prompter` answers what connecting asks.

    Raises Trouble.
    """
    if profile.no_login_node:
        return Nodes(askable=False)
    return nodes_of(services.clusters.inventory(profile, prompter).partitions, profile)
