"""`StatusBar`: the one line at the top: what, and on which cluster. A cluster's notice is always in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive, var
from textual.widget import Widget

from llmb_tui.ui.text import MUTED, line

if TYPE_CHECKING:
    from llmb_tui.cluster.link import LinkHealth
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.language.states import ProbeState
    from llmb_tui.wizard.state import WizardState

# In a narrower terminal the rail's one line says what is chosen.
_ABOUT_FROM_WIDTH = 100
# Glyph, style and word: a colour alone says nothing.
_LINKS: dict[ProbeState, tuple[str, str, str]] = {
    "none": ("", "", ""),
    "unknown": ("○", MUTED, ""),
    "connecting": ("◐", "$text-warning", "connecting"),
    "connected": ("●", "$text-success", ""),
    "failed": ("✗", "$text-error", "no connection"),
}


def notice(profile: ClusterProfile, observed: bool) -> str:
    """What its profile wants said, and that it is only looked at; empty for nothing."""
    return " · ".join(filter(None, (profile.notice, "observer mode" if observed else "")))


class StatusBar(Widget):
    """Name of the program, what is chosen, the cluster with the state of its connection and its notice."""

    state: var[WizardState | None] = var["WizardState | None"](None)
    about: reactive[str] = reactive("")
    cluster: reactive[str] = reactive("")
    link: reactive[ProbeState] = reactive["ProbeState"]("none")
    health: reactive[LinkHealth | None] = reactive["LinkHealth | None"](None)
    """How the connection is by its own heartbeat; None while there is none."""
    notice: reactive[str] = reactive("")

    def watch_state(self, state: WizardState | None) -> None:
        if state is None:
            return
        from llmb_tui.wizard.gates import observed

        full, profile = state.proposal.full, state.proposal.profile
        workload = (full.recipe or "").partition("@")[0]
        self.about = f"{workload} {full.size} · {(full.gpu or '').upper()} · {full.dtype} · {full.scale} GPUs"
        name, link = (profile.name, state.cluster.link) if profile else ("", "none")
        if name != self.cluster:
            self.health = None  # that of another one's connection
        self.cluster, self.link = name, link
        self.notice = notice(profile, bool(observed(state))) if profile else ""

    def render(self) -> Content:
        """Left the name, in the middle the choice, right the cluster; the choice gives way first."""
        left = line((" llmb-tui", "bold"))
        right = self._cluster()
        room = self.size.width - left.cell_length - right.cell_length
        middle = line(self.about if self.size.width >= _ABOUT_FROM_WIDTH and len(self.about) + 4 <= room else "")
        gap = max(room - middle.cell_length, 1)
        before = max(min(self.size.width // 2 - middle.cell_length // 2 - left.cell_length, gap - 2), 1)
        return left + " " * before + middle + " " * (gap - before) + right

    def _cluster(self) -> Content:
        if not self.cluster:
            return Content("")
        wide = self.size.width >= _ABOUT_FROM_WIDTH
        glyph, style, word = _LINKS[self.link] if self.health is None else _felt(self.health, wide)
        notice = line((f" {self.notice} ", "reverse"), "  ") if self.notice else Content("")
        return notice + line((glyph, style), " ", self.cluster, f" {word}" if word else "", " ")


def _felt(health: LinkHealth, wide: bool) -> tuple[str, str, str]:
    """Glyph, style and words for a connection that was made; few words unless there is room."""
    if health.state == "live":
        if health.note:
            return "◐", "$text-warning", health.note
        trip = health.round_trip_s
        return "●", "$text-success", "" if trip is None else f"{trip * 1000:.0f} ms"
    if health.state == "connecting":
        return "◐", "$text-warning", health.note or "connecting"
    if health.state == "needs-login":
        return "✗", "$text-error", health.note if wide else "log in again"
    return "✗", "$text-error", f"link lost, {health.note}" if wide and health.note else "link lost"
