"""A session over a line that is cut within its remote calls, after a given number of bytes in either direction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from llmb_tui.cluster.link import Completed
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from tests.rig.line import Line

T = TypeVar("T")


@dataclass(frozen=True)
class Cut:
    """A cut of the line within the remote call `call`, counted from 1."""

    call: int
    up: int | None = None
    """Number of bytes to the cluster before the cut; 0: before the call is sent."""
    down: int | None = None
    """Number of bytes from the cluster before the cut; 0: before the first byte."""
    stays: bool = False
    """Keep the line cut: no connection is possible before `accept`."""


class CutSession(SlurmCluster):
    """A real session over a `Line`. It makes the `cuts` within its calls; `sizes` are the bytes of each call."""

    def __init__(self, profile: SlurmProfile, line: Line, *cuts: Cut) -> None:
        super().__init__(line.profile(profile))
        self.calls = 0
        self.sizes: list[tuple[int, int]] = []
        """Bytes up and down, one pair for each call."""
        self._line = line
        self._cuts = {cut.call: cut for cut in cuts}

    def run_script(self, *words: Any, **options: Any) -> Completed:
        return self._call(lambda: super(CutSession, self).run_script(*words, **options))

    def write_file(self, path: str, data: bytes) -> None:
        self._call(lambda: super(CutSession, self).write_file(path, data))

    def _call(self, call: Callable[[], T]) -> T:
        self.connect()  # only the bytes of the call are counted
        self.calls += 1
        if cut := self._cuts.get(self.calls):
            self._line.cut_after(bytes_up=cut.up, bytes_down=cut.down)
            if cut.stays:
                self._line.refuse()
        up, down = self._line.bytes_up, self._line.bytes_down
        try:
            return call()
        finally:
            self.sizes.append((self._line.bytes_up - up, self._line.bytes_down - down))
