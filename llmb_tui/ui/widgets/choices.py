"""Fields and lists to choose from with the keys. What cannot be chosen stays visible, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from rich.segment import Segment
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.strip import Strip
from textual.visual import Visual
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from llmb_tui.ui.compositor import forget_size
from llmb_tui.ui.text import ERROR_MARK, MUTED, line

if TYPE_CHECKING:
    from llmb_tui.wizard.choices import Choice, Switch


_COMPACT = "-textual-compact"


def _compact() -> Reactive[bool]:
    """True from the start, with its class given to the constructor: set later, it has the widget styled for nothing."""
    return Reactive(True, toggle_class=_COMPACT)


class TextField(Input):
    """An input of fixed width that hands its text on in the frame in which it was typed."""

    # Textual's lays out the screen at each letter, for inputs that are as wide as their text.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0))
    compact: Reactive[bool] = _compact()

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.focus_previous", "TextField above", show=False, id="field.up", tooltip="The field above"),
        Binding("down", "app.focus_next", "TextField below", show=False, id="field.down", tooltip="The field below"),
    ]

    def __init__(self, typed: Callable[[str], None], classes: str = "", digits: int = 0, **options: Any) -> None:
        """`digits`: it takes so many at most, and nothing else."""
        if digits:
            options |= {"restrict": "[0-9]*", "max_length": digits}
        super().__init__(classes=f"{classes} {_COMPACT}", compact=True, select_on_focus=False, **options)
        self._typed = typed

    def put(self, text: str) -> None:
        """Show a text, unless it is the person who types."""
        if not self.has_focus and self.value != text:
            self.value = text

    def watch_value(self, value: str) -> None:
        """Hand on what was typed. What is put in while the field has no focus was not typed."""
        if self.has_focus:
            self._typed(value)


class FindField(TextField):
    """The field that narrows a list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,down", "leave(True)", "Take it", id="find.take", tooltip="Take what was found"),
        Binding("escape", "leave(False)", "Forget it", id="find.leave", tooltip="Back to what was chosen before"),
    ]

    @dataclass
    class Left(Message):
        """The search is over; what it came to is kept or not."""

        kept: bool

    def action_leave(self, kept: bool) -> None:
        self.post_message(self.Left(kept))


