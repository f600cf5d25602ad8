"""The pane for the number of GPUs and the options of the run."""

from __future__ import annotations

from functools import partial

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Static

from llmb_tui.ui.panes.pane import Give, Pane, label
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.choices import ChoiceList, Field, FindableChoices
from llmb_tui.wizard.answers import value_of
from llmb_tui.wizard.choices import choices
from llmb_tui.wizard.steps import StepId


class ScalePane(Pane):
    """How many GPUs, which scaling, how many steps, how long at most."""

    STEP = StepId.SCALE
    FINDABLE = True

    def __init__(self, give: Give) -> None:
        super().__init__(give)
        self._scales = FindableChoices(partial(give, "scale"), numbers=True, id="scale")
        self._scaling = ChoiceList(partial(give, "scaling"), id="scaling")
        self._other = Field(
            partial(give, "scale"), restrict="[0-9]*", max_length=6, placeholder="any number", id="other-scale"
        )
        self._steps = Field(partial(give, "steps"), restrict="[0-9]*", max_length=7, id="steps")
        self._limit = Field(partial(give, "time_limit"), restrict="[0-9:-]*", max_length=11, id="time-limit")

    def compose(self) -> ComposeResult:
        """Listed scales, any other scale, then the options."""
        yield label("GPUs", "● published  ○ listed, no result")
        yield self._scales
        with Horizontal(classes="field"):
            yield Static("  other", classes="name")
            yield self._other
            yield Static("previewed only", classes="hint")
        yield label("Scaling")
        yield self._scaling
        yield label("Options")
        with Horizontal(classes="field"):
            yield Static("  steps", classes="name")
            yield self._steps
            yield Static("recipe's default", classes="hint")
        with Horizontal(classes="field"):
            yield Static("  time limit", classes="name")
            yield self._limit
            yield Static("HH:MM:SS", classes="hint")

    def show(self, view: View) -> None:
        """A typed field keeps its text while it is typed in."""
        chosen = value_of(view.full, "scale")
        scales = choices(view.catalog, view.answers, "scale")
        self._scales.show(scales, chosen)
        self._scaling.show(choices(view.catalog, view.answers, "scaling"), value_of(view.full, "scaling"))
        listed = any(choice.value == chosen for choice in scales)
        self._put(self._other, "" if listed else chosen)
        self._put(self._steps, value_of(view.answers, "steps"))
        self._put(self._limit, value_of(view.answers, "time_limit"))
        if view.plan is None:
            return
        if view.answers.steps is None:
            self._steps.placeholder = str(view.plan.steps)
        if view.answers.time_limit is None:
            self._limit.placeholder = view.plan.time_limit

    @staticmethod
    def _put(field: Field, text: str) -> None:
        if not field.has_focus and field.value != text:
            field.value = text
