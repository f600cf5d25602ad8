"""`ToyProfile`: the directory that is the queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from llmb_tui.cluster.profile import PrivateNames


@dataclass(frozen=True, slots=True)
class ToyProfile:
    """One saved cluster with the toy scheduler."""

    kind: ClassVar[str] = "toy"
    can_suspend: ClassVar[bool] = False
    no_login_node: ClassVar[str] = "The toy's queue is a directory of this machine."

    name: str
    queue: str
    """Directory with a file of each job's state, `ID.job`, and with the jobs' logs."""
    mounts: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    read_only: bool = False
    notice: str | None = None

    @property
    def place(self) -> str:
        return "this machine"

    @property
    def share(self) -> str:
        return "the whole queue"

    @property
    def directory(self) -> str:
        return self.queue

    @property
    def partitions(self) -> tuple[str, ...]:
        return ()

    @property
    def names(self) -> PrivateNames:
        return PrivateNames("")

    @property
    def route(self) -> tuple[object, ...]:
        return (self.kind, self.queue)
