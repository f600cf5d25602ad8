"""Input fields and selection lists for the keyboard. Unavailable choices stay visible, with the reason."""

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
    """A `compact` that is True from the start.

    The constructor gets its CSS class: a class that is set later has the widget styled a second time.
    """
    return Reactive(True, toggle_class=_COMPACT)


class TextField(Input):
    """An input of fixed width that reports its text in the frame in which it was typed."""

    # With Textual's own property, each letter lays out the screen, for inputs that are as wide as their text.
    virtual_size: Reactive[Size] = Reactive(Size(0, 0))
    compact: Reactive[bool] = _compact()

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.focus_previous", "Previous field", show=False, id="field.up", tooltip="Previous field"),
        Binding("down", "app.focus_next", "Next field", show=False, id="field.down", tooltip="Next field"),
    ]

    def __init__(self, report: Callable[[str], None], classes: str = "", digits: int = 0, **options: Any) -> None:
        """`report` gets each text that the user types. `digits`: maximum number of digits; 0: any text."""
        if digits:
            options |= {"restrict": "[0-9]*", "max_length": digits}
        super().__init__(classes=f"{classes} {_COMPACT}", compact=True, select_on_focus=False, **options)
        self._report = report

    def put(self, text: str) -> None:
        """Show a text, unless the user is typing."""
        if not self.has_focus and self.value != text:
            self.value = text

    def watch_value(self, value: str) -> None:
        """Report typed text. A text that is set while the field has no focus was not typed."""
        if self.has_focus:
            self._report(value)


class FindField(TextField):
    """A search field that filters a list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,down", "leave(True)", "Select", id="find.take", tooltip="Select the highlighted match"),
        Binding("escape", "leave(False)", "Cancel", id="find.leave", tooltip="Return to the previous choice"),
    ]

    @dataclass
    class SearchEnded(Message):
        """The search has ended."""

        kept: bool
        """Whether the user selected the match."""

    def action_leave(self, kept: bool) -> None:
        self.post_message(self.SearchEnded(kept))


class VerticalList(OptionList, inherit_bindings=False):
    """A list without bindings for the left and right keys, which move through the steps of the wizard."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "cursor_down", "Down", show=False, id="list.down", tooltip="Next choice"),
        Binding("up,k", "cursor_up", "Up", show=False, id="list.up", tooltip="Previous choice"),
        Binding("home,g", "first", "First", show=False, id="list.first", tooltip="First choice"),
        Binding("end,G", "last", "Last", show=False, id="list.last", tooltip="Last choice"),
        Binding("pagedown", "page_down", "Page down", show=False, id="list.page-down", tooltip="Page down"),
        Binding("pageup", "page_up", "Page up", show=False, id="list.page-up", tooltip="Page up"),
        Binding("enter", "take", "Select", show=False, id="list.take", tooltip="Select and continue"),
    ]

    class Confirmed(Message):
        """The user confirmed the choice. A click only chooses."""

    compact: Reactive[bool] = _compact()

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, compact=True, classes=_COMPACT, **options)

    def action_take(self) -> None:
        self.post_message(self.Confirmed())

    def set_options(self, options: Iterable[Any]) -> Self:
        """Replace the rows. The list gets their height, even if it was measured without them just before."""
        forget_size(self)
        return super().set_options(options)

    def scroll_to_highlight(self, top: bool = False) -> None:
        """Bring the row into view, even if only a part of the list is visible."""
        super().scroll_to_highlight(top)
        if self.highlighted is None:
            return
        row = self.content_region.y + self.highlighted - self.scroll_offset.y  # each choice has one line
        for parent in self.ancestors:
            if isinstance(parent, VerticalScroll):
                region = Region(0, row - parent.content_region.y + parent.scroll_offset.y, 1, 1)
                parent.scroll_to_region(region, animate=False, x_axis=False, immediate=True)


