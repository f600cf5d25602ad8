"""`ResultsScreen`: the runs that are over, grouped, each group in figures; what is marked is compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import getters, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import DataTable

from llmb_tui.analysis.groups import GROUPINGS, Grouping, ResultGroup, narrow, over
from llmb_tui.analysis.result import RunResult
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.language.text import plural
from llmb_tui.launch.note import Note
from llmb_tui.services import Services
from llmb_tui.ui.background import background, run_in_thread
from llmb_tui.ui.screens.runs_screen import RunsScreen
from llmb_tui.ui.text import MUTED, Part, lines, notices_words, notify
from llmb_tui.ui.widgets.chart_view import ChartView
from llmb_tui.ui.widgets.keyed_table import Key, KeyedTable
from llmb_tui.ui.widgets.result_texts import ListedResult, ResultList, ResultQuery, result_list
from llmb_tui.ui.widgets.run_list import list_problems

if TYPE_CHECKING:
    from llmb_tui.answers.answer import Answer
    from llmb_tui.watch.state import RunsChanged

_MOST_REPORTED = 30
_REST_S = 0.3
"""While a thousand logs are read, the groups are made anew so often at most."""


class ResultRows(KeyedTable):
    """Groups, or runs."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="results.open", tooltip="Open the runs of a row, or the run")
    ]


