"""`Target`: everything that a preflight checks, collected before it begins."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.preflight.check_group import CheckGroup
from llmb_tui.preflight.needs import ClusterNeeds, Sources
from llmb_tui.preflight.secret import SecretNeed


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster with the requirements of one request, or the cluster alone."""

    needs: ClusterNeeds
    """Requirements, with the cluster's profile and the container image."""
    sources: Sources
    surveys: tuple[CheckGroup, ...] = ()
    """Checks of other programs' installs there. They do not block."""
    keys: tuple[SecretNeed, ...] = ()
    """API keys to test."""
    further: tuple[CheckGroup, ...] = ()
    """Checks of the chosen procedure."""
