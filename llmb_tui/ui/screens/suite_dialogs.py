"""The dialogs of suites: the one yes, a file's name, and the list of those that were submitted."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button, Input, Static

from llmb_tui.errors import Trouble
from llmb_tui.results.suite.suite import Suite
from llmb_tui.results.suite.suite_plan import Nodes, SuitePlan
from llmb_tui.services import Services
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.dialogs import Dialog
from llmb_tui.ui.text import MUTED, line, lines, told
from llmb_tui.ui.units import gpu_hours, moment
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.suite_texts import cost, takes
from llmb_tui.wizard.choices import Choice


def submit_question(plan: SuitePlan, nodes: Nodes) -> Content:
    """What one says yes to."""
    suite = plan.suite
    return lines(
        [
            line("Submit ", (suite.name, "bold"), f" on {suite.cluster}?"),
            Content(""),
            line(*cost(plan)),
            line(*takes(plan, replace(nodes, askable=False))),
            line(suite.conduct),
            Content(""),
            line(("The cluster is checked for every run first. What is sent goes on when this program ends.", MUTED)),
        ]
    )


class TypeHours(Dialog[bool]):
    """A yes for more GPU-hours than the operator's own limit: their number is typed."""

    def __init__(self, question: Content, hours: float, limit: float) -> None:
        super().__init__("Submit")
        self._question = question
        self._hours = f"{hours:.1f}"
        self._limit = limit

    def body(self) -> ComposeResult:
        yield Static(self._question, markup=False)
        words = f"This is above your limit of {gpu_hours(self._limit)} (limits.suite_gpu_hours)."
        yield Static(line((words, "$text-warning")), markup=False)
        yield Static(line("Type the number ", (self._hours, "bold"), " and enter to submit it."), markup=False)
        yield Input(compact=True, id="typed-hours", max_length=20)
        yield Static(id="typed-wrong", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Another number is no yes."""
        if event.value.replace(",", "").strip() in (self._hours, self._hours.removesuffix(".0")):
            self.dismiss(True)
        else:
            wrong = line((f"✗ That is not {self._hours}: nothing was sent.", "$text-error"))
            self.query_one("#typed-wrong", Static).update(wrong)


class FileName(Dialog[str]):
    """Where a suite is written to."""

    def __init__(self, file: str) -> None:
        super().__init__("Write the suite")
        self._file = file

    def body(self) -> ComposeResult:
        yield Static(line("A file that `llmb-tui suite` reads, and that a person may change:"), markup=False)
        yield Input(self._file, compact=True, id="suite-file")
        yield Static(line(("enter writes it and copies the command that submits it", MUTED)), markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self.dismiss(event.value.strip())


class SuitesDialog(Dialog[str]):
    """The suites that this machine remembers, newest first; the answer is the id of one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "Close", show=False, id="suites.leave", tooltip="Close the list")
    ]

    def __init__(self, services: Services) -> None:
        super().__init__("Suites")
        self._services = services
        self._chosen = ""
        self._list = ChoiceList(self._choose, id="suites")

    def body(self) -> ComposeResult:
        yield Static(line(("◐ reading …", MUTED)), id="suites-said", markup=False)
        yield self._list
        with Horizontal(classes="buttons"):
            yield Button("Open", id="open", compact=True, disabled=True)
            yield Button("Leave", id="leave", compact=True)

    def on_mount(self) -> None:
        self._list.focus()
        self._show()

    @work(exclusive=True, exit_on_error=False)
    async def _show(self) -> None:
        said = self.query_one("#suites-said", Static)
        try:
            known = await in_daemon(self._read)
        except Trouble as trouble:
            said.update(told(trouble))
            return
        words = "enter opens one" if known else "No suite was submitted from here yet."
        said.update(line((words, MUTED)))
        choices = (Choice(suite.id, suite.name, f"{moment(suite.created_at)} · {stands}") for suite, stands in known)
        self._choose(known[0][0].id if known else "")
        self._list.show(tuple(choices), self._chosen)
        self.query_one("#open", Button).disabled = not known

    def _read(self) -> list[tuple[Suite, str]]:
        """In a thread."""
        suites = self._services.suites
        return [(suite, suites.progress(suite).words) for suite in suites.all()]

    def _choose(self, suite_id: str) -> None:
        self._chosen = suite_id
        self._list.show(self._list.shown, suite_id)

    @on(ChoiceList.Taken)
    def _open(self, event: ChoiceList.Taken) -> None:
        event.stop()
        self._take()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "open":
            self._take()
        else:
            self.dismiss(None)

    def _take(self) -> None:
        if self._chosen:
            self.dismiss(self._chosen)
