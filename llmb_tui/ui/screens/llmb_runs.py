"""`LlmbRunsScreen`: the runs that NVIDIA's llmb-run started on a cluster. One that is opened is watched as ours are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Static

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import Trouble
from llmb_tui.services import Services
from llmb_tui.text import clean_line
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.dialogs import Failure
from llmb_tui.ui.text import MUTED, Part, line, tell
from llmb_tui.ui.units import age
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.wizard.choices import Choice

if TYPE_CHECKING:
    from llmb_tui.launch.llmb.import_run import ImportableRun
    from llmb_tui.launch.run import Run

_COLUMNS = (("job", 10), ("workload", 27), ("scale", 10), ("release", 9), ("age", 7), ("here as", 19))
_LEAST = 12
"""Cells for the last column, which says why a run cannot be opened."""


class LlmbRunsScreen(Screen[str | None]):
    """The runs of one cluster, newest first. Its answer is the id of the run that was opened, or None."""

    HELP = """What NVIDIA's own llmb-run started on this cluster, newest first. Enter opens a run: from then on it is
among your runs, and is watched, judged and cancelled as they are. It is never submitted from here.
A run is judged by the preset of its own release: one that no preset has cannot be opened."""
    CSS_PATH = "llmb_runs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "read", "Read again", id="llmb.read", tooltip="Ask the cluster again"),
        Binding("tab", "other", "Other cluster", id="llmb.cluster", tooltip="Between clusters and runs"),
        Binding("q,escape", "leave", "Back", key_display="q", id="llmb.leave", tooltip="Back without opening one"),
    ]

    clusters = getters.query_one("#llmb-clusters", ChoiceList)
    table = getters.query_one("#llmb-runs", DataTable)

    def __init__(
        self, services: Services, prompter: Prompter, cluster: str | None, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__()
        self._services = services
        self._prompter = prompter
        self._cluster = cluster or ""
        self._clock = clock
        self._profiles: tuple[ClusterProfile, ...] = ()
        self._runs: tuple[ImportableRun, ...] = ()
        self._of = ""
        """The cluster whose runs these are."""

    def compose(self) -> ComposeResult:
        yield Static(line((" Runs of NVIDIA's llmb-run", "bold")), id="llmb-head", markup=False)
        yield ChoiceList(self._choose, id="llmb-clusters")
        yield Static(id="llmb-said", markup=False)
        table: DataTable[Text] = DataTable(id="llmb-runs", cursor_type="row", cell_padding=0)
        yield table
        yield Static(id="llmb-note", markup=False)
        yield KeyBar(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._start()

    def on_resize(self) -> None:
        self._show_rows()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        return action != "other" or len(self._profiles) > 1

    @on(ChoiceList.Taken)
    def _taken(self, event: ChoiceList.Taken) -> None:
        event.stop()
        self.action_read()

    @on(DataTable.RowSelected)
    def _selected(self) -> None:
        one = self._chosen()
        if one is None:
            return
        if one.plan is None and not one.imported_id:
            tell(self.app, f"Job {one.run.job_id} cannot be opened. {one.why_not}", "warning")
        else:
            self._open(one)

    def action_other(self) -> None:
        self.focus_next()

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_read(self) -> None:
        if self._cluster:
            self._read(self._cluster)

    @work(group="start", exit_on_error=False)
    async def _start(self) -> None:
        try:
            self._profiles = await in_daemon(self._services.clusters.profiles)
        except Trouble as trouble:
            self._say(("✗ ", "$text-error"), f"{trouble.what} {trouble.why}")
            return
        names = [profile.name for profile in self._profiles if not profile.no_login_node]
        wanted = self._cluster if self._cluster in names else ""
        self.clusters.display = len(self._profiles) > 1
        self._choose(wanted or next(iter(names), ""))
        self.refresh_bindings()
        if self._profiles and not names:
            self._say((f"llmb-run starts jobs on login nodes. {self._profiles[0].no_login_node}", MUTED))
        elif not names:
            self._say(("No cluster is saved yet: the wizard's Cluster step enters one.", MUTED))
        elif wanted or len(names) == 1:
            self.action_read()
        else:
            self.clusters.focus()
            self._say(("enter asks the cluster", MUTED))

    @work(group="read", exclusive=True, exit_on_error=False)
    async def _read(self, cluster: str) -> None:
        self._say(("◐ asking ", "$text-warning"), f"{cluster} …")
        try:
            self._runs, self._of = await in_daemon(self._list, cluster), cluster
        except Trouble as trouble:
            self._runs = ()
            self._say(("✗ ", "$text-error"), f"{cluster}: {trouble.what} {trouble.why}")
        else:
            self._say(*counts(cluster, self._runs))
        self._show_rows()
        if self._runs:
            self.table.focus()

    def _list(self, cluster: str) -> tuple[ImportableRun, ...]:
        """In a thread."""
        from llmb_tui.launch.llmb.import_run import list_importable_runs  # noqa: PLC0415 - loads paramiko

        services = self._services
        session = services.clusters.login_node(cluster)
        session.connect(self._prompter)
        return list_importable_runs(session, services.catalog, services.runs)

    def _import(self, one: ImportableRun) -> Run:
        """In a thread."""
        from llmb_tui.launch.llmb.import_run import import_run  # noqa: PLC0415 - loads paramiko

        return import_run(self._services.catalog, self._services.runs, self._of, one)

    @work(group="open", exclusive=True, exit_on_error=False)
    async def _open(self, one: ImportableRun) -> None:
        try:
            run = await in_daemon(self._import, one)
        except Trouble as trouble:
            self.app.push_screen(Failure(trouble))
        else:
            self.dismiss(run.id)

    def _choose(self, cluster: str) -> None:
        self._cluster = cluster
        rows = (Choice(one.name, one.name, one.place, one.no_login_node or None) for one in self._profiles)
        self.clusters.show(tuple(rows), cluster)

    def _chosen(self) -> ImportableRun | None:
        row = self.table.cursor_row
        return self._runs[row] if 0 <= row < len(self._runs) else None

    def _show_rows(self) -> None:
        row = self.table.cursor_row
        self.table.clear(columns=True)
        for heading, width in _COLUMNS:
            self.table.add_column(Text(heading), width=width + 1)
        self.table.add_column(Text(""), width=max(self.size.width - sum(w + 1 for _, w in _COLUMNS) - 3, _LEAST))
        now = self._clock()
        for one in self._runs:
            style = "" if one.plan is not None or one.imported_id else "dim"
            cells = [Text(text, style, no_wrap=True, overflow="ellipsis") for text in row_of(one, now)]
            self.table.add_row(*cells, key=one.run.folder + one.run.job_id)
        if self._runs:
            self.table.move_cursor(row=min(row, len(self._runs) - 1), animate=False)
        self._show_note()

    @on(DataTable.RowHighlighted)
    def _show_note(self) -> None:
        one = self._chosen()
        parts: list[Part] = []
        if one is not None:
            parts = [("enter opens it", MUTED)]
            if one.why_not:
                parts = [("✗ cannot be opened: ", "$text-error"), one.why_not]
            if one.run.changed:
                parts.append((f"   started with {', '.join(one.run.changed)} changed", MUTED))
        self.query_one("#llmb-note", Static).update(line(*parts))

    def _say(self, *parts: Part) -> None:
        self.query_one("#llmb-said", Static).update(line(*parts))


def counts(cluster: str, runs: Sequence[ImportableRun]) -> tuple[Part, ...]:
    """How many runs there are, and how many of them can be opened."""
    if not runs:
        return ("○ ", f"No run of llmb-run was found on {cluster}.")
    can = sum(one.plan is not None or bool(one.imported_id) for one in runs)
    return (("● ", "$text-success"), f"{cluster}: {len(runs)} found, {can} can be opened")


def row_of(one: ImportableRun, now: float) -> tuple[str, ...]:
    """The cells of a run. `now` is Unix time."""
    run = one.run
    workload = f"{run.workload.removeprefix('pretrain_')} {run.dtype}".rstrip()
    texts = (
        run.job_id,
        workload if run.size in workload else f"{workload} {run.size}",
        f"{run.scale}×{run.gpu.upper()}" if run.scale else "–",
        run.release or "–",
        age(now - run.written_at) if run.written_at else "–",
        one.imported_id or "–",
        one.why_not,
    )
    return tuple(map(clean_line, texts))
