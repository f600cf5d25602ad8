"""`DiskScreen`: what this program has put on a cluster, and removing some of it after a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import DataTable, Static

from llmb_tui.answers.disk import largest_first, removal_question, removal_words, summary
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.session import Session
from llmb_tui.cluster_files import housekeeping
from llmb_tui.cluster_files.housekeeping import KINDS, Belonging, Removal
from llmb_tui.cluster_files.prune import held_by_suites, loaded_by_suites
from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.states import Tone
from llmb_tui.services import Services
from llmb_tui.ui.daemon import background, go_on, in_daemon, show_failure
from llmb_tui.ui.dialogs import Confirm
from llmb_tui.ui.text import ERROR_MARK, MUTED, Part, heading, line, lines, tell, trouble_line
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.keyed_table import Key, KeyedTable, Row, TableColumn, room_beside
from llmb_tui.ui.widgets.status_bar import notice

_COLUMNS = (
    TableColumn("mark", "", 1),
    TableColumn("size", "size", 8),
    TableColumn("what", "what", 19),
    TableColumn("run", "run", 16),
)
_LEAST = 20
"""Cells for the last column, the name."""
_NAMED_IN_QUESTION = 8


class DiskScreen(Screen[None]):
    """The largest first. Nothing is removed that is not marked and agreed to."""

    HELP = """What installs and runs have put below the cluster's install directory, the largest first.