class ChoiceList(VerticalList):
    """A list whose highlighted choice is the chosen one; dependent widgets follow in the same frame."""

    highlighted: Reactive[int | None] = Reactive["int | None"](None, repaint=False)
    """Index of the highlighted row; a change repaints only the rows that look different."""

    def __init__(self, choose: Callable[[str], None], numbers: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._choose = choose
        self._numbers = numbers
        self._choices: tuple[Choice, ...] = ()
        self.shown: tuple[Choice, ...] = ()
        """Choices that match the filter."""
        self.chosen = ""
        """Value of the chosen choice."""
        self._needle = ""

    def show(self, choices: tuple[Choice, ...], chosen: str) -> None:
        """Show choices with one of them marked as chosen, without reporting a choice."""
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
        """Show only choices that contain every word; choose the first one if the chosen one is not among them."""
        self._needle = needle
        self._fill()
        enabled = [choice for choice in self.shown if choice.disabled_reason is None]
        if enabled and all(choice.value != self.chosen for choice in self.shown):
            self._choose(enabled[0].value)

    def watch_highlighted(self, before: int | None, highlighted: int | None) -> None:  # type: ignore[override]
        """Report the choice. Replaces Textual's watcher, which posts a message that no widget handles."""
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
        self.shown = tuple(choice for choice in self._choices if all(word in choice.search_text for word in words))
        self.set_options(Option(self._row(each), disabled=each.disabled_reason is not None) for each in self.shown)
        self.highlighted = self._row_of(self.chosen)

    def _row_of(self, value: str) -> int | None:
        return next((row for row, choice in enumerate(self.shown) if choice.value == value), None)

    def _paint(self, *rows: int | None) -> None:
        for row in rows:
            if row is not None:
                self.refresh_line(row)

    def _row(self, choice: Choice) -> Content:
        """Text of a row, without the mark of the chosen choice."""
        width = max((len(each.label) for each in self._choices), default=0)
        label = choice.label.rjust(width) if self._numbers else choice.label.ljust(width)
        if choice.disabled_reason is not None:
            return line("  ", (f"{label}  – {choice.disabled_reason}", MUTED))
        dot = "" if choice.published is None else "● " if choice.published else "○ "
        return line("  ", label, "  ", dot, choice.detail)

    def render_line(self, y: int) -> Strip:
        """A row with its mark, which is not part of the text: Textual renders all texts again if one changes."""
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
    """A choice list with a search field above it. Escape restores the choice before the search."""

    def __init__(self, choose: Callable[[str], None], numbers: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._list = ChoiceList(choose, numbers=numbers)
        self._field = FindField(self._list.filter, placeholder="type to find")
        self._choose = choose
        self._before: str | None = None
        """Choice before the search; None without a search."""

    def compose(self) -> ComposeResult:
        yield self._field
        yield self._list

    def show(self, choices: tuple[Choice, ...], chosen: str) -> None:
        self._list.show(choices, chosen)

    def find(self) -> None:
        self._before = self._list.chosen
        self._field.display = True
        self._field.focus()

    @on(FindField.SearchEnded)
    def _end_search(self, event: FindField.SearchEnded) -> None:
        event.stop()
        self._field.display = False
        self._field.value = ""
        before, self._before = self._before, None
        if before is not None and not event.kept:
            self._choose(before)
        self._list.focus()


class Combo(Vertical):
    """A named value, typed or picked from a list. Down goes from the field to the list; enter selects and continues."""

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
        """Text of the field, without leading and trailing blanks."""
        return self._field.value.strip()

    @value.setter
    def value(self, text: str) -> None:
        self._field.value = text
        self._mark()

    def focus_first(self) -> None:
        self._field.focus()

    def offer(self, offers: tuple[Choice, ...]) -> None:
        """Replace the list of values, without choosing one."""
        self._offers = offers
        self.query_one(".offered", Static).update(line((f"{len(offers)} found" if offers else "", MUTED)))
        self._mark()
        self._open(self.has_focus_within)

    def on_descendant_focus(self) -> None:
        self._open(True)

    def on_descendant_blur(self, _event: events.DescendantBlur) -> None:
        self.call_after_refresh(lambda: self._open(self.has_focus_within))

    @on(ChoiceList.Confirmed)
    def _leave_list(self, event: ChoiceList.Confirmed) -> None:
        event.stop()
        self.screen.focus_next()

    def _open(self, is_open: bool) -> None:
        self.set_class(is_open and bool(self._offers), "-open")

    def _pick(self, value: str) -> None:
        self.value = value

    def _mark(self) -> None:
        self._list.show(self._offers, self.value)


class Switches(VerticalList):
    """A list of switches, one per line. Space or a click changes a switch; the cursor does not."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "On/off", id="switches.move", tooltip="Switch on or off")
    ]

    def __init__(self, report: Callable[[str, str], None], **options: Any) -> None:
        """`report` gets the field of a switch and its new value, `ON` or an empty text."""
        super().__init__(**options)
        self._report = report
        self._switches: tuple[Switch, ...] = ()

    def show(self, switches: tuple[Switch, ...]) -> None:
        """Replace the switches. The cursor keeps its line if that line still exists."""
        if switches == self._switches:
            return
        before, self._switches = self._switches, switches
        if [switch.can_switch for switch in before] == [switch.can_switch for switch in switches]:
            for index, switch in enumerate(switches):
                self.replace_option_prompt_at_index(index, _row(switch))
            return
        # Enabling an option would move the cursor.
        row = self.highlighted
        self.set_options(Option(_row(switch), disabled=not switch.can_switch) for switch in switches)
        can_keep = row is not None and row < len(switches) and switches[row].can_switch
        self.highlighted = row if can_keep else None
        if self.has_focus:
            self.on_focus()

    def on_focus(self) -> None:
        """Highlight a switch, so that space has an effect at once."""
        if self.highlighted is None:
            self.action_first()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        from llmb_tui.plan.selection import ON

        event.stop()
        switch = self._switches[event.option_index]
        self._report(switch.field, "" if switch.on else ON)


def _row(switch: Switch) -> Content:
    box = "[x]" if switch.on else "[ ]"
    if not switch.disabled_reason:
        return line(f"  {box} {switch.label:<17}", (switch.detail, MUTED))
    mark = ERROR_MARK if switch.on else "  "
    return line(mark, (f"{box} {switch.label} – {switch.disabled_reason}", MUTED))
