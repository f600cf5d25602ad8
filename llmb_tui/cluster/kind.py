"""`ClusterKind`: what the folder of a kind of cluster hands to the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.scheduler_words import JobWords

if TYPE_CHECKING:
    from llmb_tui.cluster.cluster import Cluster
    from llmb_tui.cluster.profile_fields import ProfileField

P = TypeVar("P", bound=ClusterProfile)


def _nothing(_: object) -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class ClusterKind(Generic[P]):
    """One kind of cluster. Its name is the `kind` of its profiles."""

    profile: type[P]
    words: JobWords
    fields: tuple[ProfileField, ...]
    """Fields of a profile that the user may enter."""
    example: str
    """Flags of `clusters add` with which the profile is complete."""
    check: Callable[[P], None]
    """Raises WrongField, naming the first field of a profile that cannot be right."""
    profile_of: Callable[[dict[str, str]], P]
    """Makes a profile of the texts of all fields. Raises WrongField."""
    open: Callable[[P], Cluster]
    """Makes the cluster of a profile, not connected."""
    usual: Callable[[Mapping[str, str]], dict[str, str]] = _nothing
    """Reads the texts that fields begin with from environment variables, by field."""
    secrets: Callable[[P], dict[str, str]] = _nothing
    """Reads the secrets that this computer holds for a profile, by description."""
