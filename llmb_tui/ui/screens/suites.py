"""`SuitesScreen`: the suites that were submitted from this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.content import Content

from llmb_tui.answers.table import Column
from llmb_tui.errors import LlmbError
from llmb_tui.language.instants import local_time
from llmb_tui.services import Services
from llmb_tui.suites.suite import Suite
from llmb_tui.ui.background import background, run_in_thread
from llmb_tui.ui.screens.table_screen import TableScreen
from llmb_tui.ui.text import ERROR_MARK, MUTED, Part, error_line, line
from llmb_tui.ui.widgets.keyed_table import Key, KeyedTable


class ListedSuite(NamedTuple):
    """A suite, and a summary of its runs."""

    suite: Suite
    words: str


COLUMNS: tuple[Column, ...] = (
    Column("suite", "suite.name", "suite", 12),
    Column("where", "suite.cluster", "cluster", 5),
    Column("submitted", lambda listed: local_time(listed.suite.created_at, time.time()), "submitted", 21),
    Column("id", "suite.id", "id", 17, drop=1),
    Column("progress", "words", "words", 36),
)


class SuitesTable(KeyedTable):
    """Submitted suites."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="list.take", tooltip="Open the suite")
    ]


class SuitesScreen(TableScreen[ListedSuite, str | None]):
    """Suites of this machine, newest first. Dismisses with the id of the suite to open, or None."""

    HELP = "Suites that were submitted from this machine, newest first. Enter opens one."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "Back", id="suites.leave", tooltip="Close the list"),
        Binding("escape", "leave", "Back", show=False, id="dialog.leave", tooltip="Close the list"),
    ]
    TABLE = SuitesTable

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    def on_mount(self) -> None:
        self._read()

    @property
    def title_parts(self) -> Sequence[Part]:
        return [("Suites", "bold")]

    def open(self, thing: ListedSuite) -> None:
        self.dismiss(thing.suite.id)

    def about(self, thing: ListedSuite) -> Content:
        return line((thing.suite.name, "bold"), f"   {thing.suite.id} on {thing.suite.cluster}   {thing.words}")

    @background(exclusive=True)
    async def _read(self) -> None:
        self.show_status("◐ reading the suites …")
        try:
            things: dict[Key, ListedSuite] = {listed.suite.id: listed for listed in await run_in_thread(self._suites)}
        except LlmbError as error:
            self.show_status(ERROR_MARK, error_line(error))
            return
        self.show_status(*([] if things else [("No suites yet. S plans one in step 3 or 6 of the wizard.", MUTED)]))
        self.show_things(COLUMNS, things)

    def _suites(self) -> list[ListedSuite]:
        """Read the suites; blocks."""
        suites = self._services.suites
        return [ListedSuite(suite, suites.progress(suite).words) for suite in suites.all()]
