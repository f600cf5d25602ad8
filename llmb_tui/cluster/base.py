"""`ClusterBase`: what clusters of every kind have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from llmb_tui.cluster.failures import Disconnected, ObserverMode, Unreachable
from llmb_tui.cluster.link import LinkState
from llmb_tui.cluster.profile import ClusterProfile

T = TypeVar("T")
_ASKED_AGAIN = 2


class ClusterBase:
    """Observer mode, and patience with a connection that breaks."""

    profile: ClusterProfile
    read_only: bool

    @property
    def state(self) -> LinkState:
        """Of the connection."""
        raise NotImplementedError

    def require_changes(self) -> None:
        """Raise `ObserverMode` where the cluster is only looked at: called by whatever would change it."""
        if self.read_only:
            raise ObserverMode(self.profile)

    def patiently(self, ask: Callable[[], T]) -> T:
        """What `ask` answers, which only looks: asked again, twice at most, where the connection breaks meanwhile.

        Raises what `ask` raises.
        """
        for _ in range(_ASKED_AGAIN):
            try:
                return ask()
            except (Disconnected, Unreachable):
                if self.state == "closed":
                    raise
        return ask()
