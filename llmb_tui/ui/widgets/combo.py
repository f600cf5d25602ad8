"""`Combo`: a field with what the cluster offers for it below, while it has the focus. Anything else may be typed."""

from __future__ import annotations

from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from llmb_tui.ui.text import MUTED, line
from llmb_tui.ui.widgets.choices import ChoiceList, Field
from llmb_tui.wizard.choices import Choice


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
        self._field = Field(self._typed, placeholder=hint, id=f"profile-{name}")
        self._list = ChoiceList(self._pick, id=f"offers-{name}")

    def compose(self) -> ComposeResult:
        """Name and field in one line, the offers below."""
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

    def arrive(self) -> None:
        """Put the focus on the field."""
        self._field.focus()

    def offer(self, offers: tuple[Choice, ...]) -> None:
        """Offer these. Nothing is chosen by being offered."""
        self._offers = offers
        count = f"{len(offers)} offered" if offers else ""
        self.query_one(".offered", Static).update(line((count, MUTED)))
        self._mark()
        self._open(self.has_focus_within)

    def on_descendant_focus(self) -> None:
        """Show what can be picked."""
        self._open(True)

    def on_descendant_blur(self, _event: events.DescendantBlur) -> None:
        """Fold the offers once the focus is elsewhere."""
        self.call_after_refresh(lambda: self._open(self.has_focus_within))

    @on(ChoiceList.Taken)
    def _taken(self, event: ChoiceList.Taken) -> None:
        event.stop()
        self.screen.focus_next()

    def _open(self, wanted: bool) -> None:
        self.set_class(wanted and bool(self._offers), "-open")

    def _typed(self, _text: str) -> None:
        self._mark()

    def _pick(self, value: str) -> None:
        self._field.value = value
        self._mark()

    def _mark(self) -> None:
        self._list.show(self._offers, self.value)
