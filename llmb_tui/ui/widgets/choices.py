"""`ChoiceList`: choices to pick from with the keys. What cannot be chosen stays visible, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from llmb_tui.ui.text import MUTED, line
from llmb_tui.wizard.choices import Choice


class Field(Input):
    """An input that hands its text on in the frame in which it was typed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "app.focus_previous", "Field above", show=False, id="field.up", tooltip="The field above"),
        Binding("down", "app.focus_next", "Field below", show=False, id="field.down", tooltip="The field below"),
    ]

    def __init__(self, typed: Callable[[str], None], **options: Any) -> None:
        super().__init__(**{"compact": True, "select_on_focus": False, **options})
        self._typed = typed

    def watch_value(self, value: str) -> None:
        """Hand on what was typed. What is put in while the field has no focus was not typed."""
        if self.has_focus:
            self._typed(value)


class FindField(Field):
    """The field that narrows a list."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,down", "leave(True)", "Take it", id="find.take", tooltip="Take what was found"),
        Binding("escape", "leave(False)", "Forget it", id="find.leave", tooltip="Back to what was chosen before"),
    ]

    class Left(Message):
        """The search is over; what it found is kept or not."""

        def __init__(self, kept: bool) -> None:
            super().__init__()
            self.kept = kept

    def action_leave(self, kept: bool) -> None:
        """End the search."""
        self.post_message(self.Left(kept))


class ChoiceList(OptionList, inherit_bindings=False):
    """The highlighted choice is the chosen one: what depends on it follows in the same frame.

    Left and right are not bound here: they go through the steps.
    """

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

    def __init__(self, choose: Callable[[str], None], numbers: bool = False, **options: Any) -> None:
        super().__init__(markup=False, compact=True, **options)
        self._choose = choose
        self._numbers = numbers
        self._choices: tuple[Choice, ...] = ()
        self._shown: tuple[Choice, ...] = ()
        self._chosen = ""
        self._needle = ""
        self._quiet = False

    @property
    def chosen(self) -> str:
        """Value of the chosen choice."""
        return self._chosen

    @property
    def shown(self) -> tuple[Choice, ...]:
        """The choices that match the filter."""
        return self._shown

    def show(self, choices: tuple[Choice, ...], chosen: str) -> None:
        """Show these choices, one of them as chosen. Nothing is chosen by being shown."""
        if choices == self._choices and chosen == self._chosen:
            return
        before, self._chosen = self._chosen, chosen
        if choices == self._choices:
            self._mark(before)
            self._mark(chosen)
            self._point()
            return
        self._choices = choices
        self._fill()

    def filter(self, needle: str) -> None:
        """Show only the choices in which every typed word occurs; choose the first where the chosen one is gone."""
        self._needle = needle
        self._fill()
        enabled = [choice for choice in self._shown if choice.disabled_reason is None]
        if enabled and all(choice.value != self._chosen for choice in self._shown):
            self._choose(enabled[0].value)

    def action_take(self) -> None:
        """Go on with what is chosen."""
        self.post_message(self.Taken())

    def watch_highlighted(self, highlighted: int | None) -> None:
        """Choose what the keys or the mouse point at."""
        super().watch_highlighted(highlighted)
        if self._quiet or highlighted is None or highlighted >= len(self._shown):
            return
        choice = self._shown[highlighted]
        if choice.disabled_reason is None and choice.value != self._chosen:
            self._choose(choice.value)

    def _fill(self) -> None:
        words = self._needle.lower().split()
        self._shown = tuple(choice for choice in self._choices if all(word in choice.searched for word in words))
        self._quiet = True
        self.set_options(
            Option(self._row(choice), disabled=choice.disabled_reason is not None) for choice in self._shown
        )
        self._quiet = False
        self._point()

    def _point(self) -> None:
        index = next((at for at, choice in enumerate(self._shown) if choice.value == self._chosen), None)
        if index != self.highlighted:
            self._quiet = True
            self.highlighted = index
            self._quiet = False

    def _mark(self, value: str) -> None:
        for index, choice in enumerate(self._shown):
            if choice.value == value:
                self.replace_option_prompt_at_index(index, self._row(choice))

    def _row(self, choice: Choice) -> Content:
        chosen = choice.value == self._chosen
        width = max((len(one.label) for one in self._choices), default=0)
        label = choice.label.rjust(width) if self._numbers else choice.label.ljust(width)
        if choice.disabled_reason is not None:
            return line(("✗ ", "$text-error") if chosen else "  ", (f"{label}  – {choice.disabled_reason}", MUTED))
        dot = "" if choice.published is None else "● " if choice.published else "○ "
        return line("▸ " if chosen else "  ", label, "  ", dot, choice.detail)


class FindableChoices(Vertical):
    """A choice list with a field over it that narrows it. Escape brings back what was chosen before."""

    def __init__(self, choose: Callable[[str], None], numbers: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self._list = ChoiceList(choose, numbers=numbers)
        self._choose = choose
        self._before = ""

    def compose(self) -> ComposeResult:
        """The field is hidden until it is asked for."""
        yield FindField(self._list.filter, placeholder="type to find", compact=True)
        yield self._list

    def show(self, choices: tuple[Choice, ...], chosen: str) -> None:
        """Show these choices, one of them as chosen."""
        self._list.show(choices, chosen)

    def find(self) -> None:
        """Open the field."""
        self._before = self._list.chosen
        field = self.query_one(FindField)
        field.display = True
        field.focus()

    @on(FindField.Left)
    def _left(self, event: FindField.Left) -> None:
        event.stop()
        field = self.query_one(FindField)
        field.display = False
        field.value = ""
        if not event.kept:
            self._choose(self._before)
        self._list.focus()
