"""The pane of the step Install: the install steps, their states, and the last line of the active one."""

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
from llmb_tui.wizard.gates import first_error, no_login_node, read_only_reason
from llmb_tui.wizard.state import ClusterState, WizardState
from llmb_tui.wizard.steps import StepId

_STATE = 9
"""Width of the longest state of a step, in cells."""
_INDENT = Content(" " * (_STATE + 2))


class InstallPane(Pane):
    """Install steps that a run needs."""

    STEP = StepId.INSTALL
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "screen.ask('install')", "Install", id="install.start", tooltip="Start or continue the install"),
        Binding(
            "K",
            "screen.ask('keys')",
            "API keys…",
            id="install.keys",
            tooltip="Enter API keys of the container registry and the model hub",
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
        set_text(self.query_one("#install-title", Static), line(("Install", "b"), "  ", (hint, MUTED)))
        self.query_one("#install-progress", Paragraphs).parts = progress(state)
        self.query_one("#install-rows", Paragraphs).parts = rows(state.cluster)


def progress(state: WizardState) -> tuple[Paragraph, ...]:
    """Progress of the install, and the next action."""
    cluster = state.cluster
    if not cluster.steps:
        return (text((_unknown(state), MUTED)),)
    done = sum(step.status == "done" for step in cluster.steps)
    hint = "enter: install" if done == 0 else "enter: continue the install"
    if "install" in cluster.tasks or state.installs_here:
        hint = "installing … safe to leave"
    elif done == len(cluster.steps):
        hint = "installed   enter: next step"
    elif why_not := read_only_reason(state) or first_error(state):
        hint = why_not
    no_keys = no_login_node(state)
    return (
        text(gauge(done, len(cluster.steps), 24) + line(f"  {done} of {len(cluster.steps)}")),
        text((f"{PROCEDURES[state.procedure].title} · {hint}", MUTED)),
        *([text((f"API keys cannot be entered here. {no_keys}", MUTED))] if no_keys else []),
    )


def _unknown(state: WizardState) -> str:
    """The reason why no step is shown, and the next action."""
    cluster = state.cluster
    if cluster.link != "connected":
        return "connecting …" if cluster.link == "connecting" else "Connect to the cluster first (step 4)."
    if cluster.tasks & {"probe", "install"}:
        return "checking the installation …"
    return f"The install has not been checked. {read_only_reason(state) or 'enter: install'} · c at step 4: check again"


def rows(cluster: ClusterState) -> tuple[Paragraph, ...]:
    """The steps, then the error of the install; without steps, the error of the check that would have found them."""
    parts = [part for step in cluster.steps for part in step_parts(step)]
    probe_error = None if cluster.steps else cluster.unreachable or cluster.task_error("probe")
    if error := cluster.task_error("install") or probe_error:
        parts += [text(Content("")), text(error_content(error))]
    return tuple(parts)


def step_parts(step: StepState) -> tuple[Paragraph, ...]:
    """Paragraphs of a step, with the last line of its log until it is done."""
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
        rows.append((_INDENT, line(("K: enter the API key", MUTED))))
    return tuple(rows)
