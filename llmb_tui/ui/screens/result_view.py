"""`ResultView`: one answer about results, which is worked out in a thread: texts and charts that scroll."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import getters, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Input, Static

from llmb_tui.errors import Trouble
from llmb_tui.results.chart import Chart
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.dialogs import Dialog, Failure
from llmb_tui.ui.text import MUTED, line, say, tell, told
from llmb_tui.ui.widgets.answers import Answer, Rows
from llmb_tui.ui.widgets.chart_view import ChartView
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.texts import Scroller, WrappedLines

_CHART_ROWS = 16


class ResultView(Screen[None]):
    """It shows what it is given, and forgets it when it is left."""

    HELP = "What can be said of the results that were marked. What is not known, or may not be compared, says why."
    CSS_PATH = "results.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", id="result.copy", tooltip="Copy the nodes to leave out, as an option of sbatch"),
        Binding("v", "save", "Save SVG…", id="result.save", tooltip="Write the charts as SVG files"),
        Binding("q,escape", "leave", "Back", key_display="q", id="result.leave", tooltip="Back to the results"),
    ]

    head = getters.query_one("#view-head", Static)
    body = getters.query_one(Scroller)

    def __init__(self, title: str, work_out: Callable[[], Answer]) -> None:
        """`work_out` is called in a thread; its Trouble is shown."""
        super().__init__()
        self._heading = title
        self._work_out = work_out
        self._answer: Answer | None = None

    def compose(self) -> ComposeResult:
        yield Static(line((f"◐ {self._heading} …", MUTED)), id="view-head", markup=False)
        yield Scroller()
        yield KeyBar(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self.body.focus()
        self._show()

    @work(exclusive=True, exit_on_error=False)
    async def _show(self) -> None:
        try:
            answer = await in_daemon(self._work_out)
        except Trouble as trouble:
            say(self.head, line((self._heading, "bold")))
            await self.body.mount(Static(told(trouble), markup=False))
            return
        self._answer = answer
        say(self.head, line((answer.title, "bold")))
        await self.body.mount_all(_Chart(one) if isinstance(one, Chart) else _Text(one) for one in answer.blocks)
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002 (Textual's)
        """What there is nothing of is grey, where it could be there at all."""
        answer = self._answer
        if action == "copy":
            return bool(answer and (answer.copy or answer.no_copy)) and (True if answer and answer.copy else None)
        return action != "save" or bool(answer and answer.charts)

    def on_key(self, event: Key) -> None:
        """A grey key says why it is."""
        active = self.active_bindings.get(event.key)
        if active and not active.enabled and active.binding.action == "copy" and self._answer:
            tell(self.app, self._answer.no_copy, "warning")

    def action_copy(self) -> None:
        if self._answer:
            copy(self.app, self._answer.copy, self._answer.copy)

    @work(group="save", exclusive=True, exit_on_error=False)
    async def action_save(self) -> None:
        if self._answer is None:
            return
        folder = await self.app.push_screen_wait(FolderDialog(len(self._answer.charts)))
        if folder is None:
            return
        try:
            written = await in_daemon(save_charts, self._answer.charts, folder)
        except Trouble as trouble:
            self.app.push_screen(Failure(trouble))
        else:
            tell(self.app, f"Written: {', '.join(map(str, written))}")

    def action_leave(self) -> None:
        self.dismiss(None)


class FolderDialog(Dialog[Path | None]):
    """Where files go."""

    def __init__(self, count: int) -> None:
        super().__init__("Save charts")
        self._count = count

    def body(self) -> ComposeResult:
        files = "1 SVG file goes" if self._count == 1 else f"{self._count} SVG files go"
        yield Static(line(f"The folder into which {files}; none that is there is replaced."), markup=False)
        yield Input(str(Path.cwd()), compact=True, id="folder")
        yield Static(line(("enter writes, escape does not.", MUTED)), markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(Path(event.value).expanduser() if event.value.strip() else None)


def save_charts(charts: tuple[Chart, ...], folder: Path) -> list[Path]:
    """Write each as `NAME.svg`, or with a number where that is there; the paths. Raises Trouble."""
    from llmb_tui.results.svg import svg  # noqa: PLC0415 - not needed for the first frame
    from llmb_tui.store.files import file_trouble  # noqa: PLC0415 - as above

    if not folder.is_dir():
        raise Trouble(f"{folder} is no folder.", fix="Name one that is there.", exit_code=1)
    written = []
    for chart in charts:
        numbers = ("", *(f"-{number}" for number in range(2, 1000)))
        path = next(path for number in numbers if not (path := folder / f"{chart.name}{number}.svg").exists())
        with file_trouble("write", path), path.open("x", encoding="utf-8") as file:
            path.chmod(0o600)
            file.write(svg(chart))
        written.append(path)
    return written


class _Text(WrappedLines):
    DEFAULT_CSS = "_Text { margin-bottom: 1; }"

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self._rows = rows

    def rows(self, width: int) -> list[Content]:
        return self._rows(width)


class _Chart(ChartView):
    DEFAULT_CSS = f"_Chart {{ height: {_CHART_ROWS}; margin-bottom: 1; }}"

    def __init__(self, chart: Chart) -> None:
        super().__init__()
        self.set_reactive(ChartView.chart, chart)
