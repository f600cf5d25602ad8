"""`Target`: everything that a preflight checks, gathered before it begins."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.preflight.check_group import CheckGroup
from llmb_tui.preflight.needs import ClusterNeeds, Sources
from llmb_tui.preflight.secret import SecretNeed


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster with what one request needs there, or the cluster alone."""

    needs: ClusterNeeds
    """With the cluster's profile, and so the account, and with the container image."""
    sources: Sources
    surveys: tuple[CheckGroup, ...] = ()
    """Checks of what other programs have installed there. They gate nothing."""
    keys: tuple[SecretNeed, ...] = ()
    """Keys whose access is tested."""
    further: tuple[CheckGroup, ...] = ()
    """Checks that only the chosen procedure has."""
