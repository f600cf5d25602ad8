"""`RunaiInstall`: nothing has to be installed: the nodes pull the image, and our files travel with the workload."""

from __future__ import annotations

import threading
from collections.abc import Callable

from llmb_tui.errors import Trouble
from llmb_tui.launch.step_state import StepState


class RunaiInstall:
    """What a workload brings along, as steps that are always done."""

    def __init__(self, image: str) -> None:
        self._steps = (
            StepState("image", f"Container image {image}", "done", "each node pulls it when the workload starts"),
            StepState("files", "Entry script and settings", "done", "they travel with the workload"),
        )

    def probe(self) -> tuple[StepState, ...]:
        """Nothing is asked."""
        return self._steps

    def run(
        self,
        on_change: Callable[[tuple[StepState, ...]], None],
        stop: threading.Event,  # noqa: ARG002 - of the protocol, as below
        on_silence: Callable[[Trouble], None] = lambda _: None,  # noqa: ARG002
    ) -> tuple[StepState, ...]:
        """Nothing is done."""
        on_change(self._steps)
        return self._steps
