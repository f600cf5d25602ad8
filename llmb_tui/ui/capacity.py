"""`capacity`: how many nodes the partition of a cluster has, and how many of them are free. Asks the cluster."""

from __future__ import annotations

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.results.suite.draft_plan import Nodes
from llmb_tui.results.suite.suite_plan import all_nodes, free_nodes
from llmb_tui.services import Services


def capacity(services: Services, profile: ClusterProfile, prompter: Prompter | None = None) -> Nodes:
    """In a thread. Nothing is known where it has no partitions. `prompter` answers what connecting asks.

    Raises Trouble.
    """
    if profile.no_login_node:
        return Nodes(askable=False)
    partitions = services.clusters.inventory(profile, prompter).partitions
    return Nodes(free_nodes(partitions, profile), all_nodes(partitions, profile))
