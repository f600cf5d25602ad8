"""`LlmbRunsScreen`: the runs that NVIDIA's llmb-run started on a cluster. One that is opened is watched as ours are."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import getters, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Static

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.errors import Trouble
from llmb_tui.services import Services
from llmb_tui.text import clean_line
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.dialogs import Failure
from llmb_tui.ui.prompter import ModalPrompter
from llmb_tui.ui.text import MUTED, Part, line, tell
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.durations import age
from llmb_tui.wizard.choices import Choice

if TYPE_CHECKING:
    from llmb_tui.launch.llmb.adopt import Listed

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

    def __init__(self, services: Services, cluster: str | None, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._services = services
        self._cluster = cluster or ""
        self._clock = clock
        self._profiles: tuple[ClusterProfile, ...] = ()
        self._listed: tuple[Listed, ...] = ()
        self._of = ""
        """The cluster whose runs these are."""

    def compose(self) -> ComposeResult:
        """The clusters where there are several, what was found, the runs, and why one cannot be opened."""
        yield Static(line((" Runs of NVIDIA's llmb-run", "bold")), id="llmb-head", markup=False)
        yield ChoiceList(self._choose, id="llmb-clusters")
        yield Static(id="llmb-said", markup=False)
        table: DataTable[Text] = DataTable(id="llmb-runs", cursor_type="row", cell_padding=0)
        yield table
        yield Static(id="llmb-note", markup=False)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Find out which clusters there are."""
        self._start()

    def on_resize(self) -> None:
        """The last column takes what is left."""
        self._show_rows()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        """Where there is one cluster, there is no other."""
        return action != "other" or len(self._profiles) > 1

    @on(ChoiceList.Taken)
    def _taken(self, event: ChoiceList.Taken) -> None:
        event.stop()
        self.action_read()

    @on(DataTable.RowHighlighted)
    def _highlighted(self) -> None:
        self._show_note()

    @on(DataTable.RowSelected)
    def _selected(self) -> None:
        one = self._chosen()
        if one is None:
            return
        if one.plan is None and not one.opened:
            tell(self.app, f"Job {one.run.job_id} cannot be opened. {one.why_not}", "warning")
        else:
            self._open(one)

    def action_other(self) -> None:
        """Go between the clusters and the runs."""
        self.focus_next()

    def action_leave(self) -> None:
        """Leave without opening one."""
        self.dismiss(None)

    def action_read(self) -> None:
        """Ask the chosen cluster."""
        if self._cluster:
            self._read(self._cluster)

    @work(group="start", exit_on_error=False)
    async def _start(self) -> None:
        try:
            self._profiles = await in_daemon(self._services.profiles)
        except Trouble as trouble:
            self._say(("✗ ", "$text-error"), f"{trouble.what} {trouble.why}")
            return
        names = [profile.name for profile in self._profiles]
        wanted = self._cluster if self._cluster in names else ""
        self._cluster = wanted or (names[0] if names else "")
        self.clusters.display = len(names) > 1
        self._show_clusters()
        self.refresh_bindings()
        if not names:
            self._say(("No cluster is saved yet: the wizard's Cluster step enters one.", MUTED))
        elif wanted or len(names) == 1:
            self.action_read()
        else:
            self.clusters.focus()
            self._say(("enter asks the cluster", MUTED))

    @work(group="read", exclusive=True, exit_on_error=False)
    async def _read(self, cluster: str) -> None:
        if isinstance(self._services.prompter, ModalPrompter):
            self._services.prompter.quiet = False  # somebody is there, and has asked
        self._say(("◐ asking ", "$text-warning"), f"{cluster} …")
        try:
            self._listed, self._of = await in_daemon(partial(self._services.llmb_runs, cluster)), cluster
        except Trouble as trouble:
            self._listed = ()
            self._say(("✗ ", "$text-error"), f"{cluster}: {trouble.what} {trouble.why}")
        else:
            self._say(*found_words(cluster, self._listed))
        self._show_rows()
        if self._listed:
            self.table.focus()

    @work(group="open", exclusive=True, exit_on_error=False)
    async def _open(self, one: Listed) -> None:
        try:
            run = await in_daemon(partial(self._services.adopt, self._of, one))
        except Trouble as trouble:
            self.app.push_screen(Failure(trouble))
        else:
            self.dismiss(run.id)

    def _choose(self, cluster: str) -> None:
        self._cluster = cluster
        self._show_clusters()

    def _show_clusters(self) -> None:
        self.clusters.show(tuple(Choice(one.name, one.name, one.host) for one in self._profiles), self._cluster)

    def _chosen(self) -> Listed | None:
        row = self.table.cursor_row
        return self._listed[row] if 0 <= row < len(self._listed) else None

    def _show_rows(self) -> None:
        row = self.table.cursor_row
        self.table.clear(columns=True)
        for heading, width in _COLUMNS:
            self.table.add_column(Text(heading), width=width + 1)
        self.table.add_column(Text(""), width=max(self.size.width - sum(w + 1 for _, w in _COLUMNS) - 3, _LEAST))
        now = self._clock()
        for one in self._listed:
            style = "" if one.plan is not None or one.opened else "dim"
            cells = [Text(text, style, no_wrap=True, overflow="ellipsis") for text in row_of(one, now)]
            self.table.add_row(*cells, key=one.run.folder + one.run.job_id)
        if self._listed:
            self.table.move_cursor(row=min(row, len(self._listed) - 1), animate=False)
        self._show_note()

    def _show_note(self) -> None:
        one = self._chosen()
        parts: list[Part] = []
        if one is not None:
            parts = (
                [("✗ cannot be opened: ", "$text-error"), one.why_not] if one.why_not else [("enter opens it", MUTED)]
            )
            if one.run.changed:
                parts.append((f"   started with {', '.join(one.run.changed)} changed", MUTED))
        self.query_one("#llmb-note", Static).update(line(*parts))

    def _say(self, *parts: Part) -> None:
        self.query_one("#llmb-said", Static).update(line(*parts))


def found_words(cluster: str, listed: Sequence[Listed]) -> tuple[Part, ...]:
    """How many runs there are, and how many of them can be opened."""
    if not listed:
        return ("○ ", f"No run of llmb-run was found on {cluster}.")
    can = sum(one.plan is not None or bool(one.opened) for one in listed)
    return (("● ", "$text-success"), f"{cluster}: {len(listed)} found, {can} can be opened")


def row_of(one: Listed, now: float) -> tuple[str, ...]:
    """The cells of a run. `now` is Unix time."""
    run = one.run
    workload = f"{run.workload.removeprefix('pretrain_')} {run.dtype}".rstrip()
    texts = (
        run.job_id,
        workload if run.size in workload else f"{workload} {run.size}",
        f"{run.scale}×{run.gpu.upper()}" if run.scale else "–",
        run.release or "–",
        age(now - run.written_at) if run.written_at else "–",
        one.opened or "–",
        one.why_not,
    )
    return tuple(map(clean_line, texts))
