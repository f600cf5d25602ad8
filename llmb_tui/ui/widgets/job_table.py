"""`JobTable`: a row for each run. `job_row` says what is in it; the table writes what changed, and keeps the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import DataTable

from llmb_tui.cluster.slurm.job import TERMINAL_STATES
from llmb_tui.launch.run import Run
from llmb_tui.text import clean_line
from llmb_tui.ui.units import PROCEDURES, percent, seconds
from llmb_tui.ui.widgets.durations import age
from llmb_tui.ui.widgets.gauge import filled
from llmb_tui.ui.widgets.step_chart import METHOD_WORDS
from llmb_tui.ui.widgets.verdict_card import RESULTS
from llmb_tui.watch.state import Result, RunState, Stage

Tone = Literal["plain", "quiet", "now", "good", "warning", "bad"]
Cell = tuple[str, Tone]

_STAGES: dict[Stage, Cell] = {
    "queued": ("◐ queued", "warning"),
    "image": ("● image", "now"),
    "start": ("● start", "now"),
    "warm-up": ("● warm-up", "now"),
    "measuring": ("● measuring", "now"),
    "done": ("✓ done", "good"),
    "failed": ("✗ failed", "bad"),
    "cancelled": ("■ cancelled", "quiet"),
}
_SUBMISSIONS: dict[str, Cell] = {
    "unknown": ("? unknown", "warning"),
    "refused": ("✗ refused", "bad"),
    "withdrawn": ("✗ withdrawn", "bad"),
    "intended": ("○ prepared", "quiet"),
}
_SLURM: dict[str, Cell] = {
    "PENDING": _STAGES["queued"],
    "RUNNING": ("● running", "now"),
    "COMPLETED": _STAGES["done"],
    "CANCELLED": _STAGES["cancelled"],
}
_TONES: dict[Result, Tone] = {"PASS": "good", "WARN": "warning", "FAIL": "bad"}
_BAR_CELLS = 4


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key, its heading, its width, and what a wide terminal changes."""

    key: str
    heading: str
    width: int
    more: int = 0
    """Further cells on a wide terminal."""
    wide: bool = False
    """Only on a wide terminal."""


# Together 78 cells with the gaps, and 119 on a wide terminal.
COLUMNS = (
    Column("mark", "", 1),
    Column("state", "state", 11),
    Column("workload", "workload", 19),
    Column("scale", "scale", 10),
    Column("where", "where", 6, more=6),
    Column("procedure", "run as", 9, wide=True),
    Column("steps", "steps", 7),
    Column("bar", "", _BAR_CELLS, wide=True),
    Column("step_time", "step s", 6),
    Column("against", "of expected", 19, wide=True),
    Column("verdict", "result", 6),
    Column("age", "age", 3),
)


def job_row(run: Run, state: RunState, marked: bool, now: float) -> dict[str, Cell]:
    """The cells of a run by column. `now` is Unix time."""
    selection, estimate = run.plan.selection, run.plan.estimate
    progress, verdict = state.progress, state.verdict
    total = progress.steps_total or run.plan.steps
    step_time = progress.median_s or (progress.last.step_time_s if progress.last else None)
    against = f"{percent(verdict.ratio * 100)} of {METHOD_WORDS[estimate.method]}" if verdict and estimate else ""
    return {
        "mark": ("x" if marked else "", "now"),
        "state": state_cell(run, state),
        "workload": (f"{selection.workload} {selection.size} {selection.dtype}", "plain"),
        "scale": (f"{selection.scale}×{selection.gpu.upper()}", "plain"),
        "where": (clean_line(run.cluster), "plain"),
        "procedure": (PROCEDURES[run.procedure], "quiet"),
        "steps": (f"{progress.steps_done}/{total}" if progress.steps_done else "–", "plain"),
        "bar": (filled(progress.steps_done, total, _BAR_CELLS), "now"),
        "step_time": (seconds(step_time).removesuffix(" s") if step_time else "–", "plain"),
        "against": (against, "plain"),
        "verdict": (f"{RESULTS[verdict.result][0]} {verdict.result}", _TONES[verdict.result])
        if verdict
        else ("–", "quiet"),
        "age": (_short(age(now - (run.submitted_at or run.created_at))), "quiet"),
    }


