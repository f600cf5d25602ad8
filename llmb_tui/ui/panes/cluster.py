"""The pane of the step Cluster: saved clusters, the connection, and the checks of the preflight."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content

from llmb_tui.language.states import check_label, probe_label
from llmb_tui.preflight.report import Check
from llmb_tui.ui.panes.pane import Dispatch, Pane
from llmb_tui.ui.text import MUTED, STYLES, error_content, line, lines, state_mark, state_part
from llmb_tui.ui.widgets.choices import FindableChoices
from llmb_tui.ui.widgets.texts import Paragraph, Paragraphs, Scroller, label, text
from llmb_tui.wizard.choices import Choice
from llmb_tui.wizard.steps import StepId

if TYPE_CHECKING:
    from llmb_tui.wizard.site_variables import SiteVariables
    from llmb_tui.wizard.state import WizardState

# Checks that need a fix come first.
_STATUS_ORDER = ("failed", "warning", "ok")
_TITLE = 19
# Characters of a login banner that are shown.
_BANNER = 300


class ClusterPane(Pane):
    """Choice and check of the cluster."""

    STEP = StepId.CLUSTER
    FINDABLE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "c", "screen.ask('check')", "Check", id="cluster.check", tooltip="Connect to the cluster and check it again"
        ),
        Binding("n", "screen.add_cluster", "New", id="cluster.new", tooltip="Add a cluster"),
        Binding(
            "v",
            "screen.variables",
            "Variables",
            show=False,
            id="cluster.variables",
            tooltip="Add network variables of a login shell to the cluster's profile",
        ),
        Binding(
            "d",
            "screen.disk",
            "Disk",
            id="cluster.disk",
            tooltip="List and remove files of this program on the cluster",
        ),
        Binding("e", "screen.edit_cluster", "Edit", id="cluster.edit", tooltip="Edit the chosen cluster"),
    ]

    def __init__(self, dispatch: Dispatch) -> None:
        super().__init__(dispatch)
        self._list = FindableChoices(partial(self.answer, "cluster"), id="clusters")

    def compose(self) -> ComposeResult:
        yield label("Saved clusters", first=True)
        yield self._list
        with Scroller(id="found"):
            yield Paragraphs(id="link")
            yield Paragraphs(id="checks")

    def show(self, state: WizardState) -> None:
        profile, cluster = state.proposal.profile, state.cluster
        choices = tuple(Choice(saved.name, saved.name, f"{saved.place}  {saved.share}") for saved in state.profiles)
        self._list.show(choices, profile.name if profile else "")
        self.query_one("#link", Paragraphs).parts = link_parts(state)
        preflight = cluster.preflight or cluster.checked
        checks = sorted(preflight.checks, key=lambda check: _STATUS_ORDER.index(check.status)) if preflight else []
        self.query_one("#checks", Paragraphs).parts = tuple(part for check in checks for part in check_parts(check))


def link_parts(state: WizardState) -> tuple[Paragraph, ...]:
    """State of the connection: glyph, word, progress, banner, and the error of a failed one."""
    cluster = state.cluster
    if state.proposal.profile is None:
        return (text(("No cluster is chosen.   n: add a cluster", MUTED)),)
    if cluster.link != "connected":
        words, style = state_part(probe_label(cluster.link))
        if cluster.link != "failed":
            words += " …" if cluster.link == "connecting" else "   enter: connect and check"
        parts = [text((words, style))]
    else:
        word = ""
        if "probe" in cluster.tasks:
            done = f" {len(cluster.checked.checks)} done" if cluster.checked else ""
            word = f"checking …{done}" if cluster.preflight is None else "checking the install …"
        # The status bar shows the current health of the connection.
        parts = [text(state_part(probe_label(cluster.link)), f"   {word}")]
        if cluster.banner.strip():
            parts.append(text((" ".join(cluster.banner.split())[:_BANNER], MUTED)))
    if error := cluster.unreachable or cluster.task_error("probe"):
        parts.append(text(error_content(error)))
    return tuple(parts)


def variable_questions(variables: SiteVariables) -> tuple[tuple[Content, Mapping[str, str]], ...]:
    """Each question, with the variables that a confirmation adds to the profile."""
    name = variables.profile.name
    questions: list[tuple[Content, Mapping[str, str]]] = []
    if variables.network:
        values = [line(f"  {variable}={value}") for variable, value in variables.network]
        cost = "Without them NCCL may use TCP or the wrong adapters. Runs can be tens of percent slower."
        head = line("Add these variables of a login shell to every job on ", (name, "bold"), "?")
        questions.append((lines(head, *values, line((cost, MUTED))), dict(variables.network)))
    for variable, value in variables.paths:
        head = line(f"Add the {variable} of a login shell to every job on ", (name, "bold"), "?")
        warning = line(("It also applies in the container and may replace libraries there.", "$text-warning"))
        questions.append((lines(head, line(f"  {value}"), warning), {variable: value}))
    return tuple(questions)


def check_parts(check: Check) -> tuple[Paragraph, ...]:
    """Paragraphs of a check: the found value and, unless it passed, the required value and the fix."""
    label = check_label(check.status)
    word, style = "" if check.status == "ok" else f"{label.word}: ", STYLES[label.tone]
    head = (line(state_mark(label), (f"{check.title:<{_TITLE}}", "bold")), line((word, style), check.found))
    if check.status == "ok":
        return (head,)
    needed = (line("  ", (f"{'needed':<{_TITLE}}", MUTED)), line(check.needed))
    fix = (line(("  → ", "$text-accent")), line(check.fix))
    return (head, needed, fix) if check.fix else (head, needed)
