"""`Switches`: what is on or off, moved with the space bar. What cannot be on stays visible, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from llmb_tui.ui.text import MUTED, line
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.wizard.answers import ON, Field
from llmb_tui.wizard.switches import Switch


class Switches(OptionList, inherit_bindings=False):
    """A line for each switch. Moving the cursor changes nothing; space or a click does."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "select", "On, off", id="switches.move", tooltip="Switch it on or off"),
        Binding("down,j", "cursor_down", "Down", show=False, id="list.down", tooltip="The choice below"),
        Binding("up,k", "cursor_up", "Up", show=False, id="list.up", tooltip="The choice above"),
        Binding("home,g", "first", "First", show=False, id="list.first", tooltip="The first choice"),
        Binding("end,G", "last", "Last", show=False, id="list.last", tooltip="The last choice"),
        Binding("enter", "take", "Take it", show=False, id="list.take", tooltip="Take the choice and go on"),
    ]

    def __init__(self, give: Callable[[Field, str], None], **options: Any) -> None:
        super().__init__(markup=False, compact=True, **options)
        self._give = give
        self._switches: tuple[Switch, ...] = ()

    def show(self, switches: tuple[Switch, ...]) -> None:
        """Show these. The cursor stays where it is."""
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
        self.highlighted = at if at is not None and switches[at].movable else None
        if self.has_focus:
            self.on_focus()

    def on_focus(self) -> None:
        """The space bar moves something from the start."""
        if self.highlighted is None:
            self.action_first()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Move the switch."""
        event.stop()
        switch = self._switches[event.option_index]
        self._give(switch.field, "" if switch.on else ON)

    def action_take(self) -> None:
        """Go on with what is on."""
        self.post_message(ChoiceList.Taken())


def _row(switch: Switch) -> Content:
    box = "[x]" if switch.on else "[ ]"
    if not switch.disabled_reason:
        return line(f"  {box} {switch.label:<17}", (switch.detail, MUTED))
    mark = ("✗ ", "$text-error") if switch.on else "  "
    return line(mark, (f"{box} {switch.label} – {switch.disabled_reason}", MUTED))
