"""Lines into a log panel: ours against Textual's `Log` and `RichLog`, each in a real terminal of 120x40.

Every widget gets the same lines in batches of 500, as fast as it takes them, until the last one is on the
screen. Ours reads them from a file, as it does in the program; writing that file is in its time. Each measurement
is a process of its own.
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

from bench._rounds import ROUNDS, Row, in_turns
from bench._writer import streams
from llmb_tui.ui.widgets.log_pane import LogPane
from llmb_tui.ui.widgets.log_view import LogView

_BATCH = 500
_TICK_S = 0.002
# As many as the widget shows within seconds.
_LINES = {"LogPane": 4_000_000, "Log": 200_000, "RichLog": 20_000}
_MADE = 1_000_000
"""So many of them are made, and come again and again."""
_WAYS = {"LogPane": "now", "Log": "Log", "RichLog": "RichLog"}
_STEADY = {"steady": "now", "idle": "idle Textual"}
_STEADY_S, _STEADY_LINES = 6.0, 20_000


def batches(lines: int) -> list[str]:
    """The lines of a training log, in texts of `_BATCH` lines."""
    line = (
        "Training epoch 0, iteration {0}/999999 | lr: 2.784e-06 | global_batch_size: 256 | global_step: {0} | "
        "reduced_train_loss: 9.81 | train_step_timing in s: 2.01 | consumed_samples: 7936"
    )
    return [
        "".join(f"{line.format(number)}\n" for number in range(first, min(first + _BATCH, lines)))
        for first in range(0, lines, _BATCH)
    ]


class Panel(App[None]):
    """One widget, fed as soon as it is there. What was measured is written to a file as JSON."""

    def __init__(self, kind: str, result: Path) -> None:
        super().__init__()
        self._kind = kind
        self._result = result
        self._spool = result.with_suffix(".log")

    def compose(self) -> ComposeResult:
        """The widget that is measured."""
        widgets: dict[str, Callable[[], Widget]] = {
            "LogPane": lambda: LogPane([("log", self._spool)]),
            "Log": Log,
            "RichLog": RichLog,
            "steady": lambda: LogPane([("log", self._spool)]),
            "idle": Static,
        }
        yield widgets[self._kind]()

    def on_mount(self) -> None:
        """Measure when the first frame is out."""
        measure = self._measure_gaps if self._kind in _STEADY else self._measure
        self.call_after_refresh(lambda: self.run_worker(measure()))

    async def _measure_gaps(self) -> None:
        """How long the event loop is away while lines come as they do on the screen of a run, or none do."""
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
        made = min(lines, _MADE)
        texts = batches(made) * (lines // made)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        gaps: list[float] = []
        ticker = asyncio.create_task(self._tick(gaps))
        began = time.perf_counter()
        await feeds[self._kind](texts)
        shown = asyncio.Event()
        self.call_after_refresh(shown.set)
        await shown.wait()
        seconds = time.perf_counter() - began
        ticker.cancel()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        answer = {"rate": _LINES[self._kind] / seconds, "gap_ms": max(gaps) * 1000, "mb": grown / 1024}
        self._result.write_text(json.dumps(answer))
        self.exit()

    async def _feed_pane(self, texts: list[str]) -> None:
        pane, view = self.query_one(LogPane), self.query_one(LogView)
        told = 0.0
        with self._spool.open("a") as file:
            for text in texts:
                file.write(text)
                file.flush()
                if time.perf_counter() > told + 0.1:  # as often as who copies a log says so
                    told = time.perf_counter()
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
        """How long the event loop was away, beyond what was asked for."""
        last = time.perf_counter()
        while True:
            await asyncio.sleep(_TICK_S)
            now = time.perf_counter()
            gaps.append(now - last - _TICK_S)
            last = now


def measured(kind: str, result: Path) -> dict[str, float]:
    """One widget in a terminal of its own."""
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
            except OSError:  # Linux: the program has closed the terminal
                process.wait()
    os.close(master)
    answer: dict[str, float] = json.loads(result.read_text())
    return answer


def rows() -> Iterator[Row]:
    """Lines a second, the longest time that the event loop was away, and memory."""
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in _LINES}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(ROUNDS):
            for kind in _LINES:
                found[kind].append(measured(kind, Path(folder) / f"{kind}{turn}"))
                for log in Path(folder).glob("*.log"):
                    log.unlink()
    for key, what, unit, number, to_reach in (
        ("rate", "lines into a log panel", "lines/s", 5, "≥ 20 × Log"),
        ("gap_ms", "longest block of the event loop meanwhile", "ms", 5, ""),
        ("mb", f"memory for {_LINES['LogPane']:,} lines (Log: {_LINES['Log']:,})", "MB", 6, "≤ 10"),
    ):
        values = {_WAYS[kind]: [answer[key] for answer in answers] for kind, answers in found.items()}
        yield Row(what, unit, values, to_reach, number)
    yield gaps()


def gaps() -> Row:
    """How long the event loop is away, p99, beside an app in which nothing happens."""
    with tempfile.TemporaryDirectory() as folder:

        def taken(kind: str) -> float:
            result = Path(folder) / kind
            with streams(result.with_suffix(".log"), _STEADY_LINES):  # its writer keeps the machine as busy for both
                return measured(kind, result)["p99_ms"]

        values = in_turns({way: partial(taken, kind) for kind, way in _STEADY.items()}, 3 * ROUNDS)
    what = f"block of the event loop at {_STEADY_LINES:,} lines a second, p99"
    why = (
        "Textual's compositor repaints the pane, twice a second, without a break, and asyncio rounds waits "
        "up to whole milliseconds if anything has happened meanwhile"
    )
    return Row(what, "ms", values, "≤ 1.5 × idle Textual", 5, why)


if __name__ == "__main__":
    Panel(sys.argv[1], Path(sys.argv[2])).run()