def state_cell(run: Run, state: RunState) -> Cell:
    """Glyph and word: the submission while it is open, else the stage, else what Slurm last said."""
    if run.submission != "submitted":
        return _SUBMISSIONS[run.submission]
    if state.stage in _STAGES:
        return _STAGES[state.stage]
    slurm = run.job_state or "submitted"
    if slurm in _SLURM:
        return _SLURM[slurm]
    return _STAGES["failed"] if slurm in TERMINAL_STATES else (f"○ {clean_line(slurm).lower()}", "quiet")


def _short(text: str) -> str:
    """`4m` for `4 min`: a column of ages is read as a column."""
    return text.replace(" min", "m").replace(" ", "")


class JobTable(DataTable[Text]):
    """The rows in the order in which they are given. A row that is there already keeps its place and the cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"job--quiet", "job--now", "job--good", "job--warning", "job--bad"}
    DEFAULT_CSS = """
    JobTable {
        height: 1fr;
        background: transparent;
        scrollbar-size: 0 1;
        .job--quiet { text-style: dim; }
        .job--now { color: $text-accent; }
        .job--good { color: $text-success; text-style: bold; }
        .job--warning { color: $text-warning; text-style: bold; }
        .job--bad { color: $text-error; text-style: bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="jobs.open", tooltip="Open the run"),
        Binding("j", "cursor_down", "Down", show=False, id="jobs.down", tooltip="The run below"),
        Binding("k", "cursor_up", "Up", show=False, id="jobs.up", tooltip="The run above"),
    ]

    def __init__(self) -> None:
        super().__init__(cursor_type="row", cell_padding=0, zebra_stripes=False)
        self._wide: bool | None = None
        self._shown: dict[str, dict[str, Cell]] = {}

    def show(self, rows: Iterable[tuple[str, dict[str, Cell]]]) -> None:
        """Bring the table to these (run id, cells), in this order."""
        wanted = dict(rows)
        if list(wanted) == list(self._shown):
            for run_id, cells in wanted.items():
                self._update(run_id, cells)
        else:
            self._refill(wanted)
        self._shown = wanted

    @property
    def chosen(self) -> str | None:
        """Id of the run under the cursor."""
        ids = list(self._shown)
        return ids[self.cursor_row] if 0 <= self.cursor_row < len(ids) else None

    def lay_out(self, wide: bool) -> None:
        """Show the columns for this width."""
        if wide != self._wide:
            self._wide = wide
            self._refill(self._shown)

    def notify_style_update(self) -> None:
        """Another theme: the cells' colours are written again."""
        super().notify_style_update()
        if self._wide is not None and self._shown:
            self._refill(self._shown)

    def _columns(self) -> Sequence[Column]:
        return [column for column in COLUMNS if self._wide or not column.wide]

    def _update(self, run_id: str, cells: dict[str, Cell]) -> None:
        before = self._shown[run_id]
        for column in self._columns():
            if cells[column.key] != before[column.key]:
                self.update_cell(run_id, column.key, self._text(cells[column.key]))

    def _refill(self, wanted: dict[str, dict[str, Cell]]) -> None:
        """Write all rows; the cursor stays on its run where that is still shown."""
        chosen, row = self.chosen, self.cursor_row
        self.clear(columns=True)
        for column in self._columns():
            width = column.width + (column.more if self._wide else 0)
            self.add_column(Text(column.heading), key=column.key, width=width + 1)
        for run_id, cells in wanted.items():
            self.add_row(*(self._text(cells[column.key]) for column in self._columns()), key=run_id)
        ids = list(wanted)
        if ids:
            self.move_cursor(row=ids.index(chosen) if chosen in wanted else min(row, len(ids) - 1), animate=False)

    def _text(self, cell: Cell) -> Text:
        text, tone = cell
        style = "" if tone == "plain" else self.get_component_rich_style(f"job--{tone}", partial=True)
        return Text(text, style, no_wrap=True, overflow="ellipsis")
