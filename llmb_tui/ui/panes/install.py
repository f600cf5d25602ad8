"""The pane for the install: its steps, where each stands, and the last line of the one that runs."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from llmb_tui.language.states import install_label
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.launch.step_state import StepState
from llmb_tui.ui.panes.pane import Pane
from llmb_tui.ui.text import MUTED, error_content, line, set_text, state_part
from llmb_tui.ui.units import gauge
from llmb_tui.ui.widgets.texts import Paragraph, Paragraphs, Scroller, text
from llmb_tui.wizard.gates import first_error, no_login_node, observed
from llmb_tui.wizard.state import ClusterState, WizardState
from llmb_tui.wizard.steps import StepId

_STATE = 9
"""Cells of the longest state of a step."""
_INDENT = Content(" " * (_STATE + 2))


class InstallPane(Pane):
    """What has to be on the cluster before the run."""

    STEP = StepId.INSTALL
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "s", "screen.ask('install')", "Install", id="install.start", tooltip="Start the install, or go on with it"
        ),
        Binding(
            "K",
            "screen.ask('keys')",
            "Keys…",
            id="install.keys",
            tooltip="The registry's key and the model hub's token",
        ),
    ]

    def compose(self) -> ComposeResult:
        yield Static(id="install-title", classes="label first", markup=False)
        yield Paragraphs(id="install-progress")
        with Scroller(id="install-steps"):
            yield Paragraphs(id="install-rows")

    def show(self, state: WizardState) -> None:
        from llmb_tui.launch.procedure_loader import procedure

        hint = procedure(state.procedure).install_hint
        set_text(self.query_one("#install-title", Static), line(("Install", "b"), "  ", (hint, "dim")))
        self.query_one("#install-progress", Paragraphs).parts = progress(state)
        self.query_one("#install-rows", Paragraphs).parts = rows(state.cluster)


def progress(state: WizardState) -> tuple[Paragraph, ...]:
    """How far the install is, and what can be done."""
    cluster = state.cluster
    if not cluster.steps:
        return (text((_unknown(state), MUTED)),)
    done = sum(step.status == "done" for step in cluster.steps)
    hint = "enter installs what is missing" if done == 0 else "enter goes on with it"
    if "install" in cluster.tasks or state.installs_here:
        hint = "running; what runs now goes on when you leave"
    elif done == len(cluster.steps):
        hint = "everything is there: enter goes on"
    elif why_not := observed(state) or first_error(state):
        hint = why_not
    keys = no_login_node(state)
    return (
        text(gauge(done, len(cluster.steps), 24) + line(f"  {done} of {len(cluster.steps)}")),
        text((f"{PROCEDURES[state.procedure].title}; {hint}", MUTED)),
        *([text((f"K gives no key here. {keys}", MUTED))] if keys else []),
    )


def _unknown(state: WizardState) -> str:
    """Why no step is shown, and what can be done."""
    cluster = state.cluster
    if cluster.link != "connected":
        return "connecting …" if cluster.link == "connecting" else "The cluster comes first: step 4."
    if cluster.tasks & {"probe", "install"}:
        return "looking at what is there …"
    return f"It is not known what is there; c at step 4 looks again. {observed(state) or 'Enter installs.'}"


def rows(cluster: ClusterState) -> tuple[Paragraph, ...]:
    """The steps, and what went wrong beside them: where there are none, why they could not be looked at."""
    parts = [part for step in cluster.steps for part in step_parts(step)]
    looked = None if cluster.steps else cluster.unreachable or cluster.error_with_remedy("probe")
    if error := cluster.error_with_remedy("install") or looked:
        parts += [text(Content("")), text(error_content(error))]
    return tuple(parts)


def step_parts(step: StepState) -> tuple[Paragraph, ...]:
    """One step; the last line of its log while it is not done."""
    word, style = state_part(install_label(step.status))
    head = (
        line((word.ljust(_STATE), style), "  "),
        line((step.title, "bold"), (f"   {step.size}" if step.size else "", MUTED)),
    )
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
