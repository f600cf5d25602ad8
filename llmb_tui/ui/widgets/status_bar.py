"""`StatusBar`: the top line with the selection and the cluster. The cluster's notice is always shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.reactive import reactive, var
from textual.widget import Widget

from llmb_tui.language.quantities import count, milliseconds
from llmb_tui.language.states import Label, link_label, probe_label
from llmb_tui.ui.text import line, state_mark

if TYPE_CHECKING:
    from llmb_tui.cluster.link import LinkHealth
    from llmb_tui.cluster.profile import ClusterProfile
    from llmb_tui.language.states import ProbeState
    from llmb_tui.wizard.state import WizardState

# In a narrower terminal the rail's line shows the selection.
_ABOUT_FROM_WIDTH = 100


def notice(profile: ClusterProfile, observed: bool) -> str:
    """Notice of a cluster's profile, and `read-only` if the program must not change it; may be empty."""
    return " · ".join(filter(None, (profile.notice, "read-only" if observed else "")))


class StatusBar(Widget):
    """Name of the program, the selection, and the cluster with its notice and the state of its connection."""

    state: var[WizardState | None] = var["WizardState | None"](None)
    about: reactive[str] = reactive("")
    cluster: reactive[str] = reactive("")
    link: reactive[ProbeState] = reactive["ProbeState"]("none")
    health: reactive[LinkHealth | None] = reactive["LinkHealth | None"](None)
    """Health of the connection by its heartbeat; None without a connection."""
    notice: reactive[str] = reactive("")

    def watch_state(self, state: WizardState | None) -> None:
        if state is None:
            return
        from llmb_tui.wizard.gates import read_only_reason

        full, profile = state.proposal.full, state.proposal.profile
        workload = (full.recipe or "").partition("@")[0]
        self.about = (
            f"{workload} {full.size} · {(full.gpu or '').upper()} · {full.dtype} · {count(full.scale or 0)} GPUs"
        )
        name, link = (profile.name, state.cluster.link) if profile else ("", "none")
        if name != self.cluster:
            self.health = None  # it belongs to the connection of the cluster before
        self.cluster, self.link = name, link
        self.notice = notice(profile, bool(read_only_reason(state))) if profile else ""

    def render(self) -> Content:
        """The name left, the selection in the middle, the cluster right; without room the selection is left out."""
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
        if self.health is None:
            label = probe_label(self.link)
            word = label.word if self.link in ("connecting", "failed") else ""
        else:
            label, word = _health_label(self.health, wide)
        notice = line((f" {self.notice} ", "reverse"), "  ") if self.notice else Content("")
        return notice + line(state_mark(label), self.cluster, f" {word}" if word else "", " ")


def _health_label(health: LinkHealth, wide: bool) -> tuple[Label, str]:
    """Label of an established connection and its text, which is short unless `wide`."""
    label = link_label(health.state)
    if health.state == "live":
        if health.note:  # an answer is late
            return link_label("connecting"), health.note
        trip = health.round_trip_s
        return label, "" if trip is None else milliseconds(trip)
    if health.state == "connecting":
        return label, health.note or label.word
    if health.state == "needs-login":
        return label, health.note if wide else label.word
    return label, f"{label.word}, {health.note}" if wide and health.note else label.word