x marks a thing, D removes what is marked, for good. What is still needed, or is not known, cannot be marked; the line
below the rows says why. A run's record, plan and verdict stay on this machine."""
    CSS_PATH = "cluster_list.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x,space", "mark", "Mark", key_display="x", id="disk.mark", tooltip="Mark it to be removed"),
        Binding("D", "remove", "Remove…", id="disk.remove", tooltip="Remove what is marked, after a question"),
        Binding("r", "read", "Look again", id="disk.read", tooltip="Ask the cluster again"),
        Binding("q,escape", "dismiss", "Back", id="disk.leave", tooltip="Back; nothing is removed"),
    ]

    table = getters.query_one(KeyedTable)
    said = getters.query_one("#disk-said", Static)
    note = getters.query_one("#disk-note", Static)

    def __init__(self, services: Services, prompter: Prompter, profile: ClusterProfile) -> None:
        super().__init__()
        self._services = services
        self._prompter = prompter
        self._profile = profile
        self._things: dict[Key, Belonging] = {}
        """By their paths."""
        self._marked: set[str] = set()
        self._removing = False

    def compose(self) -> ComposeResult:
        yield Static(id="disk-head", markup=False)
        yield Static(id="disk-said", markup=False)
        yield KeyedTable()
        yield Static(id="disk-note", markup=False)
        yield KeyBar()

    def on_mount(self) -> None:
        self.table.focus()
        self.action_read()

    def on_resize(self) -> None:
        left = line((f" On {self._profile.name}", "bold"), f"   {self._profile.directory}")
        words = notice(self._profile, self._services.policy.observes(self._profile))
        self.query_one("#disk-head", Static).update(heading(left, words, self.size.width))
        self._show_rows()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        if self._removing and action in ("mark", "remove", "read"):
            return None
        if action in ("mark", "remove"):
            return None if self._services.policy.observes(self._profile) else True
        return True

    def action_mark(self) -> None:
        one = self._chosen
        if one is not None and not one.kept:
            self._marked ^= {one.path}
            self._show_rows()

    @background(group="disk", exclusive=True)
    async def action_read(self, said: str = "") -> None:
        """`said`: what was done before."""
        await self._read(said)

    @background(group="remove", exclusive=True)
    async def action_remove(self) -> None:
        things = housekeeping.chosen(tuple(self._things.values()), sorted(self._marked))
        if not things:
            tell(self.app, "Nothing is marked: x marks a thing.", "warning")
            return
        question = _question(self._profile.name, things)
        if await self.app.push_screen_wait(Confirm("Remove", question, "Remove it", "Keep it")):
            self.workers.cancel_group(self, "disk")
            go_on(self.app, self._remove([one.path for one in things]))

    async def _remove(self, paths: Sequence[str]) -> None:
        self._set_removing(True)
        self._say(("◐ ", "$text-warning"), "removing …")
        try:
            removal = await in_daemon(lambda: self._take_away(paths))
        except Trouble as trouble:
            self._say(ERROR_MARK, trouble_line(trouble))
            show_failure(self.app, trouble)
            return
        finally:
            self._set_removing(False)
        self._marked.clear()
        if self.is_attached:
            self.action_read(removal_words(removal))
        else:
            tell(self.app, f"{self._profile.name}: {removal_words(removal)}")

    def _take_away(self, paths: Sequence[str]) -> Removal:
        """By a list of now: what is on the screen may be hours old. In a thread."""
        things = housekeeping.chosen(self._listed(), paths)
        return housekeeping.remove(self._session(), things, self._tell)

    def _set_removing(self, removing: bool) -> None:
        """Meanwhile no key reads, marks or removes."""
        self._removing = removing
        if self.is_attached:
            self.refresh_bindings()

    async def _read(self, said: str = "") -> None:
        """`said`: what was done before."""
        self._say(("◐ ", "$text-warning"), f"{said} Asking {self._profile.name} …".lstrip())
        try:
            self._things = {one.path: one for one in await in_daemon(self._look)}
        except Trouble as trouble:
            self._things = {}
            self._say(ERROR_MARK, trouble_line(trouble))
        else:
            self._say(("● ", "$text-success"), f"{said} {summary(tuple(self._things.values()))}".lstrip())
        self._marked &= {one.path for one in self._things.values() if not one.kept}
        self._show_rows()

    def _look(self) -> tuple[Belonging, ...]:
        """With sizes, the largest first. In a thread."""
        known = housekeeping.measured(self._session(), self._listed(), self._tell)
        return tuple(largest_first(known))

    def _listed(self) -> tuple[Belonging, ...]:
        """As it is now, not measured. In a thread."""
        session, services = self._session(), self._services
        session.connect(self._prompter)
        held, to_load = held_by_suites(services.suites, self._profile.name), loaded_by_suites(services.suites)
        things, _ = housekeeping.belongings(session, services.catalog, services.runs.all(), held, to_load)
        return things

    def _session(self) -> Session:
        return self._services.clusters.login_node(self._profile.name)

    def _tell(self, words: str) -> None:
        """In a thread: how far it is."""
        self.call_later(self._say, ("◐ ", "$text-warning"), words)

    @property
    def _chosen(self) -> Belonging | None:
        """Under the cursor."""
        return self._things.get(self.table.chosen)

    def _show_rows(self) -> None:
        room = max(room_beside(_COLUMNS, self.size.width - 2), _LEAST)
        columns = (*_COLUMNS, TableColumn("name", "name", room))
        rows = {key: row_of(one, one.path in self._marked, room) for key, one in self._things.items()}
        self.table.show(columns, rows)
        self._show_note()

    @on(DataTable.RowHighlighted)
    def _show_note(self) -> None:
        one = self._chosen
        parts: list[Part] = []
        if one is not None:
            parts = [one.path]
            if one.kept:
                parts += [("   ✗ stays: ", "$text-error"), one.kept]
            elif not self._services.policy.observes(self._profile):
                parts.append(("   x marks it", MUTED))
        self.note.update(line(*parts))

    def _say(self, *parts: Part) -> None:
        if self.is_attached:
            self.said.update(line(*parts))


def row_of(one: Belonging, marked: bool, room: int) -> Row:
    """The cells of a thing; of a path that is longer than its `room` the end tells it from others."""
    tone: Tone = "quiet" if one.kept else "plain"
    return {
        "mark": ("x" if marked else "", tone),
        "size": ("?" if one.size is None else byte_size(one.size), tone),
        "what": (KINDS[one.kind], tone),
        "run": (" ".join(one.run_ids) or "–", tone),
        "name": (one.path if len(one.path) <= room else f"…{one.path[1 - room :]}", tone),
    }


def _question(cluster: str, things: Sequence[Belonging]) -> Content:
    """The question before a removal, with the first things by name."""
    rows = [line((removal_question(cluster, things), "bold")), Content("")]
    rows += [line(one.path) for one in things[:_NAMED_IN_QUESTION]]
    if len(things) > _NAMED_IN_QUESTION:
        rows.append(line((f"and {len(things) - _NAMED_IN_QUESTION} more", MUTED)))
    return lines(*rows, Content(""), line(("It cannot be undone. Records, plans and verdicts of runs stay.", MUTED)))
