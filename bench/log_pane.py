"""Measure our log panel and Textual's `Log` and `RichLog`, each in a real terminal of 120x40.

Every widget shows the same lines, in batches of 500, until the last line is on the screen. Our panel reads them from a
file, as it does in the program; its time includes writing the file. Each measurement is a separate process.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import resource
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Log, RichLog, Static

from bench._rounds import ROUNDS, Row, measure
from bench._writer import stream_lines
from llmb_tui.ui.widgets.log_pane import LogPane
from llmb_tui.ui.widgets.log_view import LogView

_BATCH = 500
_TICK_S = 0.002
_LINES = {"LogPane": 4_000_000, "Log": 200_000, "RichLog": 20_000}
"""Lines that each widget shows within seconds."""
_DISTINCT = 1_000_000
"""Number of different lines; they are repeated to make up the rest."""
_WAYS = {"LogPane": "now", "Log": "Log", "RichLog": "RichLog"}
_STEADY = {"steady": "now", "idle": "idle Textual"}
_STEADY_S, _STEADY_LINES = 6.0, 20_000


def batches(lines: int) -> list[str]:
    """Lines of a training log, in texts of `_BATCH` lines."""
    line = (
        "Training epoch 0, iteration {0}/999999 | lr: 2.784e-06 | global_batch_size: 256 | global_step: {0} | "
        "reduced_train_loss: 9.81 | train_step_timing in s: 2.01 | consumed_samples: 7936"
    )
    return [
        "".join(f"{line.format(number)}\n" for number in range(first, min(first + _BATCH, lines)))
        for first in range(0, lines, _BATCH)
    ]


class Panel(App[None]):
    """App with one widget. It feeds the widget after the first frame and writes the measurements to a JSON file."""

    def __init__(self, kind: str, result: Path) -> None:
        super().__init__()
        self._kind = kind
        self._result = result
        self._spool = result.with_suffix(".log")

    def compose(self) -> ComposeResult:
        """Create the measured widget."""
        widgets: dict[str, Callable[[], Widget]] = {
            "LogPane": lambda: LogPane([("log", self._spool)]),
            "Log": Log,
            "RichLog": RichLog,
            "steady": lambda: LogPane([("log", self._spool)]),
            "idle": Static,
        }
        yield widgets[self._kind]()

    def on_mount(self) -> None:
        """Start to measure after the first frame."""
        measure = self._measure_gaps if self._kind in _STEADY else self._measure
        self.call_after_refresh(lambda: self.run_worker(measure()))

    async def _measure_gaps(self) -> None:
        """Measure how long the event loop is blocked while lines arrive as on the screen of a run, or without lines."""
        gaps: list[float] = []
        for pane in self.query(LogPane):
            self.set_interval(0.1, partial(pane.show_newest, ("log", self._spool)))
        ticker = asyncio.create_task(self._tick(gaps))
        await asyncio.sleep(_STEADY_S)
        ticker.cancel()
        self._result.write_text(json.dumps({"p99_ms": statistics.quantiles(gaps, n=100)[-1] * 1000}))
        self.exit()

    async def _measure(self) -> None:
        feeds: dict[str, Callable[[list[str]], Awaitable[None]]] = {
            "LogPane": self._feed_pane,
            "Log": self._feed_log,
            "RichLog": self._feed_rich_log,
        }
        lines = _LINES[self._kind]
        distinct = min(lines, _DISTINCT)
        texts = batches(distinct) * (lines // distinct)
        memory_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        gaps: list[float] = []
        ticker = asyncio.create_task(self._tick(gaps))
        started_at = time.perf_counter()
        await feeds[self._kind](texts)
        refreshed = asyncio.Event()
        self.call_after_refresh(refreshed.set)
        await refreshed.wait()
        seconds = time.perf_counter() - started_at
        ticker.cancel()
        growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_before
        answer = {"rate": _LINES[self._kind] / seconds, "gap_ms": max(gaps) * 1000, "mb": growth / 1024}
        self._result.write_text(json.dumps(answer))
        self.exit()

    async def _feed_pane(self, texts: list[str]) -> None:
        pane, view = self.query_one(LogPane), self.query_one(LogView)
        shown_at = 0.0
        with self._spool.open("a") as file:
            for text in texts:
                file.write(text)
                file.flush()
                if time.perf_counter() > shown_at + 0.1:  # the interval at which the copier of a log reports
                    shown_at = time.perf_counter()
                    pane.show_newest(("log", self._spool))
                await asyncio.sleep(0)
        pane.show_newest(("log", self._spool))
        while view.source.lines < _LINES["LogPane"] or view.max_scroll_y < view.source.lines - view.size.height:
            await asyncio.sleep(0.001)

    async def _feed_log(self, texts: list[str]) -> None:
        log = self.query_one(Log)
        for text in texts:
            log.write_lines(text.splitlines())
            await asyncio.sleep(0)

    async def _feed_rich_log(self, texts: list[str]) -> None:
        log = self.query_one(RichLog)
        for text in texts:
            for line in text.splitlines():
                log.write(line)
            await asyncio.sleep(0)

    async def _tick(self, gaps: list[float]) -> None:
        """Sleep repeatedly; append the overrun of each sleep, in seconds."""
        last = time.perf_counter()
        while True:
            await asyncio.sleep(_TICK_S)
            now = time.perf_counter()
            gaps.append(now - last - _TICK_S)
            last = now


def run_panel(kind: str, result: Path) -> dict[str, float]:
    """Run one widget in a separate pseudo-terminal; return its measurements."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    command = [sys.executable, "-m", "bench.log_pane", kind, str(result)]
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    while process.poll() is None:
        if select.select([master], [], [], 0.05)[0]:
            try:
                os.read(master, 1 << 20)
            except OSError:  # Linux raises it if the program has closed the terminal
                process.wait()
    os.close(master)
    answer: dict[str, float] = json.loads(result.read_text())
    return answer


