"""`RunsScreen`: a list that follows the one feed of runs while it is seen."""

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
    """It is told of every run when it is seen, and of each change from then on; one that is covered is told nothing."""

    def __init__(self, services: Services, prompter: Prompter) -> None:
        super().__init__()
        self._compositor = RowCompositor()
        self._services = services
        self._prompter = prompter
        self._profiles: Mapping[str, ClusterProfile] = {}
        """The saved clusters by their names."""
        self._following: RunsFollowing | None = None
        self._known: set[str] = set()
        """Ids of the runs of which it was told."""
        self._seen: set[str] = set()
        """Those of them of which it was told since it is seen again."""
        self._is_first = True
        """It was not told of every run since then."""

    def on_screen_resume(self) -> None:
        self._follow()

    def on_screen_suspend(self) -> None:
        self.unfollow()

    def on_unmount(self) -> None:
        self.unfollow()

    def show_changes(self, event: RunsChanged) -> None:
        """In the feed's thread: hand what has changed to the screen."""
        raise NotImplementedError

    async def prepare(self) -> None:
        """Read what is shown beside the runs."""

    def unfollow(self) -> None:
        self.workers.cancel_group(self, "follow")
        if self._following is not None:
            self._following.end()
            self._following = None

    def open_run(self, run_id: str) -> None:
        from llmb_tui.ui.screens.run import RunScreen

        self.app.push_screen(RunScreen(self._services, self._prompter, run_id))

    async def open_report(self, ids: Sequence[str], clock: Callable[[], float]) -> None:
        """Of runs, or of a suite; inside a worker. `clock` says Unix time."""
        from llmb_tui.ui.screens.report import ReportScreen

        with errors_shown(self.app):
            report = await run_in_thread(lambda: self._services.reports.report(ids, clock()))
            if self.is_current:
                self.app.push_screen(ReportScreen(report))

    @background(group="follow", exclusive=True)
    async def _follow(self) -> None:
        feed = await run_in_thread(lambda: self._services.feed)
        with suppress(LlmbError):  # the wizard names a cluster's file that cannot be read
            self._profiles = {
                profile.name: profile for profile in await run_in_thread(self._services.clusters.profiles)
            }
        with suppress(LlmbError):  # the feed tells of folders that cannot be read
            await self.prepare()
        if self._following is None:
            self._is_first, self._seen = True, set()
            self._following = feed.follow(self._hear)

    def _hear(self, event: RunsChanged) -> None:
        """In the feed's thread. What went while nobody followed is in no event; a look that fails has not every run."""
        from llmb_tui.watch.runs_feed import HERE

        changed = {record.run.id for record in event.changed}
        self._seen = (self._seen | changed) - set(event.gone)
        if self._is_first and HERE[0] not in event.silent:
            self._is_first = False
            event = replace(event, gone=tuple(self._known - self._seen))
        self._known = (self._known | changed) - set(event.gone)
        self.show_changes(event)
