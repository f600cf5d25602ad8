"""`site_variables`: what a login shell of the cluster sets and its profile may take over."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.preflight.report import NETWORK_VARIABLES, PATH_VARIABLES
from llmb_tui.wizard.effects import Notify
from llmb_tui.wizard.gates import no_login_node
from llmb_tui.wizard.state import WizardState


@dataclass(frozen=True, slots=True)
class SiteVariables:
    """Variables of a login shell that jobs on a cluster lack."""

    profile: ClusterProfile
    network: tuple[tuple[str, str], ...]
    """(name, value); taken together."""
    paths: tuple[tuple[str, str], ...]
    """(name, value); asked for one by one."""


def site_variables(state: WizardState) -> SiteVariables | Notify:
    """The variables by the last check of the cluster, or the reason that there are none."""
    if why_not := no_login_node(state):
        return Notify(why_not)
    profile, preflight = state.proposal.profile, state.cluster.preflight
    if profile is None or preflight is None:
        return Notify("The cluster was not checked yet: c connects and checks.")
    variables = {check.id: check.variables for check in preflight.checks}
    network, paths = variables.get(NETWORK_VARIABLES, ()), variables.get(PATH_VARIABLES, ())
    if not network and not paths:
        return Notify("A login shell there sets nothing that a job would lack.", "information")
    return SiteVariables(profile, network, paths)
