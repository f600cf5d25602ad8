"""`Pane`: the form of one step. It renders a `View` and says what the person did; it decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Static

from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.choices import FindableChoices
from llmb_tui.wizard.answers import Field
from llmb_tui.wizard.steps import StepId

Give = Callable[[Field, str], None]


class Pane(VerticalScroll, can_focus=False, inherit_bindings=False):
    """The form of one step. It scrolls with the focus; left and right go through the steps."""

    STEP: ClassVar[StepId]
    FINDABLE: ClassVar[bool] = False
    """It has a list that can be narrowed by typing."""

    @property
    def tells(self) -> frozenset[str]:
        """Fields whose errors it shows itself, so that nobody repeats them under it."""
        return frozenset()

    class Next(Message):
        """The person wants to go on."""

    def __init__(self, give: Give) -> None:
        super().__init__(id=f"pane-{self.STEP.name.lower()}")
        self._give = give

    def show(self, view: View) -> None:
        """Render a view. Called at each change while the pane is the current one."""
        raise NotImplementedError

    def enter(self) -> None:
        """The step's own main action: go on, unless something is to be done here first."""
        self.post_message(self.Next())

    def find(self) -> None:
        """Open the search of the pane's list."""
        self.query_one(FindableChoices).find()

    def arrive(self) -> None:
        """Put the focus where the person starts."""
        for widget in self.query("*"):
            if widget in self.screen.focus_chain:
                widget.focus()
                return


def label(text: str, hint: str = "", **options: Any) -> Static:
    """The name of a field, with a hint. Literals only."""
    return Static(f"[b]{text}[/b]  [dim]{hint}[/]" if hint else f"[b]{text}[/b]", classes="label", **options)
