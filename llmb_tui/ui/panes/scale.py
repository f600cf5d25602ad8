"""The pane of the step Scale, options: number of GPUs, layout, options and launch method."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Button, Static

from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import (
    DEFAULT_PROCEDURE,
    FIELDS,
    LAYOUT,
    LONGEST_PATH,
    NOTHING_MORE,
    ON,
    OPTIONS,
    OptionKind,
    text_of,
)
from llmb_tui.ui.panes.pane import Dispatch, Pane
from llmb_tui.ui.text import MUTED, line, set_text
from llmb_tui.ui.widgets.choices import ChoiceList, FindableChoices, Switches, TextField
from llmb_tui.ui.widgets.texts import Paragraph, Paragraphs, label, remark, text
from llmb_tui.wizard.answers import value_of
from llmb_tui.wizard.choices import choices, option_refusals, procedures, switches
from llmb_tui.wizard.gates import layout_difference, layout_problems, typed_value
from llmb_tui.wizard.state import WizardState
from llmb_tui.wizard.steps import StepId

_TYPED = tuple(option for option in OPTIONS if option.kind != "switch")
_LIMITS: dict[OptionKind, dict[str, Any]] = {"number": {"digits": 7}, "path": {"max_length": LONGEST_PATH}}
_PLACEHOLDERS: dict[OptionKind, str] = {"path": "a directory on the cluster"}
_IN_A_ROW = 3
"""Fields of the layout in one row."""


class ScalePane(Pane):
    """Number of GPUs, scaling, layout, steps, time limit, options and launch method."""

    STEP = StepId.SCALE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "layout", "Layout", id="scale.layout", tooltip="Change the layout"),
        Binding(
            "ctrl+l", "layouts", "Valid layouts", show=False, id="scale.layouts", tooltip="List valid layouts, ranked"
        ),
        Binding(
            "ctrl+r",
            "recipes_layout",
            "Recipe's",
            show=False,
            id="scale.recipes",
            tooltip="Restore the recipe's layout",
        ),
        Binding("o", "options", "Options", id="scale.options", tooltip="Go to profile, trace and checkpoints"),
        Binding("P", "procedure", "Method", id="scale.procedure", tooltip="Choose how the run is launched"),
    ]

    @property
    def shown_error_fields(self) -> frozenset[str]:
        """The fields of the layout, once it is open."""
        return frozenset(field.name for field in LAYOUT if self._layout.display)

    def __init__(self, dispatch: Dispatch) -> None:
        super().__init__(dispatch)
        self._scales = FindableChoices(partial(self.answer, "scale"), numbers=True, id="scale")
        self._scaling = ChoiceList(partial(self.answer, "scaling"), id="scaling")
        self._other = TextField(partial(self.answer, "scale"), digits=6, placeholder="any number", id="other-scale")
        self._layout = LayoutPart(self.answer)
        self._steps = TextField(partial(self.answer, "steps"), digits=7, id="steps")
        self._limit = TextField(partial(self.answer, "time_limit"), restrict="[0-9:-]*", max_length=11, id="time-limit")
        self._switches = Switches(self.answer, id="switches")
        self._typed = {
            option.name: TextField(
                partial(self.answer, option.name),
                id=option.flag.removeprefix("--"),
                classes=option.kind,
                **_LIMITS.get(option.kind, {}),
            )
            for option in _TYPED
        }
        self._procedures = ChoiceList(partial(self.answer, "procedure"), id="procedure")

    def compose(self) -> ComposeResult:
        yield label("GPUs", "● published  ○ no published result", first=True)
        yield self._scales
        yield _field_row("other", self._other, Static("preview only", classes="hint"))
        yield label("Scaling")
        yield self._scaling
        yield label("Layout", "l: change", id="layout-label")
        yield self._layout
        yield label("Options", "o: profile, trace, checkpoints", id="options-label")
        with Vertical(id="length"):
            yield _field_row("steps", self._steps, Static(id="steps-hint", classes="hint"), id="steps-row")
            yield _field_row("time limit", self._limit, Static("HH:MM:SS", classes="hint"))
        with Vertical(id="extras"):
            yield self._switches
            for part, options in groupby(_TYPED, key=lambda option: option.of or option.name):
                with Horizontal(classes="field typed", id=f"{part}-row"):
                    for index, option in enumerate(options):
                        classes = "more" if index else f"name {option.kind}"
                        yield Static(("" if index else "  ") + option.prompt, classes=classes)
                        yield self._typed[option.name]
        yield label("Launch method", "P: our script or NVIDIA's", id="procedure-label")
        with Vertical(id="procedures"):
            yield self._procedures
            yield Paragraphs(id="not-published")

    def on_click(self, event: events.Click) -> None:
        """Open a part when its name is clicked, as its key does."""
        name = event.widget.id if event.widget is not None else None
        opens = {
            "layout-label": self.action_layout,
            "options-label": self.action_options,
            "procedure-label": self.action_procedure,
        }
        if name in opens:
            opens[name]()

    def action_layout(self) -> None:
        self._layout.open()
        self._open("#layout", self._layout.first)

    async def action_layouts(self) -> None:
        self._layout.open()
        await self.run_action("screen.layouts")

    def action_recipes_layout(self) -> None:
        self.answer("layout", "")

    def action_options(self) -> None:
        self._open("#extras", self._switches)

    def action_procedure(self) -> None:
        self._open("#procedures", self._procedures)

    def _open(self, part: str, first: Widget) -> None:
        opened = self.query_one(part)
        opened.add_class("-open")
        first.focus()
        self.call_after_refresh(opened.scroll_visible, animate=False)

    def show(self, state: WizardState) -> None:
        """Render the state. The field that has the focus keeps its text."""
        catalog, answers, full, plan = state.rules.catalog, state.answers, state.proposal.full, state.proposal.plan
        chosen = value_of(full, "scale")
        scales = choices(catalog, full, "scale")
        self._scales.show(scales, chosen)
        self._scaling.show(choices(catalog, full, "scaling"), value_of(full, "scaling"))
        listed = any(choice.value == chosen for choice in scales)
        self._other.put("" if listed else chosen)
        self._layout.show(state)
        self._steps.put(value_of(answers, "steps"))
        self._limit.put(value_of(answers, "time_limit"))
        self._show_options(state)
        self._show_procedures(state)
        if plan is None:
            return
        if answers.steps is None:
            self._steps.placeholder = str(plan.steps)
        hint = "recipe default" if plan.steps == state.proposal.recipe.launch.steps else "set by options"
        set_text(self.query_one("#steps-hint", Static), hint if answers.steps is None else "")
        if answers.time_limit is None:
            self._limit.placeholder = plan.time_limit

    def _show_options(self, state: WizardState) -> None:
        """Hide fields that have no effect now, and show the reason in fields that cannot be used."""
        catalog, answers, full, plan = state.rules.catalog, state.answers, state.proposal.full, state.proposal.plan
        self._switches.show(switches(catalog, full))
        self.query_one("#extras").set_class(full.options != NOTHING_MORE, "-on")
        refusals = option_refusals(catalog, full)
        for option in _TYPED:
            field, reason = self._typed[option.name], refusals[option.name]
            if option.of:
                self.query_one(f"#{option.of}-row").display = value_of(full, option.of) == ON
            field.put(value_of(answers, option.name))
            usual = text_of(getattr(plan.options, option.name)) if plan else ""
            field.placeholder = f"– {reason}" if reason else usual or _PLACEHOLDERS.get(option.kind, "")
            field.disabled = bool(reason) and not field.value

    def _show_procedures(self, state: WizardState) -> None:
        """Show the launch methods, and below them the whole reason why one cannot be used."""
        full = state.proposal.full
        previews = state.proposal.previews
        self._procedures.show(procedures(state.rules, previews), value_of(full, "procedure"))
        self.query_one("#procedures").set_class(full.procedure != DEFAULT_PROCEDURE, "-on")
        errors = [
            problem for preview in previews.values() for problem in preview.problems if problem.severity == "error"
        ]
        reasons = [f"{problem.reason} {problem.fix}".rstrip() for problem in errors]
        parts = tuple((line("  "), line((words, MUTED))) for words in reasons)
        self.query_one("#not-published", Paragraphs).parts = parts


def _field_row(name: str, field: TextField, hint: Static, **options: Any) -> Horizontal:
    return Horizontal(Static(f"  {name}", classes="name"), field, hint, classes="field", **options)


class LayoutPart(Vertical):
    """A field for each number of the layout, the problems of the layout, and buttons that set all numbers."""

    def __init__(self, answer: Callable[[str, str], None]) -> None:
        super().__init__(id="layout")
        self._answer = answer
        self._state: WizardState | None = None
        self._fields = {
            field.name: TextField(partial(answer, field.name), digits=7, id=f"layout-{field.flag.removeprefix('--')}")
            for field in LAYOUT
        }

    def compose(self) -> ComposeResult:
        for first in range(0, len(LAYOUT), _IN_A_ROW):
            with Horizontal(classes="field"):
                for index, field in enumerate(LAYOUT[first : first + _IN_A_ROW]):
                    yield Static(("" if index else "  ") + field.label, classes="name", markup=False)
                    yield self._fields[field.name]
        yield Paragraphs(id="layout-checks")
        with Horizontal(classes="ways"):
            yield Button("valid layouts ^l", action="screen.layouts", id="valid-layouts", compact=True)
            yield Button("recipe default ^r", id="recipes-layout", compact=True)

    @property
    def first(self) -> TextField:
        return self._fields[LAYOUT[0].name]

    def open(self) -> None:
        """Keep the fields visible, even with the recipe's layout."""
        self.add_class("-open")
        if self._state is not None:
            self.show(self._state)

    def show(self, state: WizardState) -> None:
        """Render the state if the fields are visible. An empty field shows the recipe's value as its placeholder."""
        self._state = state
        answers, proposal = state.answers, state.proposal
        given = bool(answers.overrides.set_fields())
        self.set_class(given, "-on")
        if not given and not self.has_class("-open"):
            return
        for name, field in self._fields.items():
            value = value_of(answers, name)
            # Keep typed leading zeros. A layout from the list also replaces the text of the focused field.
            if field.value.lstrip("0") != value.lstrip("0") or not value:
                field.value = value
            field.placeholder = typed_value(proposal.usual.parallelism, FIELDS[name]) if proposal.usual else ""
        self.query_one("#layout-checks", Paragraphs).parts = layout_checks(proposal.usual, proposal.plan)
        self.query_one("#recipes-layout", Button).disabled = not given
        if self.has_focus_within:
            # There may be more lines of problems now.
            self.call_after_refresh(self.scroll_visible, animate=False)

    @on(Button.Pressed)
    def _clear(self, event: Button.Pressed) -> None:
        event.stop()
        self._answer("layout", "")


def layout_checks(usual: Plan | None, plan: Plan | None) -> tuple[Paragraph, ...]:
    """Problems of the layout, errors first; then how it differs from the recipe's, with the effect on the step time."""
    if plan is None:
        return ()
    parts = []
    for problem in layout_problems(plan):
        parts.append(remark(problem, "error" if problem.severity == "error" else "unusual"))
    differs = layout_difference(usual, plan)
    parts += [(line(("† ", MUTED)), line(words)) for words in differs]
    if not differs:
        parts.append(text(("  recipe default; leave empty to keep it", MUTED)))
    elif usual is not None and usual.estimate is not None and plan.estimate is not None:
        step_time, default = plan.estimate.step_time_text, usual.estimate.step_time_text
        parts.append(text(("step time ", MUTED), (step_time, "bold"), (f", recipe default {default}", MUTED)))
    return tuple(parts)
