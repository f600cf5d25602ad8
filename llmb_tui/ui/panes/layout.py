"""`LayoutPart`: another layout than the recipe's, field by field or from the list of the valid ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Static

from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import FIELDS, LAYOUT
from llmb_tui.ui import units
from llmb_tui.ui.text import MUTED, line
from llmb_tui.ui.widgets.choices import TextField
from llmb_tui.ui.widgets.texts import Paragraph, Paragraphs, remark, text
from llmb_tui.wizard.answers import value_of
from llmb_tui.wizard.gates import layout_problems, other_layout, shown

if TYPE_CHECKING:
    from llmb_tui.wizard.state import WizardState

_IN_A_ROW = 3


class LayoutPart(Vertical):
    """A field for each number of the layout, what is to be said of them, and the ways to all of them at once."""

    def __init__(self, give: Callable[[str, str], None]) -> None:
        """`give` gives a field a value."""
        super().__init__(id="layout")
        self._give = give
        self._fields = {
            field.name: TextField(
                partial(give, field.name),
                restrict="[0-9]*",
                max_length=7,
                id=f"layout-{field.flag.removeprefix('--')}",
            )
            for field in LAYOUT
        }

    def compose(self) -> ComposeResult:
        for first in range(0, len(LAYOUT), _IN_A_ROW):
            with Horizontal(classes="field"):
                for at, field in enumerate(LAYOUT[first : first + _IN_A_ROW]):
                    yield Static(("" if at else "  ") + field.label, classes="name", markup=False)
                    yield self._fields[field.name]
        yield Paragraphs(id="layout-checks")
        with Horizontal(classes="ways"):
            yield Button("valid layouts ^l", action="screen.ask('layouts')", id="valid-layouts", compact=True)
            yield Button("the recipe's ^r", id="recipes-layout", compact=True)

    @property
    def first(self) -> TextField:
        """Where a person starts."""
        return self._fields[LAYOUT[0].name]

    def show(self, state: WizardState) -> None:
        """An empty field takes the recipe's value, which stands in it pale."""
        answers, proposal = state.answers, state.proposal
        for name, field in self._fields.items():
            value = value_of(answers, name)
            # What was typed stays as it was typed; a layout from the list reaches the field that has the focus too.
            if field.value.lstrip("0") != value.lstrip("0") or not value:
                field.value = value
            field.placeholder = shown(proposal.usual.parallelism, FIELDS[name]) if proposal.usual else ""
        self.query_one("#layout-checks", Paragraphs).parts = checks(proposal.usual, proposal.plan)
        given = bool(answers.overrides.set_fields())
        self.set_class(given, "-on")
        self.query_one("#recipes-layout", Button).disabled = not given
        if self.has_focus_within:
            # The checks may have become more lines.
            self.call_after_refresh(self.scroll_visible, animate=False)

    @on(Button.Pressed)
    def _clear(self, event: Button.Pressed) -> None:
        event.stop()
        self._give("layout", "")


def checks(usual: Plan | None, plan: Plan | None) -> tuple[Paragraph, ...]:
    """What is wrong or unusual, errors first; then what differs from the recipe's layout, and what that is worth."""
    if plan is None:
        return ()
    parts = []
    for problem in layout_problems(plan):
        parts.append(remark(problem, "error" if problem.severity == "error" else "unusual"))
    differs = other_layout(usual, plan)
    parts += [(line(("† ", MUTED)), line(words)) for words in differs]
    if not differs:
        parts.append(text(("  the recipe's own; empty: the recipe's value", MUTED)))
    elif usual is not None and usual.estimate is not None and plan.estimate is not None:
        ours, theirs = units.seconds(plan.estimate.step_time_s), units.seconds(usual.estimate.step_time_s)
        parts.append(text(("step time ", MUTED), (ours, "bold"), (f", the recipe's own {theirs}", MUTED)))
    return tuple(parts)
