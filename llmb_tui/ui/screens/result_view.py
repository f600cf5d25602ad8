"""`ResultView`: one answer about results, as text and charts that scroll. The answer is made in a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from textual import getters
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Static

from llmb_tui.analysis.chart import Chart
from llmb_tui.analysis.compare import compare
from llmb_tui.analysis.difference import difference
from llmb_tui.analysis.groups import ResultGroup
from llmb_tui.analysis.result import RunResult
from llmb_tui.analysis.scaling import ScalingCurve, scaling_curves
from llmb_tui.analysis.slow_nodes import slow_nodes
from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import pictures
from llmb_tui.answers.comparison import side_by_side
from llmb_tui.answers.nodes import nodes
from llmb_tui.answers.scaling import scaling
from llmb_tui.answers.writers.svg import svg
from llmb_tui.catalog.catalog import UnknownNameError
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import plural
from llmb_tui.plan.over_scale import AtScale, over_scale
from llmb_tui.services import Services
from llmb_tui.store.files import explained_errors
from llmb_tui.store.paths import expand_user, working_directory
from llmb_tui.suites.suite import Suite
from llmb_tui.ui.background import background, run_detached, run_in_thread
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.dialogs import InputDialog
from llmb_tui.ui.text import MUTED, error_content, heading, line, notices_text, notify, set_text
from llmb_tui.ui.widgets.answer_view import AnswerView
from llmb_tui.ui.widgets.key_bar import KeyBar


class ResultView(Screen[None]):
    """Shows one answer."""

    HELP = "An answer about results. If a figure is unknown or a comparison is not valid, the reason is shown."
    CSS_PATH = "results.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", id="result.copy", tooltip="Copy the nodes to exclude, or the file name"),
        Binding("v", "save", "Save SVG…", id="result.save", tooltip="Write the charts as SVG files"),
        Binding("q,escape", "dismiss", "Back", id="result.leave", tooltip="Back to the results"),
    ]

    head = getters.query_one("#view-head", Static)
    body = getters.query_one(AnswerView)

    def __init__(
        self,
        title: str,
        make_answer: Callable[[], Answer],
        notices: Sequence[tuple[str, str]] = (),
        *,
        is_export: bool = False,
    ) -> None:
        """`make_answer` is called in a thread; its LlmbError is shown. `notices`: pairs of a cluster and its notice.

        `is_export`: the user has confirmed an export, so the outcome is reported even if this screen is left before.
        """
        super().__init__()
        self._notices = notices_text(notices)
        self._title = title
        self._head = line((f"◐ {title} …", MUTED))
        self._make_answer = make_answer
        self._is_export = is_export
        self._answer: Answer | None = None
        self._charts: list[Chart] = []

    def compose(self) -> ComposeResult:
        yield Static(id="view-head", markup=False)
        yield AnswerView()
        yield KeyBar()

    def on_mount(self) -> None:
        self.body.focus()
        if self._is_export:
            run_detached(self.app, self._load())
        else:
            self._show()

    @background(exclusive=True)
    async def _show(self) -> None:
        await self._load()

    async def _load(self) -> None:
        try:
            answer = await run_in_thread(self._make_with_blocks)
        except LlmbError as error:
            if not self.is_attached:
                raise
            self._entitle(self._title)
            await self.body.mount(Static(error_content(error), markup=False))
            return
        if not self.is_attached:
            notify(self.app, f"{answer.title}: {answer.copy}")
            return
        self._answer = answer
        self._charts = [picture.chart for picture in pictures(answer.make_blocks())]
        self._entitle(answer.title)
        await self.body.show(answer)
        self.refresh_bindings()

    def _make_with_blocks(self) -> Answer:
        """Make the answer and its blocks; blocks the thread."""
        answer = self._make_answer()
        blocks = answer.make_blocks()
        return replace(answer, make_blocks=lambda: blocks)

    def on_resize(self) -> None:
        set_text(self.head, heading(self._head, self._notices, self.head.content_size.width))

    def _entitle(self, title: str) -> None:
        self._head = line((title, "bold"))
        self.on_resize()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        """Grey out copying if the answer has nothing to copy, and hide keys that do not apply to it."""
        answer = self._answer
        if action == "copy":
            return bool(answer and (answer.copy or answer.no_copy)) and (True if answer and answer.copy else None)
        return action != "save" or bool(self._charts)

    def on_key(self, event: Key) -> None:
        """Show why a grey key is not available."""
        active = self.active_bindings.get(event.key)
        if active and not active.enabled and active.binding.action == "copy" and self._answer:
            notify(self.app, self._answer.no_copy, "warning")

    def action_copy(self) -> None:
        if self._answer:
            copy(self.app, self._answer.copy, self._answer.copy)

    @background(group="save", exclusive=True)
    async def action_save(self) -> None:
        await ask_and_save(self.app, self._charts)


async def ask_and_save(app: App[Any], charts: Sequence[Chart]) -> None:
    """Ask for a directory and write the charts there; call it in a worker."""
    words = line(f"Directory for {plural(len(charts), 'SVG file')}; existing files are not replaced.")
    question = InputDialog("Save charts", words, str(working_directory()), "enter: write · esc: cancel")
    folder = await app.push_screen_wait(question)
    if folder and folder.strip():
        written = await run_in_thread(save_charts, charts, expand_user(folder.strip()))
        notify(app, f"Written: {', '.join(map(str, written))}")


def save_charts(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Write each as `NAME.svg`, with a number if the file exists, and return the paths. Raises LlmbError."""
    if not folder.is_dir():
        raise LlmbError(f"{folder} is not a directory.", "", "Choose an existing directory.", exit_code=1)
    written = []
    for chart in charts:
        numbers = ("", *(f"-{number}" for number in range(2, 1000)))
        path = next(path for number in numbers if not (path := folder / f"{chart.name}{number}.svg").exists())
        with explained_errors("write", path), path.open("x", encoding="utf-8") as file:
            path.chmod(0o600)
            file.write(svg(chart))
        written.append(path)
    return written


