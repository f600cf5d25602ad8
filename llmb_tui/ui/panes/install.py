"""The pane for the install: its steps, where each stands, and the last line of the one that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from llmb_tui.ui.found import Found
from llmb_tui.ui.panes.pane import Give, Pane, label
from llmb_tui.ui.text import MUTED, line, told
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.gauge import gauge
from llmb_tui.ui.widgets.paragraphs import Paragraph, Paragraphs, text
from llmb_tui.ui.widgets.scroller import Scroller
from llmb_tui.wizard.steps import StepId

if TYPE_CHECKING:
    from llmb_tui.launch.install import StepState
    from llmb_tui.launch.secret import SecretId
    from llmb_tui.plan.plan import Plan
    from llmb_tui.plan.selection import Procedure

_STATUS = {
    "missing": ("○ missing", MUTED),
    "running": ("◐ running", "$text-warning"),
    "done": ("✓ done   ", "$text-success"),
    "failed": ("✗ failed ", "$text-error"),
}


_INDENT = Content(" " * 11)


class InstallPane(Pane):
    """What has to be on the cluster before the run."""

    STEP = StepId.INSTALL
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "start", "Install", id="install.start", tooltip="Start the install, or go on with it"),
        Binding("K", "keys", "Keys…", id="install.keys", tooltip="The registry's key and the model hub's token"),
    ]

    class Start(Message):
        """The missing steps are to be run."""

    class Keys(Message):
        """The keys of the registry and the model hub are wanted."""

        def __init__(self, profile_name: str, plan: Plan, procedure: Procedure, wanted: SecretId | None = None) -> None:
            super().__init__()
            self.profile_name = profile_name
            self.plan = plan
            self.procedure = procedure
            self.wanted = wanted
            """The one that a step lacks."""

    def __init__(self, give: Give) -> None:
        super().__init__(give)
        self._done = False
        self._busy = False
        self._for: tuple[str, Plan, Procedure] | None = None
        self._wanted: SecretId | None = None

    def compose(self) -> ComposeResult:
        """Progress on top, then the steps."""
        yield label("Install", "runs on the cluster by itself")
        yield Paragraphs(id="install-progress")
        with Scroller(id="install-steps"):
            yield Paragraphs(id="install-rows")

    def show(self, view: View) -> None:
        """Steps and progress."""
        found = view.found
        self._for = (found.profile.name, view.plan, found.procedure) if found.profile and view.plan else None
        self._wanted = found.key_would_help
        self._done = found.installed
        self._busy = "install" in found.doing
        self.query_one("#install-progress", Paragraphs).parts = progress(found)
        parts = [part for step in found.steps for part in step_parts(step)]
        trouble = found.trouble_of("install")
        if trouble is not None:
            parts += [text(Content("")), text(told(trouble))]
        self.query_one("#install-rows", Paragraphs).parts = tuple(parts)

    def enter(self) -> None:
        """Install first; go on when everything is there."""
        if self._done:
            super().enter()
        else:
            self.action_start()

    def action_start(self) -> None:
        """Start, or go on."""
        if not self._busy and not self._done:
            self.post_message(self.Start())

    def action_keys(self) -> None:
        """Show where the keys are, and give one."""
        if self._for is not None:
            self.post_message(self.Keys(*self._for, self._wanted))


def progress(found: Found) -> tuple[Paragraph, ...]:
    """How far the install is, and what can be done."""
    if not found.steps:
        words = {"connecting": "connecting …", "connected": "looking at what is there …"}
        return (text(line((words.get(found.link, "The cluster comes first: step 4."), MUTED))),)
    done = sum(step.status == "done" for step in found.steps)
    hint = "enter installs what is missing" if done == 0 else "enter goes on with it"
    if "install" in found.doing:
        hint = "running; it goes on when you leave"
    elif done == len(found.steps):
        hint = "everything is there: enter goes on"
    which = "published" if found.procedure == "recipe" else "direct"
    return (
        text(gauge(done, len(found.steps), 24) + line(f"  {done} of {len(found.steps)}")),
        text(line((f"for the {which} procedure; {hint}", MUTED))),
    )


def step_parts(step: StepState) -> tuple[Paragraph, ...]:
    """One step; the last line of its log while it is not done."""
    word, style = _STATUS[step.status]
    head = (line((word, style), "  "), line((step.title, "bold"), (f"   {step.size}" if step.size else "", MUTED)))
    rows: list[Paragraph] = [head]
    if step.detail and step.status != "done":
        rows.append((_INDENT, line((step.detail, MUTED))))
    if step.reason:
        rows.append((_INDENT, line(step.reason)))
    if step.fix:
        rows.append((_INDENT + line(("→ ", "$text-accent")), line(step.fix)))
    if step.key_would_help:
        rows.append((_INDENT, line(("K gives a key.", MUTED))))
    return tuple(rows)
