"""A session whose line breaks around one of its remote calls, at a call and in a way that the test selects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from llmb_tui.cluster.failures import DisconnectedError
from llmb_tui.cluster.link import Completed
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile

When = Literal["never sent", "command lost", "answer lost"]
WHENS: tuple[When, ...] = ("never sent", "command lost", "answer lost")


class CuttingSession(SlurmCluster):
    """A real session; the line is cut by `cut` at the remote call number `at`, counted from 1.

    `never sent`: before the call, and the program knows it. `command lost`: the call did not arrive, but the program
    cannot know. `answer lost`: the cluster carried out the call, and its answer did not arrive.
    """

    def __init__(
        self, profile: SlurmProfile, cut: Callable[[], object] = lambda: None, at: int = 0, when: When = "answer lost"
    ) -> None:
        super().__init__(profile)
        self.at = at
        self.calls = 0
        self.cut, self._when = cut, when

    def run_script(self, *words: Any, **options: Any) -> Completed:
        self.calls += 1
        if self.calls != self.at:
            return super().run_script(*words, **options)
        if self._when == "answer lost":
            super().run_script(*words, **options)
        self.cut()
        raise DisconnectedError("The connection broke.", may_have_run=self._when != "never sent")
