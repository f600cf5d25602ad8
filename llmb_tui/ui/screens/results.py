"""`ResultsScreen`: finished runs in groups with their figures; marked groups are compared."""

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
from llmb_tui.ui.text import MUTED, Part, lines, notices_text, notify
from llmb_tui.ui.widgets.chart_view import ChartView
from llmb_tui.ui.widgets.keyed_table import Key, KeyedTable
from llmb_tui.ui.widgets.result_texts import ListedResult, ResultList, ResultQuery, result_list
from llmb_tui.ui.widgets.run_list import list_problems

if TYPE_CHECKING:
    from llmb_tui.answers.answer import Answer
    from llmb_tui.watch.state import RunsChanged

_MOST_REPORTED = 30
_REGROUP_EVERY_S = 0.3
"""Shortest time between two groupings while many logs are read."""


class ResultRows(KeyedTable):
    """Groups of results, or the runs of one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="results.open", tooltip="Open the runs of the row, or the run")
    ]


class ResultsScreen(RunsScreen[ListedResult]):
    """Groups, or the runs of one, from the feed of runs. The screen never asks for a password."""

    HELP = """Finished runs in groups; an active run is in the list of runs until it ends.
A step time is the mean of the runs that count: completed runs without options that slow a run down.
± is the standard deviation between these runs. A change is marked only if it is larger than this noise."""
    CSS_PATH = "results.tcss"
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (24, "-low"), (30, "-middle"), (44, "-tall")]  # noqa: RUF012 - Textual's
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("x,space", "mark", "Mark", key_display="x", id="results.mark", tooltip="Mark the row for a comparison"),
        Binding("g", "group", "Group", id="results.group", tooltip="Group by the next property, or not at all"),
        Binding("c", "compare", "Compare", id="results.compare", tooltip="Compare the marked rows side by side"),
        Binding("s", "scaling", "Scale", id="results.scaling", tooltip="Show step time and efficiency over GPUs"),
        Binding("n", "nodes", "Nodes", id="results.nodes", tooltip="Find slow nodes, and the option to exclude them"),
        Binding("r", "report", "Report", id="results.report", tooltip="Report the marked runs, or the row's"),
        Binding("e", "export", "Export", id="results.export", tooltip="Export these runs with all evidence"),
        Binding("v", "save", "Save SVG…", id="results.save", tooltip="Write the chart as an SVG file"),
        Binding("q,escape", "leave", "Back", id="results.leave", tooltip="Back to the previous screen"),
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
        self._grouping: Grouping = "configuration"
        self._group: ResultGroup | None = None
        self._problems = ""
        self._has_runs = False
        """True once the feed has sent its runs."""
        self._list: ResultList | None = None
        """None until the first list is ready."""
        self._next_row: Key | None = None
        """Row for the cursor after the next update."""
        self._regroup_timer: Timer | None = None
        self._has_changes = False
        """Changes have arrived since the last grouping."""

    def compose_above(self) -> Iterable[Widget]:
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
        return notices_text((name, words) for name, words in self._notices() if name in clusters)

    @property
    def filter_words(self) -> list[str]:
        """Always empty: the words filter the runs before they are grouped."""
        return []

    def apply_filter(self) -> None:
        self._show()

    def disabled_reason(self, action: str) -> str:
        if action == "compare" and len(self.marked) < 2:
            return "Mark at least two rows with x to compare them."
        return ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "group":
            return self._group is None
        if action == "save":
            return self._list is not None and self._list.chart is not None
        return super().check_action(action, parameters)

    # Actions of the user.

    def open(self, thing: ListedResult) -> None:
        if thing.run is not None:
            self.open_run(thing.run.id)
        else:
            self._group = thing.group
            self._show()

    def about(self, thing: ListedResult) -> Content:
        return lines(*self._list.about(thing)) if self._list else Content("")

    def action_group(self) -> None:
        self._grouping = GROUPINGS[(GROUPINGS.index(self._grouping) + 1) % len(GROUPINGS)]
        self._show()

    def action_compare(self) -> None:
        from llmb_tui.ui.screens.result_view import compare_marked

        marked = self._marked_groups
        runs = [run for group in marked for run in group.runs]
        self._view("comparing", lambda: compare_marked(self._services, marked), runs)

    def action_scaling(self) -> None:
        """Show the curves of the marked runs; without marks, those on which runs of the row lie."""
        from llmb_tui.ui.screens.result_view import scaling_answer

        runs, row = self._chosen_runs(), None if self.marked else self._row
        self._view("scaling", lambda: scaling_answer(self._services, runs, row), row.runs if row else runs)

    def action_nodes(self) -> None:
        """Compare the nodes of the marked runs; without marks, of all runs on the row's clusters."""
        from llmb_tui.ui.screens.result_view import nodes_answer

        clusters = () if self._row is None or self.marked else self._row.clusters
        runs = [run for run in self._chosen_runs() if not clusters or run.cluster in clusters]
        self._view("slow nodes", lambda: nodes_answer(runs), runs)

    @background(group="report", exclusive=True)
    async def action_report(self) -> None:
        runs = self._runs_to_report()
        if len(runs) > _MOST_REPORTED:
            words = f"{len(runs)} runs are too many for a report on the screen; it has {_MOST_REPORTED} at most."
            notify(self.app, f"{words} Mark fewer runs, or use `llmb-tui report`.", "warning")
        if not runs or len(runs) > _MOST_REPORTED:
            return
        self.show_status((f"◐ reading {plural(len(runs), 'log')} for the report …", MUTED))
        await self.open_report([run.id for run in runs], self._clock)
        self._show_problems()

    @background(group="export", exclusive=True)
    async def action_export(self) -> None:
        from llmb_tui.ui.dialogs import ExportDialog
        from llmb_tui.ui.screens.result_view import export_runs

        runs = self._runs_to_report()
        ids = [run.id for run in runs]
        if not runs:
            return
        name = time.strftime("evidence-%Y-%m-%d.tar.zst", time.localtime(self._clock()))
        target = await self.app.push_screen_wait(ExportDialog(len(ids), name))
        if target is not None:
            work = partial(export_runs, self._services, ids, target)
            self._view(f"exporting {plural(len(ids), 'run')}", work, runs, is_export=True)

    def _runs_to_report(self) -> list[RunResult]:
        """Runs of the marked rows, or else of the row under the cursor, oldest first."""
        groups = self._marked_groups or ([self._row] if self._row else [])
        return sorted({run.id: run for group in groups for run in group.runs}.values(), key=lambda run: run.made_at)

    @background(group="save", exclusive=True)
    async def action_save(self) -> None:
        from llmb_tui.ui.screens.result_view import ask_and_save

        if self._list and self._list.chart:
            await ask_and_save(self.app, [self._list.chart])

    def _chosen_runs(self) -> list[RunResult]:
        """Runs of the marked rows, or else all that pass the filter."""
        if self.marked:
            return list({run.id: run for group in self._marked_groups for run in group.runs}.values())
        return narrow(over(self._results.values()), self.words.value, self._notes)

    def _view(
        self, title: str, make_answer: Callable[[], Answer], runs: Iterable[RunResult], *, is_export: bool = False
    ) -> None:
        from llmb_tui.ui.screens.result_view import ResultView

        clusters = {run.cluster for run in runs}
        notices = [(name, words) for name, words in self._notices() if name in clusters]
        self.app.push_screen(ResultView(title, make_answer, notices, is_export=is_export))

    def leave(self) -> None:
        if self._group is not None:
            group, self._group = self._group, None
            self._next_row = group.key
            self._show()
        else:
            super().leave()

    # Data.

    async def prepare(self) -> None:
        self._notes = await run_in_thread(self._services.notes.all)

    def show_changes(self, event: RunsChanged) -> None:
        from llmb_tui.watch.runs_feed import HERE  # loads paramiko, in a thread of the feed

        here = {name: why for name, why in event.unreachable.items() if name == HERE[0]}
        problems = " ".join(list_problems(here, event.unreadable))
        self.call_later(self._take_changes, self._services.history.of(event.changed), event.removed_ids, problems)

    def _take_changes(self, results: Iterable[RunResult], gone: Iterable[str], problems: str) -> None:
        self._has_runs, self._problems = True, problems
        for run_id in gone:
            self._results.pop(run_id, None)
        self._results.update({result.id: result for result in results})
        if self._regroup_timer is None:
            self._show()
            self._regroup_timer = self.set_timer(_REGROUP_EVERY_S, self._regroup)
        else:
            self._has_changes = True

    def _notices(self) -> tuple[tuple[str, str], ...]:
        """Pairs of a cluster and the notice of its profile, such as `simulated`."""
        return tuple((name, profile.notice) for name, profile in self._profiles.items() if profile.notice)

    def _regroup(self) -> None:
        self._regroup_timer = None
        if self._has_changes:
            self._has_changes = False
            self._show()

    # Display.

    @property
    def _row(self) -> ResultGroup | None:
        """Group under the cursor."""
        return self.thing.group if self.thing else None

    @property
    def _marked_groups(self) -> list[ResultGroup]:
        return [listed.group for listed in self.marked.values()]

    @background(group="show", exclusive=True)
    async def _show(self) -> None:
        """Group the results in a thread, and show the rows."""
        if not self._has_runs:
            return
        results = tuple(self._results.values())
        query = ResultQuery(
            results, self._notes, self._grouping, self.words.value, self._group, self._clock, self.size.width, self.rows
        )
        self._list = shown = await run_in_thread(result_list, query)
        self.chart.chart = shown.chart
        self.set_class(shown.chart is not None, "-charted")
        self.show_rows(shown.rows, self._next_row)
        self._next_row = None
        self.show_this_run()
        self._show_problems()
        self.refresh_bindings()

    def _show_problems(self) -> None:
        self.show_status(*([(f"! {self._problems}", "$text-warning")] if self._problems else []))

    @on(DataTable.RowHighlighted)
    def show_this_run(self) -> None:
        """Mark the run under the cursor in the chart."""
        self.chart.this = self.thing.run.id if self.thing and self.thing.run else ""
