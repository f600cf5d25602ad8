"""`LayoutPart`: another layout than the recipe's, field by field or from the list of the valid ones."""

from __future__ import annotations

from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import Button, Static

from llmb_tui.plan.plan import Plan
from llmb_tui.ui import units
from llmb_tui.ui.panes.pane import Give
from llmb_tui.ui.text import MUTED, hanging, line
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.choices import Field
from llmb_tui.ui.widgets.folded import Folded
from llmb_tui.ui.widgets.remarks import remark
from llmb_tui.wizard.answers import LAYOUT_FIELDS, value_of
from llmb_tui.wizard.layout import LAYOUT_TITLES, layout_problems, other_layout, shown

_IN_A_ROW = 3


class LayoutPart(Vertical):
    """A field for each number of the layout, what is to be said of them, and the ways to all of them at once."""

    class Listed(Message):
        """The list of the valid layouts is wanted."""

    def __init__(self, give: Give) -> None:
        super().__init__(id="layout")
        self._give = give
        self._fields = {
            name: Field(partial(give, name), restrict="[0-9]*", max_length=7, id=f"layout-{name.replace('_', '-')}")
            for name in LAYOUT_FIELDS
        }

    def compose(self) -> ComposeResult:
        """Three fields in a row; under them the checks, then the list and the way back."""
        for first in range(0, len(LAYOUT_FIELDS), _IN_A_ROW):
            with Horizontal(classes="field"):
                for at, name in enumerate(LAYOUT_FIELDS[first : first + _IN_A_ROW]):
                    yield Static(("" if at else "  ") + LAYOUT_TITLES[name], classes="name", markup=False)
                    yield self._fields[name]
        yield Checks()
        with Horizontal(classes="ways"):
            yield Button("valid layouts ^l", id="valid-layouts", compact=True)
            yield Button("the recipe's ^r", id="recipes-layout", compact=True)

    @property
    def first(self) -> Field:
        """Where a person starts."""
        return self._fields[LAYOUT_FIELDS[0]]

    def show(self, view: View) -> None:
        """An empty field takes the recipe's value, which stands in it pale."""
        for name, field in self._fields.items():
            value = value_of(view.answers, name)
            # What was typed stays as it was typed; a layout from the list reaches the field that has the focus too.
            if field.value.lstrip("0") != value.lstrip("0") or not value:
                field.value = value
            field.placeholder = shown(view.usual.parallelism, name) if view.usual else ""
        self.query_one(Checks).shown = (view.usual, view.plan)
        given = bool(view.answers.overrides.given())
        self.set_class(given, "-on")
        self.query_one("#recipes-layout", Button).disabled = not given
        if self.has_focus_within:
            # The checks may have become more lines.
            self.call_after_refresh(self.scroll_visible, animate=False)

    @on(Button.Pressed, "#valid-layouts")
    def _list(self, event: Button.Pressed) -> None:
        event.stop()
        self.post_message(self.Listed())

    @on(Button.Pressed, "#recipes-layout")
    def _clear(self, event: Button.Pressed) -> None:
        event.stop()
        self._give("layout", "")


class Checks(Folded):
    """What is wrong or unusual, and where the layout is not the recipe's."""

    shown: var[tuple[Plan | None, Plan | None]] = var[tuple[Plan | None, Plan | None]]((None, None))
    """The plan with the recipe's layout, and the plan."""

    def watch_shown(self) -> None:
        """Show others."""
        self.changed()

    def rows(self, width: int) -> list[Content]:
        """The lines at this width."""
        return checks(*self.shown, width)


def checks(usual: Plan | None, plan: Plan | None, width: int) -> list[Content]:
    """Errors first, then what is unusual, then what differs and what that is worth."""
    if plan is None:
        return []
    rows = []
    for problem in layout_problems(plan):
        word = "error" if problem.severity == "error" else "unusual"
        rows += remark(problem, word, width)
    differs = other_layout(usual, plan)
    for words in differs:
        rows += hanging(line(("† ", MUTED)), line(words), width)
    if not differs:
        rows.append(line(("  the recipe's own; empty: the recipe's value", MUTED)))
    elif usual is not None and usual.estimate is not None and plan.estimate is not None:
        ours, theirs = units.seconds(plan.estimate.step_time_s), units.seconds(usual.estimate.step_time_s)
        rows.append(line(("step time ", MUTED), (ours, "bold"), (f", the recipe's own {theirs}", MUTED)))
    return rows