class ResultsScreen(RunsScreen[ListedResult]):
    """Groups, or the runs of one, as the one feed of runs says. It asks nobody for a password."""

    HELP = """The runs that are over, in groups; one that goes on is in the list of runs until it ends.
A step time is the mean of the runs that count: those that ended well and did nothing that slows a run down.
± is the standard deviation between them. What changed is marked only where it is larger than that noise."""
    CSS_PATH = "results.tcss"
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (24, "-low"), (30, "-middle"), (44, "-tall")]  # noqa: RUF012 - Textual's
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x,space", "mark", "Mark", key_display="x", id="results.mark", tooltip="Mark the row to compare it"),
        Binding("g", "group", "Group", id="results.group", tooltip="By configuration, cluster, release, tag, none"),
        Binding("c", "compare", "Compare", id="results.compare", tooltip="The marked rows side by side"),
        Binding("s", "scaling", "Scale", id="results.scaling", tooltip="Step time and efficiency over the GPUs"),
        Binding("n", "nodes", "Nodes", id="results.nodes", tooltip="Which nodes are slow, and what leaves them out"),
        Binding("r", "report", "Report", id="results.report", tooltip="The marked runs, or the row's, as a report"),
        Binding("e", "export", "Export", id="results.export", tooltip="The same runs as one file with all evidence"),
        Binding("v", "save", "Save SVG…", id="results.save", tooltip="Write the chart as an SVG file"),
        Binding("q,escape", "leave", "Back", id="results.leave", tooltip="Back to where you came from"),
    ]

    TABLE = ResultRows
    FILTERED = "run"
    AGES = frozenset({"age", "last"})

    chart = getters.query_one(ChartView)

    def __init__(self, services: Services, prompter: Prompter, clock: Callable[[], float] = time.time) -> None:
        super().__init__(services, prompter)
        self._clock = clock
        self._results: dict[str, RunResult] = {}
        self._notes: Mapping[str, Note] = {}
        self._by: Grouping = "configuration"
        self._within: ResultGroup | None = None
        self._missing = ""
        self._has_heard = False
        """What the feed has to say first is here."""
        self._list: ResultList | None = None
        """None until the first is there."""
        self._wanted: Key | None = None
        """The row to which the cursor goes next."""
        self._rest: Timer | None = None
        self._is_due = False
        """Something came while the rows rested."""

    def above(self) -> Iterable[Widget]:
        return (ChartView(),)

    def on_mount(self) -> None:
        self.show_status(("◐ reading the runs …", MUTED))

    def on_resize(self) -> None:
        self._show()

    @property
    def title_parts(self) -> Sequence[Part]:
        return self._list.title_parts if self._list else [("Results", "bold")]

    @property
    def notice(self) -> str:
        clusters = self._list.clusters if self._list else ()
        return notices_words(one for one in self._notices() if one[0] in clusters)

    @property
    def filter_words(self) -> list[str]:
        """None: the words choose runs before they are grouped."""
        return []

    def apply_filter(self) -> None:
        self._show()

    def why_not(self, action: str) -> str:
        if action == "compare" and len(self.marked) < 2:
            return "Mark two rows or more with x: they are compared with each other."
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "group":
            return self._within is None
        if action == "save":
            return self._list is not None and self._list.chart is not None
        return super().check_action(action, parameters)

    # What the person does.

    def open(self, thing: ListedResult) -> None:
        if thing.run is not None:
            self.open_run(thing.run.id)
        else:
            self._within = thing.group
            self._show()

    def about(self, thing: ListedResult) -> Content:
        return lines(*self._list.about(thing)) if self._list else Content("")

    def action_group(self) -> None:
        self._by = GROUPINGS[(GROUPINGS.index(self._by) + 1) % len(GROUPINGS)]
        self._show()

    def action_compare(self) -> None:
        from llmb_tui.ui.screens.result_view import compare_marked

        marked = self._marked_groups
        runs = [run for one in marked for run in one.runs]
        self._view("comparing", lambda: compare_marked(self._services, marked), runs)

    def action_scaling(self) -> None:
        """Of what is marked, or of all that has to do with the row."""
        from llmb_tui.ui.screens.result_view import scaling_of

        runs, row = self._chosen_runs(), None if self.marked else self._row
        self._view("scaling", lambda: scaling_of(self._services, runs, row), row.runs if row else runs)

    def action_nodes(self) -> None:
        """Of what is marked, or of all on the row's cluster: nodes are told apart by whatever ran on them."""
        from llmb_tui.ui.screens.result_view import nodes_of

        clusters = () if self._row is None or self.marked else self._row.clusters
        runs = [run for run in self._chosen_runs() if not clusters or run.cluster in clusters]
        self._view("slow nodes", lambda: nodes_of(runs), runs)

    @background(group="report", exclusive=True)
    async def action_report(self) -> None:
        runs = self._runs_to_hand_over()
        if len(runs) > _MOST_REPORTED:
            words = f"These are {len(runs)} runs: a report on the screen has {_MOST_REPORTED} at most."
            notify(self.app, f"{words} Mark some of them; `llmb-tui report` writes them all.", "warning")
        if not runs or len(runs) > _MOST_REPORTED:
            return
        self.show_status((f"◐ reading {plural(len(runs), 'log')} for the report …", MUTED))
        await self.open_report([run.id for run in runs], self._clock)
        self._show_missing()

    @background(group="export", exclusive=True)
    async def action_export(self) -> None:
        from llmb_tui.ui.dialogs import ExportDialog
        from llmb_tui.ui.screens.result_view import export_runs

        runs = self._runs_to_hand_over()
        ids = [run.id for run in runs]
        if not runs:
            return
        name = time.strftime("evidence-%Y-%m-%d.tar.zst", time.localtime(self._clock()))
        target = await self.app.push_screen_wait(ExportDialog(len(ids), name))
        if target is not None:
            work = partial(export_runs, self._services, ids, target)
            self._view(f"exporting {plural(len(ids), 'run')}", work, runs, agreed=True)

    def _runs_to_hand_over(self) -> list[RunResult]:
        """Of what is marked, or else of the row, oldest first."""
        groups = self._marked_groups or ([self._row] if self._row else [])
        return sorted({run.id: run for one in groups for run in one.runs}.values(), key=lambda run: run.made_at)

    @background(group="save", exclusive=True)
    async def action_save(self) -> None:
        from llmb_tui.ui.screens.result_view import ask_and_save

        if self._list and self._list.chart:
            await ask_and_save(self.app, [self._list.chart])

    def _chosen_runs(self) -> list[RunResult]:
        """Of what is marked, or else all that the words let through."""
        if self.marked:
            return list({run.id: run for one in self._marked_groups for run in one.runs}.values())
        return narrow(over(self._results.values()), self.words.value, self._notes)

    def _view(
        self, title: str, work_out: Callable[[], Answer], runs: Iterable[RunResult], *, agreed: bool = False
    ) -> None:
        from llmb_tui.ui.screens.result_view import ResultView

        clusters = {run.cluster for run in runs}
        notices = [one for one in self._notices() if one[0] in clusters]
        self.app.push_screen(ResultView(title, work_out, notices, agreed=agreed))

    def leave(self) -> None:
        if self._within is not None:
            left, self._within = self._within, None
            self._wanted = left.key
            self._show()
        else:
            super().leave()

    # What is learned.

    async def prepare(self) -> None:
        self._notes = await run_in_thread(self._services.notes.all)

    def show_changes(self, event: RunsChanged) -> None:
        from llmb_tui.watch.runs_feed import HERE  # loads paramiko, in a thread of the feed

        here = {name: why for name, why in event.silent.items() if name == HERE[0]}
        missing = " ".join(list_problems(here, event.unreadable))
        self.call_later(self._take_changes, self._services.history.of(event.changed), event.gone, missing)

    def _take_changes(self, results: Iterable[RunResult], gone: Iterable[str], missing: str) -> None:
        self._has_heard, self._missing = True, missing
        for run_id in gone:
            self._results.pop(run_id, None)
        self._results.update({result.id: result for result in results})
        if self._rest is None:
            self._show()
            self._rest = self.set_timer(_REST_S, self._rested)
        else:
            self._is_due = True

    def _notices(self) -> tuple[tuple[str, str], ...]:
        """(cluster, what its profile wants said)."""
        return tuple((name, profile.notice) for name, profile in self._profiles.items() if profile.notice)

    def _rested(self) -> None:
        self._rest = None
        if self._is_due:
            self._is_due = False
            self._show()

    # What is shown.

    @property
    def _row(self) -> ResultGroup | None:
        """Under the cursor."""
        return self.thing.group if self.thing else None

    @property
    def _marked_groups(self) -> list[ResultGroup]:
        return [one.group for one in self.marked.values()]

    @background(group="show", exclusive=True)
    async def _show(self) -> None:
        """Bring rows and lines to what is known and asked for; the work is done in a thread."""
        if not self._has_heard:
            return
        results = tuple(self._results.values())
        asked = ResultQuery(
            results, self._notes, self._by, self.words.value, self._within, self._clock, self.size.width, self.rows
        )
        self._list = shown = await run_in_thread(result_list, asked)
        self.chart.chart = shown.chart
        self.set_class(shown.chart is not None, "-charted")
        self.show_rows(shown.rows, self._wanted)
        self._wanted = None
        self.show_this_run()
        self._show_missing()
        self.refresh_bindings()

    def _show_missing(self) -> None:
        self.show_status(*([(f"! {self._missing}", "$text-warning")] if self._missing else []))

    @on(DataTable.RowHighlighted)
    def show_this_run(self) -> None:
        """Mark the run under the cursor in the chart."""
        self.chart.this = self.thing.run.id if self.thing and self.thing.run else ""
