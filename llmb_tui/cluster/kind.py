"""`ClusterKind`: what the folder of a kind of cluster hands to the registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from llmb_tui.cluster.profile import ClusterProfile

if TYPE_CHECKING:
    from llmb_tui.cluster.cluster import Cluster

P = TypeVar("P", bound=ClusterProfile)


@dataclass(frozen=True, slots=True)
class ClusterKind(Generic[P]):
    """One kind of cluster. Its name is the `kind` of its profiles."""

    profile: type[P]
    check: Callable[[P], None]
    """Raises WrongField, naming the first field of a profile that cannot be right."""
    open: Callable[[P], Cluster]
    """The cluster of a profile, not connected."""
