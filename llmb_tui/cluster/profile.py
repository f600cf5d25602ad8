"""`ClusterProfile`: the saved settings of a cluster, for each kind of cluster. A profile never holds a secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Protocol

LATER: Mapping[str, Any] = {"later": True}
"""Metadata of a profile's field that earlier versions do not have: documents omit it if it has no value."""


@dataclass(frozen=True, slots=True)
class PrivateNames:
    """Names that an anonymous export must hide."""

    host: str
    user: str = ""
    nodes: str = ""
    """Slurm host list of nodes."""


class ClusterProfile(Protocol):
    """One saved cluster: a frozen dataclass in the folder of its kind."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    kind: ClassVar[str]
    """Name of the kind of cluster in the registry (`kinds.KINDS`)."""
    can_suspend: ClassVar[bool]
    """Whether its users may suspend jobs."""
    no_login_node: ClassVar[str]
    """Reason why commands cannot run on a login node; empty for a kind of cluster that has one."""

    @property
    def name(self) -> str:
        """Name that the user gave the cluster."""

    @property
    def mounts(self) -> tuple[str, ...]:
        """Additional container mounts, in the notation of the kind."""

    @property
    def env(self) -> tuple[tuple[str, str], ...]:
        """Additional environment variables of the training, (name, value); no secrets."""

    @property
    def read_only(self) -> bool:
        """Read-only: nothing is submitted, cancelled or otherwise changed there."""

    @property
    def notice(self) -> str | None:
        """Text to show next to the cluster's name, such as `simulated, clock x30`."""

    @property
    def place(self) -> str:
        """Host of the connection."""

    @property
    def share(self) -> str:
        """Part of the cluster that runs the jobs, and their account or quota."""

    @property
    def directory(self) -> str:
        """Directory on the cluster that persists between jobs."""

    @property
    def partitions(self) -> tuple[str, ...]:
        """Partitions that its jobs may use; empty for a kind of cluster that has none."""

    @property
    def names(self) -> PrivateNames:
        """Names in the profile that an anonymous export replaces."""

    @property
    def route(self) -> tuple[object, ...]:
        """All values that decide the host and the user of a connection. Profiles with the same route share one."""

    def __hash__(self) -> int:
        """Hash of all fields."""
