"""`LlmbRunsScreen`: the runs that NVIDIA's llmb-run started on a cluster. One that is opened is watched as ours are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Static

from llmb_tui.answers.llmb_runs import runs_summary
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.errors import Trouble
from llmb_tui.language.labels import gpus_cell
from llmb_tui.language.quantities import age
from llmb_tui.language.states import Tone
from llmb_tui.services import Services
from llmb_tui.ui.daemon import background, in_daemon
from llmb_tui.ui.text import ERROR_MARK, MUTED, Part, heading, line, tell, trouble_line
from llmb_tui.ui.widgets.choices import ChoiceList
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.keyed_table import Key, KeyedTable, Row, TableColumn, room_beside
from llmb_tui.ui.widgets.status_bar import notice
from llmb_tui.wizard.choices import Choice

if TYPE_CHECKING:
    from llmb_tui.launch.llmb.import_run import ImportableRun
    from llmb_tui.launch.run import Run

_COLUMNS = (
    TableColumn("job", "job", 10),
    TableColumn("workload", "workload", 27),
    TableColumn("scale", "scale", 10),
    TableColumn("release", "release", 9),
    TableColumn("age", "age", 7),
    TableColumn("here", "here as", 19),
)
_LEAST = 12
"""Cells for the last column, which says why a run cannot be opened."""


class LlmbRunsScreen(Screen[str | None]):
    """The runs of one cluster, newest first. Its answer is the id of the run that was opened, or None."""

    HELP = """What NVIDIA's own llmb-run started on this cluster, newest first. Enter opens a run: from then on it is
among your runs, and is watched, judged and cancelled as they are. It is never submitted from here.
A run is judged by the preset of its own release: one that no preset has cannot be opened."""
    CSS_PATH = "cluster_list.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "read", "Read again", id="llmb.read", tooltip="Ask the cluster again"),
        Binding("tab", "other", "Other cluster", id="llmb.cluster", tooltip="Between clusters and runs"),
        Binding("q,escape", "dismiss", "Back", id="llmb.leave", tooltip="Back without opening one"),
    ]

    clusters = getters.query_one("#llmb-clusters", ChoiceList)
    table = getters.query_one(KeyedTable)
    said = getters.query_one("#llmb-said", Static)
    note = getters.query_one("#llmb-note", Static)

    def __init__(self, services: Services, prompter: Prompter, cluster: str | None) -> None:
        super().__init__()
        self._services = services
        self._prompter = prompter
        self._cluster = cluster or ""
        self._profiles: tuple[ClusterProfile, ...] = ()
        self._runs: dict[Key, ImportableRun] = {}
        self._of = ""
        """The cluster whose runs these are."""

    def compose(self) -> ComposeResult:
        yield Static(id="llmb-head", markup=False)
        yield ChoiceList(self._choose, id="llmb-clusters")
        yield Static(id="llmb-said", markup=False)
        yield KeyedTable()
        yield Static(id="llmb-note", markup=False)
        yield KeyBar()

    def on_mount(self) -> None:
        self._start()

    def on_resize(self) -> None:
        self._show_head()
        self._show_rows()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        return action != "other" or len(self._profiles) > 1

    @on(ChoiceList.Taken)
    def _taken(self, event: ChoiceList.Taken) -> None:
        event.stop()
        self.action_read()

    @on(DataTable.RowSelected)
    def _selected(self) -> None:
        if (one := self._chosen) is None:
            return
        if one.can_be_opened:
            self._open(one)
        else:
            tell(self.app, f"Job {one.run.job_id} cannot be opened. {one.why_not}", "warning")

    def action_other(self) -> None:
        self.focus_next()

    def action_read(self) -> None:
        if self._cluster:
            self._read(self._cluster)

    @background(group="start")
    async def _start(self) -> None:
        try:
            self._profiles = await in_daemon(self._services.clusters.profiles)
        except Trouble as trouble:
            self._say(ERROR_MARK, trouble_line(trouble))
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

    @background(group="read", exclusive=True)
    async def _read(self, cluster: str) -> None:
        self._say(("◐ asking ", "$text-warning"), f"{cluster} …")
        try:
            found = await in_daemon(self._list, cluster)
            self._runs, self._of = {f"{one.run.folder}{one.run.job_id}": one for one in found}, cluster
        except Trouble as trouble:
            self._runs = {}
            self._say(ERROR_MARK, f"{cluster}: {trouble_line(trouble)}")
        else:
            mark: Part = ("● ", "$text-success") if found else "○ "
            self._say(mark, runs_summary(cluster, found))
        self._show_rows()
        if self._runs:
            self.table.focus()

    def _list(self, cluster: str) -> tuple[ImportableRun, ...]:
        """In a thread."""
        from llmb_tui.launch.llmb.import_run import list_importable_runs  # loads paramiko

        services = self._services
        session = services.clusters.login_node(cluster)
        session.connect(self._prompter)
        return list_importable_runs(session, services.catalog, services.runs)

    def _import(self, one: ImportableRun) -> Run:
        """In a thread."""
        from llmb_tui.launch.llmb.import_run import import_run  # loads paramiko

        return import_run(self._services.catalog, self._services.runs, self._of, one)

    @background(group="open", exclusive=True)
    async def _open(self, one: ImportableRun) -> None:
        self.dismiss((await in_daemon(self._import, one)).id)

    def _choose(self, cluster: str) -> None:
        self._cluster = cluster
        rows = (Choice(one.name, one.name, one.place, one.no_login_node or None) for one in self._profiles)
        self.clusters.show(tuple(rows), cluster)
        self._show_head()

    def _show_head(self) -> None:
        of = next((one for one in self._profiles if one.name == self._cluster), None)
        words = notice(of, self._services.policy.observes(of)) if of is not None else ""
        left = line((" Runs of NVIDIA's llmb-run", "bold"))
        self.query_one("#llmb-head", Static).update(heading(left, words, self.size.width))

    @property
    def _chosen(self) -> ImportableRun | None:
        """Under the cursor."""
        return self._runs.get(self.table.chosen)

    def _show_rows(self) -> None:
        columns = (*_COLUMNS, TableColumn("why", "", max(room_beside(_COLUMNS, self.size.width - 2), _LEAST)))
        now = time.time()
        self.table.show(columns, {key: row_of(one, now) for key, one in self._runs.items()})
        self._show_note()

    @on(DataTable.RowHighlighted)
    def _show_note(self) -> None:
        one = self._chosen
        parts: list[Part] = []
        if one is not None:
            parts = [("enter opens it", MUTED)]
            if one.why_not:
                parts = [("✗ cannot be opened: ", "$text-error"), one.why_not]
            if one.run.changed:
                parts.append((f"   started with {', '.join(one.run.changed)} changed", MUTED))
        self.note.update(line(*parts))

    def _say(self, *parts: Part) -> None:
        self.said.update(line(*parts))


def row_of(one: ImportableRun, now: float) -> Row:
    """The cells of a run. `now` is Unix time."""
    run = one.run
    tone: Tone = "plain" if one.can_be_opened else "quiet"
    workload = f"{run.workload.removeprefix('pretrain_')} {run.dtype}".rstrip()
    return {
        "job": (run.job_id, tone),
        "workload": (workload if run.size in workload else f"{workload} {run.size}", tone),
        "scale": (gpus_cell(run.scale, run.gpu) if run.scale else "–", tone),
        "release": (run.release or "–", tone),
        "age": (age(now - run.written_at) if run.written_at else "–", tone),
        "here": (one.imported_id or "–", tone),
        "why": (one.why_not, tone),
    }