class VerticalList(OptionList, inherit_bindings=False):
    """A list whose left and right are not bound: they go through the steps of the wizard."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "cursor_down", "Down", show=False, id="list.down", tooltip="The choice below"),
        Binding("up,k", "cursor_up", "Up", show=False, id="list.up", tooltip="The choice above"),
        Binding("home,g", "first", "First", show=False, id="list.first", tooltip="The first choice"),
        Binding("end,G", "last", "Last", show=False, id="list.last", tooltip="The last choice"),
        Binding("pagedown", "page_down", "Page down", show=False, id="list.page-down", tooltip="A page down"),
        Binding("pageup", "page_up", "Page up", show=False, id="list.page-up", tooltip="A page up"),
        Binding("enter", "take", "Take it", show=False, id="list.take", tooltip="Take the choice and go on"),
    ]

    class Taken(Message):
        """The person is done with this list. A click chooses, but does not go on."""

    compact: Reactive[bool] = _compact()

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, compact=True, classes=_COMPACT, **options)

    def action_take(self) -> None:
        self.post_message(self.Taken())

    def set_options(self, options: Iterable[Any]) -> Self:
        """Replace the rows. The list gets their height, also if it was measured without them just before."""
        forget_size(self)
        return super().set_options(options)

    def scroll_to_highlight(self, top: bool = False) -> None:
        """Bring the row into view, also where the list itself is seen in part only."""
        super().scroll_to_highlight(top)
        if self.highlighted is None:
            return
        row = self.content_region.y + self.highlighted - self.scroll_offset.y  # one line each
        for above in self.ancestors:
            if isinstance(above, VerticalScroll):
                at = Region(0, row - above.content_region.y + above.scroll_offset.y, 1, 1)
                above.scroll_to_region(at, animate=False, x_axis=False, immediate=True)


class ChoiceList(VerticalList):
    """The highlighted choice is the chosen one: what depends on it follows in the same frame."""

    highlighted: Reactive[int | None] = Reactive["int | None"](None, repaint=False)
    """Only the rows that look another way are painted."""

    def __init__(self, choose: Callable[[str], None], numbers: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._choose = choose
        self._numbers = numbers
        self._choices: tuple[Choice, ...] = ()
        self.shown: tuple[Choice, ...] = ()
        """The choices that match the filter."""
        self.chosen = ""
        """Value of the chosen choice."""
        self._needle = ""

    def show(self, choices: tuple[Choice, ...], chosen: str) -> None:
        """Show these choices, one of them as chosen. Nothing is chosen by being shown."""
        if choices == self._choices and chosen == self.chosen:
            return
        before, self.chosen = self.chosen, chosen
        if choices != self._choices:
            self._choices = choices
            self._fill()
            return
        self._paint(self._row_of(before), self._row_of(chosen))
        self.highlighted = self._row_of(chosen)

    def filter(self, needle: str) -> None:
        """Show only the choices in which every typed word occurs; choose the first where the chosen one is gone."""
        self._needle = needle
        self._fill()
        enabled = [choice for choice in self.shown if choice.disabled_reason is None]
        if enabled and all(choice.value != self.chosen for choice in self.shown):
            self._choose(enabled[0].value)

    def watch_highlighted(self, before: int | None, highlighted: int | None) -> None:  # type: ignore[override]
        """In the place of Textual's, whose message to all widgets above nobody hears."""
        self._paint(before, highlighted)
        if highlighted is None:
            return
        choice = self.shown[highlighted]
        if choice.disabled_reason is None:
            self.scroll_to_highlight()
            if choice.value != self.chosen:
                self._choose(choice.value)

    def _fill(self) -> None:
        words = self._needle.lower().split()
        self.shown = tuple(choice for choice in self._choices if all(word in choice.searched for word in words))
        self.set_options(Option(self._row(one), disabled=one.disabled_reason is not None) for one in self.shown)
        self.highlighted = self._row_of(self.chosen)

    def _row_of(self, value: str) -> int | None:
        return next((at for at, choice in enumerate(self.shown) if choice.value == value), None)

    def _paint(self, *rows: int | None) -> None:
        for row in rows:
            if row is not None:
                self.refresh_line(row)

    def _row(self, choice: Choice) -> Content:
        """Without the mark of the chosen one."""
        width = max((len(one.label) for one in self._choices), default=0)
        label = choice.label.rjust(width) if self._numbers else choice.label.ljust(width)
        if choice.disabled_reason is not None:
            return line("  ", (f"{label}  – {choice.disabled_reason}", MUTED))
        dot = "" if choice.published is None else "● " if choice.published else "○ "
        return line("  ", label, "  ", dot, choice.detail)

    def render_line(self, y: int) -> Strip:
        """The mark is no part of a row's text: Textual makes all texts anew where one is another."""
        strip, row = super().render_line(y), self.scroll_offset.y + y
        if row >= len(self.shown) or self.shown[row].value != self.chosen:
            return strip
        if self.shown[row].disabled_reason is None:
            mark = Strip([Segment("▸ ", next(iter(strip)).style)])
        else:
            style = self.get_visual_style("option-list--option", "option-list--option-disabled")
            mark = Visual.to_strips(self, line(ERROR_MARK), 2, 1, style)[0]
        return Strip.join([mark, strip.crop(2)])


