"""`DiskScreen`: files that this program has put on a cluster, and their removal after a confirmation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from llmb_tui.answers.disk import ITEM_COLUMNS, largest_first, removal_question, removal_words, summary
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.session import Session
from llmb_tui.cluster_files import housekeeping
from llmb_tui.cluster_files.housekeeping import InstallItem, Removal
from llmb_tui.cluster_files.prune import held_by_suites, loaded_by_suites
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.ui.background import background, run_detached, run_in_thread, show_failure
from llmb_tui.ui.dialogs import ConfirmDialog
from llmb_tui.ui.screens.table_screen import TableScreen
from llmb_tui.ui.text import ERROR_MARK, MUTED, Part, error_line, line, lines, notify
from llmb_tui.ui.widgets.keyed_table import MARK, KeyedTable
from llmb_tui.ui.widgets.status_bar import notice

_NAMED_IN_QUESTION = 8


class DiskTable(KeyedTable):
    """Items below the install directory."""

    CUT_AT_START = frozenset({"name"})


class DiskScreen(TableScreen[InstallItem, None]):
    """Items on a cluster, the largest first. Only marked items are removed, after a confirmation."""

    HELP = """Items that installs and runs have put below the cluster's install directory, the largest first.
x marks an item, D removes the marked items for good.
An item that is in use or not recognized cannot be marked; the line below the rows shows the reason.
Records, plans and verdicts of runs stay on this machine."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x,space", "mark", "Mark", key_display="x", id="disk.mark", tooltip="Mark the item for removal"),
        Binding("D", "remove", "Remove…", id="disk.remove", tooltip="Remove the marked items, after a confirmation"),
        Binding("r", "read", "Refresh", id="disk.read", tooltip="Query the cluster again"),
        Binding("q,escape", "leave", "Back", id="disk.leave", tooltip="Back without removing anything"),
    ]
    TABLE = DiskTable

    def __init__(self, services: Services, prompter: Prompter, profile: ClusterProfile) -> None:
        super().__init__()
        self._services = services
        self._prompter = prompter
        self._profile = profile
        self._is_removing = False

    def on_mount(self) -> None:
        self.action_read()

    @property
    def title_parts(self) -> Sequence[Part]:
        return [(f"On {self._profile.name}", "bold"), f"   {self._profile.directory}"]

    @property
    def notice(self) -> str:
        return notice(self._profile, self._is_read_only)

    @property
    def _is_read_only(self) -> bool:
        return self._services.policy.is_read_only(self._profile)

    def disabled_reason(self, action: str) -> str:
        if self._is_removing and action in ("mark", "remove", "read"):
            return "The marked items are being removed."
        if self._is_read_only and action in ("mark", "remove"):
            return f"{self._profile.name} is read-only: nothing can be removed from it."
        return ""

    def why_unmarkable(self, thing: InstallItem) -> str:
        return thing.kept and f"{thing.path} stays: {thing.kept}"

    def about(self, thing: InstallItem) -> Content:
        parts: list[Part] = [thing.path]
        if thing.kept:
            parts += [("   ✗ stays: ", "$text-error"), thing.kept]
        elif not self._is_read_only:
            parts.append(("   x: mark", MUTED))
        return line(*parts)

    @background(group="disk", exclusive=True)
    async def action_read(self, result: str = "") -> None:
        """Query the cluster again; `result` of an earlier action stays in the status."""
        await self._read(result)

    @background(group="remove", exclusive=True)
    async def action_remove(self) -> None:
        things = housekeeping.select_items(tuple(self.rows.things.values()), sorted(map(str, self.marked)))
        if not things:
            notify(self.app, "No item is marked. Mark one with x first.", "warning")
            return
        question = _question(self._profile.name, things)
        if await self.app.push_screen_wait(ConfirmDialog("Remove", question, "Remove", "Keep")):
            self.workers.cancel_group(self, "disk")
            run_detached(self.app, self._remove([thing.path for thing in things]))

    async def _remove(self, paths: Sequence[str]) -> None:
        self._set_removing(True)
        self._say(("◐ ", "$text-warning"), "removing …")
        try:
            removal = await run_in_thread(lambda: self._remove_items(paths))
        except LlmbError as error:
            self._say(ERROR_MARK, error_line(error))
            show_failure(self.app, error)
            return
        finally:
            self._set_removing(False)
        self.marked.clear()
        if self.is_attached:
            self.action_read(removal_words(removal))
        else:
            notify(self.app, f"{self._profile.name}: {removal_words(removal)}")

    def _remove_items(self, paths: Sequence[str]) -> Removal:
        """Remove items; blocks. They are listed again first, because the rows may be hours old."""
        things = housekeeping.select_items(self._listed(), paths)
        return housekeeping.remove(self._session(), things, self._show_progress)

    def _set_removing(self, removing: bool) -> None:
        """Disable reading, marking and removing during a removal."""
        self._is_removing = removing
        if self.is_attached:
            self.refresh_bindings()

    async def _read(self, result: str = "") -> None:
        """List the items; the status starts with the `result` of an earlier action."""
        self._say(("◐ ", "$text-warning"), f"{result} Querying {self._profile.name} …".lstrip())
        try:
            things = await run_in_thread(self._list_by_size)
        except LlmbError as error:
            things = ()
            self._say(ERROR_MARK, error_line(error))
        else:
            self._say(("● ", "$text-success"), f"{result} {summary(things)}".lstrip())
        removable = {thing.path for thing in things if not thing.kept}
        self.marked = {key: thing for key, thing in self.marked.items() if key in removable}
        self.show_things((MARK, *ITEM_COLUMNS), {thing.path: thing for thing in things})

    def _list_by_size(self) -> tuple[InstallItem, ...]:
        """With sizes, the largest first. In a thread."""
        known = housekeeping.measure_items(self._session(), self._listed(), self._show_progress)
        return tuple(largest_first(known))

    def _listed(self) -> tuple[InstallItem, ...]:
        """As it is now, not measured. In a thread."""
        session, services = self._session(), self._services
        session.connect(self._prompter)
        held, to_load = held_by_suites(services.suites, self._profile.name), loaded_by_suites(services.suites)
        things, _ = housekeeping.install_items(session, services.catalog, services.runs.all(), held, to_load)
        return things

    def _session(self) -> Session:
        return self._services.clusters.login_node(self._profile.name)

    def _show_progress(self, words: str) -> None:
        """Show the progress of a removal; called in its thread."""
        self.call_later(self._say, ("◐ ", "$text-warning"), words)

    def _say(self, *parts: Part) -> None:
        if self.is_attached:
            self.show_status(*parts)


def _question(cluster: str, things: Sequence[InstallItem]) -> Content:
    """The question before a removal, with the first things by name."""
    rows = [line((removal_question(cluster, things), "bold")), Content("")]
    rows += [line(thing.path) for thing in things[:_NAMED_IN_QUESTION]]
    if len(things) > _NAMED_IN_QUESTION:
        rows.append(line((f"and {len(things) - _NAMED_IN_QUESTION} more", MUTED)))
    return lines(*rows, Content(""), line(("This cannot be undone. Records and verdicts of runs stay here.", MUTED)))