def compare_marked(services: Services, marked: Sequence[ResultGroup]) -> Answer:
    """Compare the marked groups or runs with the first one. Raises LlmbError."""
    newest = [services.history.result(_newest_counted(group).id) for group in marked]
    comparisons = [compare(group.runs, marked[0].runs) for group in marked[1:]]
    first, *others = (services.history.sources(result) for result in newest)
    return side_by_side(marked, newest, comparisons, [difference(first, other) for other in others])


def scaling_answer(services: Services, results: Sequence[RunResult], chosen: ResultGroup | None) -> Answer:
    """Scaling curves of results; with a group, those on which one of its runs lies. Raises LlmbError."""
    wanted = {run.id for run in chosen.runs} if chosen else {run.id for run in results}
    curves = [curve for curve in scaling_curves(results) if wanted & {run.id for run in curve.runs}]
    if not curves:
        raise LlmbError(
            "There is no scaling curve for these runs.",
            "A curve needs valid runs on at least two numbers of GPUs, with the same configuration, cluster and launch "
            "method.",
            "Run another scale, or mark other rows.",
            exit_code=1,
        )
    return scaling([(curve, _over_scale(services, curve)) for curve in curves])


def nodes_answer(results: Sequence[RunResult]) -> Answer:
    """Nodes on which runs were slow."""
    return nodes(slow_nodes(results), sorted({run.cluster for run in results}))


def export_runs(
    services: Services, run_ids: Sequence[str], target: tuple[Path, bool], suites: Sequence[Suite] = ()
) -> Answer:
    """Write an archive of finished runs and of suites. `target`: the result of `ExportDialog`.

    Raises LlmbError; then no file is written.
    """
    from llmb_tui.answers.evidence import export_answer  # loads zstd

    file, anonymous = target
    manifest = services.exporter.export(run_ids, file, suites, anonymous=anonymous)
    return export_answer(file, file.stat().st_size, manifest)


def _newest_counted(group: ResultGroup) -> RunResult:
    """Newest run that counts; the newest run if none counts."""
    counted = [run for repeats in group.sets for run in repeats.runs]
    return max(counted, key=lambda run: run.made_at, default=group.first)


def _over_scale(services: Services, curve: ScalingCurve) -> tuple[AtScale, ...]:
    """Published and expected step times of a curve's configuration; empty if its recipe no longer has a preset."""
    selection = replace(curve.runs[0].plan.selection, scale=curve.points[0].gpus)
    try:
        return over_scale(services.catalog, selection)
    except UnknownNameError:
        return ()