class FindableChoices(Vertical):
    """A choice list with a field over it that narrows it. Escape brings back what was chosen before."""

    def __init__(self, choose: Callable[[str], None], numbers: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._list = ChoiceList(choose, numbers=numbers)
        self._field = FindField(self._list.filter, placeholder="type to find")
        self._choose = choose
        self._before: str | None = None
        """What was chosen when the search began; None while there is none."""

    def compose(self) -> ComposeResult:
        yield self._field
        yield self._list

    def show(self, choices: tuple[Choice, ...], chosen: str) -> None:
        self._list.show(choices, chosen)

    def find(self) -> None:
        self._before = self._list.chosen
        self._field.display = True
        self._field.focus()

    @on(FindField.Left)
    def _left(self, event: FindField.Left) -> None:
        event.stop()
        self._field.display = False
        self._field.value = ""
        before, self._before = self._before, None
        if before is not None and not event.kept:
            self._choose(before)
        self._list.focus()


class Combo(Vertical):
    """One named value, typed or picked. Down goes from the field into the offers; enter takes one and goes on."""

    DEFAULT_CSS = """
    Combo { height: auto; }
    Combo > ChoiceList { display: none; margin-left: 20; max-height: 6; }
    Combo.-open > ChoiceList { display: block; }
    """

    def __init__(self, name: str, title: str, hint: str, **options: Any) -> None:
        super().__init__(id=f"field-{name}", **options)
        self._title = title
        self._offers: tuple[Choice, ...] = ()
        self._field = TextField(lambda _: self._mark(), placeholder=hint, id=f"profile-{name}")
        self._list = ChoiceList(self._pick, id=f"offers-{name}")

    def compose(self) -> ComposeResult:
        with Horizontal(classes="field"):
            yield Static(f"  {self._title}", classes="name", markup=False)
            yield self._field
            yield Static(classes="offered", markup=False)
        yield self._list

    @property
    def value(self) -> str:
        """What stands in the field, without blanks around it."""
        return self._field.value.strip()

    @value.setter
    def value(self, text: str) -> None:
        self._field.value = text
        self._mark()

    def focus_first(self) -> None:
        self._field.focus()

    def offer(self, offers: tuple[Choice, ...]) -> None:
        """Offer these. Nothing is chosen by being offered."""
        self._offers = offers
        self.query_one(".offered", Static).update(line((f"{len(offers)} offered" if offers else "", MUTED)))
        self._mark()
        self._open(self.has_focus_within)

    def on_descendant_focus(self) -> None:
        self._open(True)

    def on_descendant_blur(self, _event: events.DescendantBlur) -> None:
        self.call_after_refresh(lambda: self._open(self.has_focus_within))

    @on(ChoiceList.Taken)
    def _taken(self, event: ChoiceList.Taken) -> None:
        event.stop()
        self.screen.focus_next()

    def _open(self, wanted: bool) -> None:
        self.set_class(wanted and bool(self._offers), "-open")

    def _pick(self, value: str) -> None:
        self.value = value

    def _mark(self) -> None:
        self._list.show(self._offers, self.value)


class Switches(VerticalList):
    """A line for each switch. Moving the cursor changes nothing; space or a click does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "On, off", id="switches.move", tooltip="Switch it on or off")
    ]

    def __init__(self, give: Callable[[str, str], None], **options: Any) -> None:
        super().__init__(**options)
        self._give = give
        self._switches: tuple[Switch, ...] = ()

    def show(self, switches: tuple[Switch, ...]) -> None:
        """Show these. The cursor stays where it is, unless there is no such line any more."""
        if switches == self._switches:
            return
        before, self._switches = self._switches, switches
        if [one.movable for one in before] == [one.movable for one in switches]:
            for index, one in enumerate(switches):
                self.replace_option_prompt_at_index(index, _row(one))
            return
        # Enabling an option would move the cursor.
        at = self.highlighted
        self.set_options(Option(_row(one), disabled=not one.movable) for one in switches)
        self.highlighted = at if at is not None and at < len(switches) and switches[at].movable else None
        if self.has_focus:
            self.on_focus()

    def on_focus(self) -> None:
        """The space bar moves something from the start."""
        if self.highlighted is None:
            self.action_first()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        from llmb_tui.plan.selection import ON

        event.stop()
        switch = self._switches[event.option_index]
        self._give(switch.field, "" if switch.on else ON)


def _row(switch: Switch) -> Content:
    box = "[x]" if switch.on else "[ ]"
    if not switch.disabled_reason:
        return line(f"  {box} {switch.label:<17}", (switch.detail, MUTED))
    mark = ERROR_MARK if switch.on else "  "
    return line(mark, (f"{box} {switch.label} – {switch.disabled_reason}", MUTED))
