"""`BackgroundWatch`: a run's monitor in a thread, with every state that it publishes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from llmb_tui.cluster.prompter import Prompter
from llmb_tui.watch.monitor import Monitor
from llmb_tui.watch.state import RunState
from tests.kit.waiting import DEADLINE_S, until


class BackgroundWatch:
    """A run that is watched in a separate thread, as the screen does."""

    def __init__(self, monitor: Monitor, prompter: Prompter | None = None, *, deadline_s: float = DEADLINE_S) -> None:
        self.states: list[RunState] = []
        self.times: list[float] = []
        """Times of the states on the monotonic clock."""
        self.stop = threading.Event()
        self.result: RunState | None = None
        self.monitor, self._prompter, self._deadline_s = monitor, prompter, deadline_s
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def wait_for(self, condition: Callable[[RunState], object], what: str = "", *, after: int = 0) -> RunState:
        """Wait for a published state that fulfils the condition; ignores the first `after` states."""

        def find_state() -> RunState | None:
            running = self._thread.is_alive()
            state = next((state for state in self.states[after:] if condition(state)), None)
            assert state or running, f"the monitor ended without: {what}; the last state is {self.states[-1:]}"
            return state

        try:
            return until(find_state, what or "a state", self._deadline_s)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; the last state is {self.states[-1:]}") from None

    def end(self) -> RunState:
        """Wait for the monitor's end; returns its last state."""
        self._thread.join(self._deadline_s)
        assert self.result is not None, f"the monitor has not ended: {self.states[-1:]}"
        return self.result

    def _watch(self) -> None:
        self.result = self.monitor.watch(self._publish, self.stop, self._prompter)

    def _publish(self, state: RunState) -> None:
        self.times.append(time.monotonic())
        self.states.append(state)
