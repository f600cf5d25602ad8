"""`RowFilter`: words that a row must have, typed below the rows. It is seen while it is typed in, or has some."""

from __future__ import annotations

from textual import on
from textual.widgets import Input

from llmb_tui.ui.widgets.keyed_table import KeyedTable


class RowFilter(Input):
    """The screen shows the rows that its `value` lets through."""

    DEFAULT_CSS = "RowFilter { display: none; margin: 0 1; }"

    def __init__(self, placeholder: str, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(placeholder=placeholder, id=id, compact=True)

    def ask(self) -> None:
        self.display = True
        self.screen.set_focus(self)  # at once: the next key is the filter's already

    def forget(self) -> bool:
        """Let all rows through; False where it is not seen."""
        seen = self.display
        self.value = ""
        self.to_rows()
        return seen

    @on(Input.Submitted)
    def to_rows(self) -> None:
        self.display = bool(self.value)
        self.screen.set_focus(self.screen.query_one(KeyedTable))