def rows() -> Iterator[Row]:
    """Measure lines a second, the longest block of the event loop, and memory."""
    results: dict[str, list[dict[str, float]]] = {kind: [] for kind in _LINES}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(ROUNDS):
            for kind in _LINES:
                results[kind].append(run_panel(kind, Path(folder) / f"{kind}{turn}"))
                for log in Path(folder).glob("*.log"):
                    log.unlink()
    for key, name, unit, number, goals in (
        ("rate", "lines into a log panel", "lines/s", 5, "≥ 20 × Log"),
        ("gap_ms", "longest block of the event loop meanwhile", "ms", 5, ""),
        ("mb", f"memory for {_LINES['LogPane']:,} lines (Log: {_LINES['Log']:,})", "MB", 6, "≤ 10"),
    ):
        values = {_WAYS[kind]: [answer[key] for answer in answers] for kind, answers in results.items()}
        yield Row(name, unit, values, goals, number)
    yield blocks()


def blocks() -> Row:
    """Measure how long the event loop is blocked, p99, and compare it with an idle app."""
    with tempfile.TemporaryDirectory() as folder:

        def p99_ms(kind: str) -> float:
            result = Path(folder) / kind
            with stream_lines(result.with_suffix(".log"), _STEADY_LINES):  # the writer loads the machine in both cases
                return run_panel(kind, result)["p99_ms"]

        values = measure({way: partial(p99_ms, kind) for kind, way in _STEADY.items()}, 3 * ROUNDS)
    name = f"block of the event loop at {_STEADY_LINES:,} lines a second, p99"
    reason = (
        "Textual's compositor repaints the pane, twice a second, without a break, and asyncio rounds waits "
        "up to whole milliseconds if anything has happened meanwhile"
    )
    return Row(name, "ms", values, "≤ 1.5 × idle Textual", 5, reason)


if __name__ == "__main__":
    Panel(sys.argv[1], Path(sys.argv[2])).run()
