"""`LlmbRunsScreen`: runs that NVIDIA's llmb-run started on a cluster. Opening one adds it to the user's runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import getters, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget

from llmb_tui.answers.llmb_runs import llmb_run_columns, runs_summary
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import LlmbError
from llmb_tui.services import Services
from llmb_tui.ui.background import background, run_in_thread
from llmb_tui.ui.screens.table_screen import TableScreen
from llmb_tui.ui.text import ERROR_MARK, MUTED, Part, error_line, line, notify
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.status_bar import notice
from llmb_tui.wizard.choices import Choice

if TYPE_CHECKING:
    from llmb_tui.launch.llmb.import_run import ImportableRun
    from llmb_tui.launch.run import Run


class LlmbRunsScreen(TableScreen["ImportableRun", str | None]):
    """The runs of one cluster, newest first. Dismisses with the id of the opened run, or None."""

    HELP = """Runs that NVIDIA's llmb-run started on this cluster, newest first.
Enter opens a run and adds it to your runs: it is watched, judged and cancelled like them, and never submitted.
A run is judged by the preset of its release. Without such a preset it cannot be opened."""
    DEFAULT_CSS = """
    LlmbRunsScreen #llmb-clusters {
        max-height: 6;
        margin: 0 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "read", "Refresh", id="llmb.read", tooltip="Query the cluster again"),
        Binding("tab", "switch_list", "Other cluster", id="llmb.cluster", tooltip="Switch between clusters and runs"),
        Binding("q,escape", "leave", "Back", id="llmb.leave", tooltip="Back without opening a run"),
    ]

    clusters = getters.query_one("#llmb-clusters", ChoiceList)

    def __init__(self, services: Services, prompter: Prompter, cluster: str | None) -> None:
        super().__init__()
        self._services = services
        self._prompter = prompter
        self._cluster = cluster or ""
        self._profiles: tuple[ClusterProfile, ...] = ()
        self._listed_cluster = ""

    def compose_above(self) -> Iterable[Widget]:
        return (ChoiceList(self._choose, id="llmb-clusters"),)

    def on_mount(self) -> None:
        self._start()

    @property
    def title_parts(self) -> Sequence[Part]:
        return [("Runs of NVIDIA's llmb-run", "bold")]

    @property
    def notice(self) -> str:
        profile = next((saved for saved in self._profiles if saved.name == self._cluster), None)
        return notice(profile, self._services.policy.is_read_only(profile)) if profile is not None else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "switch_list":
            return len(self._profiles) > 1
        return super().check_action(action, parameters)

    @on(ChoiceList.Confirmed)
    def _cluster_chosen(self, event: ChoiceList.Confirmed) -> None:
        event.stop()
        self.action_read()

    def open(self, thing: ImportableRun) -> None:
        if thing.can_be_opened:
            self._open(thing)
        else:
            notify(self.app, f"Job {thing.run.job_id} cannot be opened. {thing.why_not}", "warning")

    def about(self, thing: ImportableRun) -> Content:
        parts: list[Part] = [("enter: open", MUTED)]
        if thing.why_not:
            parts = [("✗ cannot be opened: ", "$text-error"), thing.why_not]
        if thing.run.changed:
            parts.append((f"   started with changed settings: {', '.join(thing.run.changed)}", MUTED))
        return line(*parts)

    def action_switch_list(self) -> None:
        self.focus_next()

    def action_read(self) -> None:
        if self._cluster:
            self._read(self._cluster)

    @background(group="start")
    async def _start(self) -> None:
        try:
            self._profiles = await run_in_thread(self._services.clusters.profiles)
        except LlmbError as error:
            self.show_status(ERROR_MARK, error_line(error))
            return
        names = [profile.name for profile in self._profiles if not profile.no_login_node]
        cluster = self._cluster if self._cluster in names else ""
        self.clusters.display = len(self._profiles) > 1
        self._choose(cluster or next(iter(names), ""))
        self.refresh_bindings()
        if self._profiles and not names:
            self.show_status((f"llmb-run starts jobs on login nodes. {self._profiles[0].no_login_node}", MUTED))
        elif not names:
            self.show_status(("No cluster yet. Add one in step 4 of the wizard; its runs are listed here.", MUTED))
        elif cluster or len(names) == 1:
            self.action_read()
        else:
            self.clusters.focus()
            self.show_status(("enter: list the cluster's runs", MUTED))

    @background(group="read", exclusive=True)
    async def _read(self, cluster: str) -> None:
        self.show_status(("◐ querying ", "$text-warning"), f"{cluster} …")
        try:
            runs = await run_in_thread(self._list, cluster)
            self._listed_cluster = cluster
        except LlmbError as error:
            runs = ()
            self.show_status(ERROR_MARK, f"{cluster}: {error_line(error)}")
        else:
            mark: Part = ("● ", "$text-success") if runs else "○ "
            self.show_status(mark, runs_summary(cluster, runs))
        self.show_things(
            llmb_run_columns(time.time()), {f"{found.run.folder}{found.run.job_id}": found for found in runs}
        )
        if runs:
            self.table.focus()

    def _list(self, cluster: str) -> tuple[ImportableRun, ...]:
        """List the runs of a cluster; blocks."""
        from llmb_tui.launch.llmb.import_run import list_importable_runs  # loads paramiko

        services = self._services
        session = services.clusters.login_node(cluster)
        session.connect(self._prompter)
        return list_importable_runs(session, services.catalog, services.runs)

    def _import(self, found: ImportableRun) -> Run:
        """Add a run to the user's runs; blocks."""
        from llmb_tui.launch.llmb.import_run import import_run  # loads paramiko

        return import_run(self._services.catalog, self._services.runs, self._listed_cluster, found)

    @background(group="open", exclusive=True)
    async def _open(self, found: ImportableRun) -> None:
        self.dismiss((await run_in_thread(self._import, found)).id)

    def _choose(self, cluster: str) -> None:
        self._cluster = cluster
        rows = (Choice(saved.name, saved.name, saved.place, saved.no_login_node or None) for saved in self._profiles)
        self.clusters.show(tuple(rows), cluster)
        self.show_heading()
