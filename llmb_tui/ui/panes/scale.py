"""The pane for the number of GPUs, the layout, the options of the run and its procedure."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Static

from llmb_tui.plan.selection import NOTHING_MORE
from llmb_tui.ui.panes.layout import LayoutPart
from llmb_tui.ui.panes.pane import Give, Pane, label
from llmb_tui.ui.text import MUTED, line
from llmb_tui.ui.view import View
from llmb_tui.ui.widgets.choices import ChoiceList, Field, FindableChoices
from llmb_tui.ui.widgets.paragraphs import Paragraphs
from llmb_tui.ui.widgets.switches import Switches
from llmb_tui.wizard.answers import LAYOUT_FIELDS, value_of
from llmb_tui.wizard.choices import choices
from llmb_tui.wizard.procedures import procedures
from llmb_tui.wizard.steps import StepId
from llmb_tui.wizard.switches import no_loading, switches


class ScalePane(Pane):
    """How many GPUs, which scaling, how many steps, how long at most, what is done beside the benchmark, and how."""

    STEP = StepId.SCALE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "layout", "Layout", id="scale.layout", tooltip="Another layout than the recipe's"),
        Binding("ctrl+l", "layouts", "Valid layouts", show=False, id="scale.layouts", tooltip="Valid layouts, ranked"),
        Binding("ctrl+r", "recipes_layout", "Recipe's", show=False, id="scale.recipes", tooltip="The recipe's layout"),
        Binding("o", "options", "Options", id="scale.options", tooltip="Straight to profile, trace and checkpoints"),
        Binding("P", "procedure", "Procedure", id="scale.procedure", tooltip="Direct, or NVIDIA's own scripts"),
    ]

    @property
    def tells(self) -> frozenset[str]:
        """The layout's, once it is open."""
        return frozenset(LAYOUT_FIELDS if self._layout.display else ())

    def __init__(self, give: Give) -> None:
        super().__init__(give)
        self._scales = FindableChoices(partial(give, "scale"), numbers=True, id="scale")
        self._scaling = ChoiceList(partial(give, "scaling"), id="scaling")
        self._other = Field(
            partial(give, "scale"), restrict="[0-9]*", max_length=6, placeholder="any number", id="other-scale"
        )
        self._layout = LayoutPart(give)
        self._steps = Field(partial(give, "steps"), restrict="[0-9]*", max_length=7, id="steps")
        self._limit = Field(partial(give, "time_limit"), restrict="[0-9:-]*", max_length=11, id="time-limit")
        self._switches = Switches(give, id="switches")
        self._start = Field(partial(give, "profile_start"), restrict="[0-9]*", max_length=7, id="profile-start")
        self._stop = Field(partial(give, "profile_stop"), restrict="[0-9]*", max_length=7, id="profile-stop")
        self._load = Field(partial(give, "load_checkpoint"), max_length=4096, id="load-checkpoint")
        self._procedures = ChoiceList(partial(give, "procedure"), id="procedure")

    def compose(self) -> ComposeResult:
        """Listed scales, any other scale, the layout, then the options and the procedure."""
        yield label("GPUs", "● published  ○ listed, no result")
        yield self._scales
        with Horizontal(classes="field"):
            yield Static("  other", classes="name")
            yield self._other
            yield Static("previewed only", classes="hint")
        yield label("Scaling")
        yield self._scaling
        yield label("Layout", "l: another one", id="layout-label")
        yield self._layout
        yield label("Options", "o: profile, trace, checkpoints", id="options-label")
        with Vertical(id="length"):
            with Horizontal(classes="field"):
                yield Static("  steps", classes="name")
                yield self._steps
                yield Static(id="steps-hint", classes="hint")
            with Horizontal(classes="field"):
                yield Static("  time limit", classes="name")
                yield self._limit
                yield Static("HH:MM:SS", classes="hint")
        with Vertical(id="beside"):
            yield self._switches
            with Horizontal(classes="field", id="profile-steps"):
                yield Static("  profile from", classes="name")
                yield self._start
                yield Static("to step", id="profile-to")
                yield self._stop
            with Horizontal(classes="field"):
                yield Static("  load from", classes="name")
                yield self._load
        yield label("Procedure", "P: direct or published", id="procedure-label")
        with Vertical(id="procedures"):
            yield self._procedures
            yield Paragraphs(id="not-published")

    def on_click(self, event: events.Click) -> None:
        """A part's name opens it, as its key does."""
        name = event.widget.id if event.widget is not None else None
        opens = {
            "layout-label": self.action_layout,
            "options-label": self.action_options,
            "procedure-label": self.action_procedure,
        }
        if name in opens:
            opens[name]()

    def action_layout(self) -> None:
        """Straight to the layout, which is shown from then on."""
        self._open("#layout", self._layout.first)

    def action_layouts(self) -> None:
        """The valid layouts, to take one."""
        self._layout.add_class("-open")
        self.post_message(LayoutPart.Listed())

    def action_recipes_layout(self) -> None:
        """Back to the recipe's own layout."""
        self._give("layout", "")

    def action_options(self) -> None:
        """Straight to what can be switched on, which a small screen shows from then on."""
        self._open("#beside", self._switches)

    def action_procedure(self) -> None:
        """Straight to the two procedures, which a small screen shows from then on."""
        self._open("#procedures", self._procedures)

    def _open(self, part: str, first: Widget) -> None:
        opened = self.query_one(part)
        opened.add_class("-open")
        first.focus()
        self.call_after_refresh(opened.scroll_visible, animate=False)

    def show(self, view: View) -> None:
        """A typed field keeps its text while it is typed in."""
        chosen = value_of(view.full, "scale")
        scales = choices(view.catalog, view.answers, "scale")
        self._scales.show(scales, chosen)
        self._scaling.show(choices(view.catalog, view.answers, "scaling"), value_of(view.full, "scaling"))
        listed = any(choice.value == chosen for choice in scales)
        self._put(self._other, "" if listed else chosen)
        self._layout.show(view)
        self._put(self._steps, value_of(view.answers, "steps"))
        self._put(self._limit, value_of(view.answers, "time_limit"))
        self._show_options(view)
        self._show_procedures(view)
        if view.plan is None:
            return
        if view.answers.steps is None:
            self._steps.placeholder = str(view.plan.steps)
        usual = view.catalog.recipe(view.plan.selection.workload, view.plan.selection.release).launch.steps
        hint = "recipe's default" if view.plan.steps == usual else "by the options"
        self.query_one("#steps-hint", Static).update(hint if view.answers.steps is None else "")
        if view.answers.time_limit is None:
            self._limit.placeholder = view.plan.time_limit

    def _show_options(self, view: View) -> None:
        """A field that means nothing now is hidden, one that cannot be used says why."""
        self._switches.show(switches(view.catalog, view.answers))
        self.query_one("#beside").set_class(view.full.options != NOTHING_MORE, "-on")
        self.query_one("#profile-steps").display = view.full.options.profile
        self._put(self._start, value_of(view.answers, "profile_start"))
        self._put(self._stop, value_of(view.answers, "profile_stop"))
        self._put(self._load, value_of(view.answers, "load_checkpoint"))
        why_not = no_loading(view.catalog, view.answers)
        self._load.placeholder = f"– {why_not}" if why_not else "a directory on the cluster"
        self._load.disabled = bool(why_not) and not self._load.value
        if view.plan is not None and view.plan.options.profile:
            self._start.placeholder = str(view.plan.options.profile_start)
            self._stop.placeholder = str(view.plan.options.profile_stop)

    def _show_procedures(self, view: View) -> None:
        """The row has room for a few words of why not; the rest stands under it."""
        against = view.published.problems
        self._procedures.show(procedures(view.catalog, view.answers, against), value_of(view.answers, "procedure"))
        self.query_one("#procedures").set_class(view.answers.procedure == "recipe", "-on")
        why_not = [f"{one.reason} {one.fix}".rstrip() for one in against if one.severity == "error"]
        parts = tuple((line("  "), line((words, MUTED))) for words in why_not)
        self.query_one("#not-published", Paragraphs).parts = parts

    @staticmethod
    def _put(field: Field, text: str) -> None:
        if not field.has_focus and field.value != text:
            field.value = text
