"""`Looks`: when a cluster is looked at: when a person asks, and by itself once the answers rest."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import Screen
from textual.timer import Timer

from llmb_tui.plan.plan import Plan
from llmb_tui.ui.found import Found
from llmb_tui.ui.prompter import ModalPrompter
from llmb_tui.ui.work import ClusterWork

# A look at the cluster waits until the answers rest this long, seconds.
_REST_S = 0.8


class Looks:
    """`chosen` says what was found so far and the plan to look for, at the moment of the look."""

    def __init__(
        self,
        screen: Screen[None],
        work: ClusterWork,
        prompter: ModalPrompter,
        chosen: Callable[[], tuple[Found, Plan | None]],
    ) -> None:
        self._screen = screen
        self._work = work
        self._prompter = prompter
        self._chosen = chosen
        self._tried: set[str] = set()
        self._rest: Timer | None = None

    def soon(self) -> None:
        """Look once nothing was answered for a moment, if there is a reason to."""
        if self._rest is not None:
            self._rest.stop()
        self._rest = self._screen.set_timer(_REST_S, self._rested)

    def now(self, quiet: bool) -> None:
        """Look, unless the cluster is busy with an install or a submission. A quiet look was asked for by nobody."""
        found, plan = self._chosen()
        if found.profile is None or plan is None or found.doing & {"install", "submit"}:
            return
        if not quiet:
            self._prompter.quiet = False
        self._tried.add(found.profile.name)
        self._work.look(found.profile, plan, found.procedure, quiet)

    def _rested(self) -> None:
        """Look at a saved cluster by itself, so that one that answers is ticked before it is asked for."""
        found, _ = self._chosen()
        fresh = found.link == "unknown" and found.profile is not None and found.profile.name not in self._tried
        stale = found.link == "connected" and found.preflight is None
        if (fresh or stale) and not found.doing:
            self.now(quiet=True)
