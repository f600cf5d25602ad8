"""`LinkHealth`: what is known of a session's link, for a screen to show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llmb_tui.cluster.link import Pulse

LinkState = Literal["connecting", "live", "lost", "needs-login", "closed"]
Bulk = Literal["own", "shared"]

# An answer that is this late is worth a word; one that takes as long as a slow line does is not.
_LATE_S = 3.0


@dataclass(frozen=True, slots=True)
class LinkHealth:
    """A snapshot. A Slurm controller that hangs behind a live link does not show in it."""

    state: LinkState
    round_trip_s: float | None
    """Of the last heartbeat; None before the first, and on this machine."""
    silent_s: float
    """Seconds since anything was received; 0.0 without a live link."""
    note: str
    """What is wrong, or is being done about it, in words; empty when all is well."""
    bulk: Bulk
    """Whether long streams have a connection of their own at this moment."""


def note(state: LinkState, pulse: Pulse, *, trying_again: bool, next_try_s: float | None) -> str:
    """The words for a state. `next_try_s`: seconds until a lost link is tried again by itself; None: it is not."""
    if state == "live" and pulse.awaited_s >= _LATE_S:
        return f"no answer for {pulse.silent_s:.0f} s"
    if state == "needs-login":
        return "needs you to log in again"
    if state == "connecting" and trying_again:
        return "trying again"
    if state == "lost":
        if next_try_s is None:
            return "tried again when it is next used"
        return f"trying again in {next_try_s:.0f} s" if next_try_s >= 1 else "trying again"
    return ""
