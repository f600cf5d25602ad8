"""`Pane`: the form of one step. It renders the wizard's state and dispatches the user's answers as events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.containers import VerticalScroll

from llmb_tui.ui.widgets.choices import FindableChoices, VerticalList
from llmb_tui.wizard.steps import StepId

if TYPE_CHECKING:
    from llmb_tui.wizard.events import Event
    from llmb_tui.wizard.state import WizardState

Dispatch = Callable[["Event"], None]


class Pane(VerticalScroll, can_focus=False, inherit_bindings=False):
    """The form of one step. It scrolls with the focus; left and right change the step."""

    STEP: ClassVar[StepId]
    FINDABLE: ClassVar[bool] = False
    """Whether it has a list that can be filtered by typing."""

    @property
    def shown_error_fields(self) -> frozenset[str]:
        """Fields whose errors the pane itself shows, so that they are not repeated below it."""
        return frozenset()

    def __init__(self, dispatch: Dispatch) -> None:
        super().__init__(id=f"pane-{self.STEP.name.lower()}")
        self.dispatch = dispatch

    def answer(self, field: str, value: str) -> None:
        from llmb_tui.wizard.events import Answered

        self.dispatch(Answered(field, value))

    def show(self, state: WizardState) -> None:
        """Render a state. Called after each change while the pane is shown."""
        raise NotImplementedError

    def keep_in_view(self) -> None:
        """Scroll the focused widget into view again after the pane has become smaller."""
        focused = self.screen.focused
        if isinstance(focused, VerticalList) and focused.highlighted is not None:
            focused.scroll_to_highlight()
        elif focused is not None and self in focused.ancestors:
            focused.scroll_visible(animate=False)

    def find(self) -> None:
        self.query_one(FindableChoices).find()

    def focus_first(self) -> None:
        """Focus the first widget that can have the focus."""
        for widget in self.query("*"):
            if widget in self.screen.focus_chain:
                widget.focus()
                return
