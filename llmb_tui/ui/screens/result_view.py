"""`ResultView`: one answer about results, which is worked out in a thread: texts and charts that scroll."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import getters, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Static

from llmb_tui.errors import Trouble
from llmb_tui.results.chart import Chart
from llmb_tui.ui.clipboard import copy
from llmb_tui.ui.daemon import in_daemon
from llmb_tui.ui.screens.save_charts import ask_and_save
from llmb_tui.ui.text import MUTED, line, say, tell, told
from llmb_tui.ui.widgets.answers import Answer
from llmb_tui.ui.widgets.chart_view import ChartView
from llmb_tui.ui.widgets.key_bar import KeyBar
from llmb_tui.ui.widgets.result_texts import notice_parts
from llmb_tui.ui.widgets.texts import Lines, Scroller


class ResultView(Screen[None]):
    """It shows what it is given, and forgets it when it is left."""

    HELP = "What can be said of the results that were marked. What is not known, or may not be compared, says why."
    CSS_PATH = "results.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", id="result.copy", tooltip="Copy the nodes to leave out, or the file's name"),
        Binding("v", "save", "Save SVG…", id="result.save", tooltip="Write the charts as SVG files"),
        Binding("q,escape", "dismiss", "Back", key_display="q", id="result.leave", tooltip="Back to the results"),
    ]

    head = getters.query_one("#view-head", Static)
    body = getters.query_one(Scroller)

    def __init__(self, title: str, work_out: Callable[[], Answer], notices: Sequence[tuple[str, str]] = ()) -> None:
        """`work_out` is called in a thread; its Trouble is shown. `notices`: (cluster, what has to be said of it)."""
        super().__init__()
        self._notices = notice_parts(notices)
        self._heading = title
        self._work_out = work_out
        self._answer: Answer | None = None

    def compose(self) -> ComposeResult:
        yield Static(line((f"◐ {self._heading} …", MUTED)), id="view-head", markup=False)
        yield Scroller()
        yield KeyBar()

    def on_mount(self) -> None:
        self.body.focus()
        self._show()

    @work(exclusive=True, exit_on_error=False)
    async def _show(self) -> None:
        try:
            answer = await in_daemon(self._work_out)
        except Trouble as trouble:
            say(self.head, line((self._heading, "bold"), *self._notices))
            await self.body.mount(Static(told(trouble), markup=False))
            return
        self._answer = answer
        say(self.head, line((answer.title, "bold"), *self._notices))
        await self.body.mount_all(ChartView(one) if isinstance(one, Chart) else Lines(one) for one in answer.blocks)
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
        if self._answer:
            await ask_and_save(self.app, self._answer.charts)
