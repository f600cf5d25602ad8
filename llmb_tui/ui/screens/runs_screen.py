"""`RunsScreen`: a list that follows the feed of runs while it is visible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.ui.background import background, errors_shown, run_in_thread
from llmb_tui.ui.compositor import RowCompositor
from llmb_tui.ui.screens.table_screen import TableScreen, Thing
from llmb_tui.watch.state import RunsChanged

if TYPE_CHECKING:
    from llmb_tui.watch.runs_feed import RunsFollowing


class RunsScreen(TableScreen[Thing, None]):
    """Receives all runs when it becomes visible, and then each change; nothing while another screen covers it."""

    def __init__(self, services: Services, prompter: Prompter) -> None:
        super().__init__()
        self._compositor = RowCompositor()
        self._services = services
        self._prompter = prompter
        self._profiles: Mapping[str, ClusterProfile] = {}
        """Saved clusters by name."""
        self._following: RunsFollowing | None = None
        self._known: set[str] = set()
        """Ids of the runs that the list has."""
        self._seen: set[str] = set()
        """Ids of the runs that the feed has sent since the screen became visible."""
        self._is_first = True
        """True until the feed has sent all runs since the screen became visible."""

    def on_screen_resume(self) -> None:
        self._follow()

    def on_screen_suspend(self) -> None:
        self.unfollow()

    def on_unmount(self) -> None:
        self.unfollow()

    def show_changes(self, event: RunsChanged) -> None:
        """Pass changes to the screen; called in the feed's thread."""
        raise NotImplementedError

    async def prepare(self) -> None:
        """Read the other data of the list."""

    def unfollow(self) -> None:
        self.workers.cancel_group(self, "follow")
        if self._following is not None:
            self._following.end()
            self._following = None

    def open_run(self, run_id: str) -> None:
        from llmb_tui.ui.screens.run import RunScreen

        self.app.push_screen(RunScreen(self._services, self._prompter, run_id))

    async def open_report(self, ids: Sequence[str], clock: Callable[[], float]) -> None:
        """Open the report of runs, or of a suite; call it in a worker. `clock` returns Unix time."""
        from llmb_tui.ui.screens.report import ReportScreen

        with errors_shown(self.app):
            report = await run_in_thread(lambda: self._services.reports.report(ids, clock()))
            if self.is_current:
                self.app.push_screen(ReportScreen(report))

    @background(group="follow", exclusive=True)
    async def _follow(self) -> None:
        feed = await run_in_thread(lambda: self._services.feed)
        with suppress(LlmbError):  # the wizard shows which cluster file cannot be read
            self._profiles = {
                profile.name: profile for profile in await run_in_thread(self._services.clusters.profiles)
            }
        with suppress(LlmbError):  # the feed reports directories that cannot be read
            await self.prepare()
        if self._following is None:
            self._is_first, self._seen = True, set()
            self._following = feed.follow(self._hear)

    def _hear(self, event: RunsChanged) -> None:
        """Add to the first complete event the runs removed while the list was hidden; called in the feed's thread."""
        from llmb_tui.watch.runs_feed import HERE

        changed = {record.run.id for record in event.changed}
        self._seen = (self._seen | changed) - set(event.removed_ids)
        if self._is_first and HERE[0] not in event.unreachable:
            self._is_first = False
            event = replace(event, removed_ids=tuple(self._known - self._seen))
        self._known = (self._known | changed) - set(event.removed_ids)
        self.show_changes(event)
