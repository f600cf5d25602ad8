"""`ClusterKind`: the registry's entry for one kind of cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from llmb_tui.cluster.job import Job
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.scheduler_words import JobWords

if TYPE_CHECKING:
    from llmb_tui.cluster.cluster import Cluster
    from llmb_tui.cluster.profile_fields import ProfileField

P = TypeVar("P", bound=ClusterProfile)


def _nothing(_: object) -> dict[str, str]:
    return {}


def _no_gpus(_: str) -> list[tuple[str, str]]:
    return []


@dataclass(frozen=True, slots=True)
class ClusterKind(Generic[P]):
    """One kind of cluster. Its name is the `kind` of its profiles."""

    profile: type[P]
    words: JobWords
    fields: tuple[ProfileField, ...]
    """Fields of a profile that the user may enter."""
    example: str
    """Example of flags for `clusters add` that make a complete profile."""
    check: Callable[[P], None]
    """Raises InvalidFieldError for the first invalid field of a profile."""
    profile_of: Callable[[dict[str, str]], P]
    """Makes a profile of the texts of all fields. Raises InvalidFieldError."""
    open: Callable[[P], Cluster]
    """Makes the cluster of a profile, not connected."""
    accounted: Callable[[str], list[Job]]
    """Reads the starts of jobs in kept accounting. Raises ValueError, TypeError and AttributeError for another form."""
    accounted_gpus: Callable[[str], list[tuple[str, str]]] = _no_gpus
    """Reads the GPU types in kept accounting, each with its line."""
    usual: Callable[[Mapping[str, str]], dict[str, str]] = _nothing
    """Reads initial texts of fields from environment variables, by field."""
    secrets: Callable[[P], dict[str, str]] = _nothing
    """Reads the secrets that this computer holds for a profile, by description."""
