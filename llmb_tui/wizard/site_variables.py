"""`site_variables`: variables of the cluster's login shell that its profile may adopt."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.preflight.report import NETWORK_VARIABLES, PATH_VARIABLES
from llmb_tui.wizard.effects import Notify
from llmb_tui.wizard.gates import no_login_node
from llmb_tui.wizard.state import WizardState


@dataclass(frozen=True, slots=True)
class SiteVariables:
    """Variables that a login shell sets and jobs on the cluster lack."""

    profile: ClusterProfile
    network: tuple[tuple[str, str], ...]
    """(name, value); adopted all together."""
    paths: tuple[tuple[str, str], ...]
    """(name, value); each needs its own confirmation."""


def site_variables(state: WizardState) -> SiteVariables | Notify:
    """The variables that the last check of the cluster found, or a message why there are none."""
    if why_not := no_login_node(state):
        return Notify(why_not)
    profile, preflight = state.proposal.profile, state.cluster.preflight
    if profile is None or preflight is None:
        return Notify("The cluster has not been checked yet. Press c to connect and check it.")
    variables = {check.id: check.variables for check in preflight.checks}
    network, paths = variables.get(NETWORK_VARIABLES, ()), variables.get(PATH_VARIABLES, ())
    if not network and not paths:
        return Notify("A login shell on this cluster sets no variable that jobs lack.", "information")
    return SiteVariables(profile, network, paths)
