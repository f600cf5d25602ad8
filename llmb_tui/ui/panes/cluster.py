"""The pane for the cluster: the saved ones, how one answers, and what a preflight found there."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from llmb_tui.cluster.preflight.report import Check
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.ui.found import Found
from llmb_tui.ui.panes.pane import Give, Pane, label
from llmb_tui.ui.text import MUTED, line, told
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.choices import FindableChoices
from llmb_tui.ui.widgets.paragraphs import Paragraph, Paragraphs, text
from llmb_tui.wizard.choices import Choice
from llmb_tui.wizard.steps import StepId

_CHECKS = {"ok": ("✓", "$text-success"), "warning": ("!", "$text-warning"), "failed": ("✗", "$text-error")}
# What has to be mended is not looked for below what is well.
_FIRST = ("failed", "warning", "ok")
_TITLE = 19
# More of a login banner than this says nothing about the run.
_BANNER = 300


class ClusterPane(Pane):
    """Where the run shall run."""

    STEP = StepId.CLUSTER
    FINDABLE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "check", "Check", id="cluster.check", tooltip="Connect to the cluster and check it again"),
        Binding("n", "add", "New", id="cluster.new", tooltip="Enter another cluster"),
        Binding("e", "edit", "Edit", id="cluster.edit", tooltip="Change the chosen cluster"),
    ]

    class Picked(Message):
        """A saved cluster was chosen."""

        def __init__(self, profile_name: str) -> None:
            super().__init__()
            self.profile_name = profile_name

    class Asked(Message):
        """The chosen cluster is to be connected to and checked."""

    class Edit(Message):
        """A new cluster is to be entered, or the chosen one changed."""

        def __init__(self, profile: ClusterProfile | None) -> None:
            super().__init__()
            self.profile = profile

    def __init__(self, give: Give) -> None:
        super().__init__(give)
        self._list = FindableChoices(self._pick, id="clusters")
        self._profiles: tuple[ClusterProfile, ...] = ()
        self._chosen: ClusterProfile | None = None
        self._ready = False

    def compose(self) -> ComposeResult:
        """The list, and under it what was found."""
        yield label("Saved clusters")
        yield self._list
        yield Paragraphs(id="link")
        yield Paragraphs(id="checks")

    def offer(self, profiles: tuple[ClusterProfile, ...]) -> None:
        """Show these saved clusters."""
        self._profiles = profiles

    def show(self, view: View) -> None:
        """The chosen cluster, its connection, its checks."""
        found = view.found
        self._chosen = found.profile
        self._ready = found.link == "connected" and found.preflight is not None and found.preflight.passed
        choices = tuple(Choice(p.name, p.name, _where(p)) for p in self._profiles)
        self._list.show(choices, found.profile.name if found.profile else "")
        self.query_one("#link", Paragraphs).parts = link_parts(found)
        known = found.preflight or found.checked
        checks = sorted(known.checks, key=lambda check: _FIRST.index(check.status)) if known else []
        self.query_one("#checks", Paragraphs).parts = tuple(part for check in checks for part in check_parts(check))

    def enter(self) -> None:
        """Connect first; go on when the cluster is ready."""
        if self._ready:
            super().enter()
        else:
            self.action_check()

    def action_check(self) -> None:
        """Connect and check; without a cluster, enter one."""
        self.post_message(self.Asked() if self._chosen is not None else self.Edit(None))

    def action_add(self) -> None:
        """Enter another cluster."""
        self.post_message(self.Edit(None))

    def action_edit(self) -> None:
        """Change the chosen cluster."""
        self.post_message(self.Edit(self._chosen))

    def _pick(self, name: str) -> None:
        self.post_message(self.Picked(name))


def link_parts(found: Found) -> tuple[Paragraph, ...]:
    """How the cluster answers, in glyph and words."""
    if found.profile is None:
        return (text(line(("No cluster is chosen: n enters a new one.", MUTED))),)
    if found.link != "connected":
        heads = {
            "connecting": ("◐ connecting …", "$text-warning"),
            "failed": ("✗ no connection", "$text-error"),
        }
        parts = [text(line(heads.get(found.link, ("○ not asked yet: enter connects and checks", MUTED))))]
    else:
        word = ""
        if "look" in found.doing:
            done = f" {len(found.checked.checks)} done" if found.checked else ""
            word = f"checking …{done}" if found.preflight is None else "looking at what is installed …"
        parts = [text(line(("● connected", "$text-success"), f"   {word}"))]
        if found.banner.strip():
            parts.append(text(line((" ".join(found.banner.split())[:_BANNER], MUTED))))
    trouble = found.trouble_of("look")
    if trouble is not None:
        parts.append(text(told(trouble)))
    return tuple(parts)


def check_parts(check: Check) -> tuple[Paragraph, ...]:
    """One check: what was found, and where that is not enough what is needed and how to mend it."""
    glyph, style = _CHECKS[check.status]
    word = "" if check.status == "ok" else f"{check.status}: "
    head = (line((f"{glyph} ", style), (f"{check.title:<{_TITLE}}", "bold")), line((word, style), check.found))
    if check.status == "ok":
        return (head,)
    needed = (line("  ", (f"{'needed':<{_TITLE}}", MUTED)), line(check.needed))
    mend = (line(("  → ", "$text-accent")), line(check.mend))
    return (head, needed, mend) if check.mend else (head, needed)


def _where(profile: ClusterProfile) -> str:
    user = f"{profile.user}@" if profile.user else ""
    port = f":{profile.port}" if profile.port else ""
    return f"{user}{profile.host}{port}  {profile.partition}"
