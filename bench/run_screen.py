"""Measure the screen of a run in the real program: CPU usage, keys, memory, and the time to show a long log.

The test rig provides a real Slurm job; the program follows its log over a real SSH connection.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import tomli_w

from bench._baselines import ROOT, peer_command
from bench._rounds import ROUNDS, Row, measure, python, versions
from bench._terminal import Terminal
from bench._writer import nccl_lines, stream_lines
from bench.screens import wizard
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import make_run, make_spec
from tests.rig.cluster import Rig

_WATCH_S = 12.0
_KEYS = 12
_LAST = "THE LAST LINE OF ALL"
_LONG = 1_000_000_000
_CPU_REASON = (
    "a fifth of it is Textual's check for input, ten times a second, and a third is the clocks, painted once a second; "
    "on another AMD EPYC it was 0.0812"
)
_MEMORY_REASON = (
    "nine tenths of it are used before any log is open: importing the standard library, Textual, pydantic and paramiko "
    "takes 56 MB"
)
_FIELDS = ("name", "host", "account", "partition", "install_dir", "known_hosts", "ssh_config")
"""Fields of the cluster file. The older version rejects a file with a field that it does not support."""
_FILE = """\
import sys
from pathlib import Path
from textual.app import App
from llmb_tui.ui.widgets.log_pane import LogPane
class File(App):
    def compose(self): yield LogPane([("log", Path(sys.argv[1]))])
File().run()
"""


class WatchedRun(NamedTuple):
    """A run whose job is active, and the home directory of the program."""

    home: Path
    run: Run
    log: Path
    """Log of the job, on the cluster."""

    @property
    def copy(self) -> Path:
        """Local copy of the log."""
        return Runs(self._paths).folder(self.run.id) / "log"

    def reset(self) -> None:
        """Store the run anew, delete the copy of the log, and shorten the log to one line."""
        shutil.rmtree(self._paths.runs, ignore_errors=True)
        Runs(self._paths).save(self.run)
        self.log.write_text("0: NCCL INFO first\n")

    @contextmanager
    def open_list(self, tree: str) -> Iterator[Terminal]:
        """Start the program and open the list of runs; the list contains only this run."""
        with wizard(tree, self.home) as terminal:
            terminal.type(b"J")
            terminal.wait_for("nemotron4 15b")
            terminal.settle(2.0)
            yield terminal

    @contextmanager
    def open_screen(self, tree: str, text: str = "NCCL") -> Iterator[Terminal]:
        """Start the program, open the screen of the run, and wait until its log shows the text."""
        with self.open_list(tree) as terminal:
            terminal.type(b"\r")
            terminal.wait_for(text)
            yield terminal

    @property
    def _paths(self) -> UserPaths:
        return UserPaths(self.home / "config", self.home / "state")


@contextmanager
def start_run() -> Iterator[WatchedRun]:
    """Start a rig with a job that sleeps for hours; yield the run of the job."""
    rig = Rig()
    rig.start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            home, task = Path(folder), rig.directory / "install" / "main" / "bench"
            rig.as_operator(["mkdir", "-p", str(task)], check=True)
            batch = ["sbatch", "--parsable", "--account=llmbench", "--partition=batch", "--time=4:00:00"]
            batch += [f"--chdir={task}", "--output=/dev/null", "--wrap", "sleep 14000"]
            job = rig.as_operator(batch, check=True).stdout.strip()
            profile = rig.client.profile("login")
            cluster_file = home / "config" / "clusters" / f"{profile.name}.toml"
            cluster_file.parent.mkdir(parents=True)
            cluster_file.write_text(tomli_w.dumps({field: getattr(profile, field) for field in _FIELDS}))
            run = make_run("bench", task, cluster="rig-login", job_ids=(job,))
            yield WatchedRun(home, run, Path(make_spec("bench", task).log.path(job, 0)))
    finally:
        rig.stop()


def cpu_usage(run: WatchedRun, per_s: int, goals: str) -> Row:
    """Measure the CPU usage of watching a run whose log gains `per_s` lines a second."""
    ways = {version: partial(_cpu_usage, run, tree, per_s) for version, tree in versions().items()}
    return Row(f"watching a run, {per_s} lines a second", "% of a core", measure(ways), goals, 1, _CPU_REASON)


def _cpu_usage(run: WatchedRun, tree: str, per_s: int) -> float:
    run.reset()
    with stream_lines(run.log, per_s), run.open_screen(tree) as terminal:
        terminal.watch(4.0)
        return terminal.watch(_WATCH_S)


def keys(run: WatchedRun) -> Iterator[Row]:
    """Measure from the key that pauses or follows the log until the screen shows the new state."""
    run.reset()
    rates = (100, 5_000, 20_000)
    with run.open_screen(ROOT) as terminal:
        times = measure({str(per_s): partial(_key_ms, terminal, run.log, per_s) for per_s in (0, *rates)})
    for per_s in rates:
        values = {"now": times[str(per_s)], "a quiet log": times["0"]}
        yield Row(f"a key while {per_s:,} lines a second arrive", "ms", values, "≤ 2 × a quiet log", 4)


def _key_ms(terminal: Terminal, log: Path, per_s: int) -> float:
    times = []
    with stream_lines(log, per_s):
        terminal.watch(2.0)
        for state in ("paused", "following") * (_KEYS // 2):
            started_at = time.perf_counter()
            terminal.type(b" ")
            terminal.wait_for(state)
            times.append(time.perf_counter() - started_at)
            terminal.watch(0.25)
    terminal.watch(1.0)
    return statistics.median(times) * 1000


def memory(run: WatchedRun) -> Row:
    """Measure the growth of memory after the first minute, while a log gains 2 GB in a hundred seconds."""
    run.reset()
    with run.open_screen(ROOT) as terminal, stream_lines(run.log, 2 * _LONG // len(nccl_lines(0, 100))):
        terminal.watch(60.0)
        memory_before = terminal.memory_mb
        while run.copy.stat().st_size < 2 * _LONG:
            terminal.watch(1.0)
        return Row(
            "watching 2 GB, after the first minute", "MB", {"now": [terminal.memory_mb - memory_before]}, "≤ 10", 6
        )


def last_line(run: WatchedRun) -> Iterator[Row]:
    """Measure the time to show the last line of a log of 1 GB, from its run and as a file, and the memory used."""
    run.reset()
    with run.log.open("w") as log:
        for first in range(0, _LONG // len(nccl_lines(0, 1)), 10_000):
            log.write(nccl_lines(first, 10_000))
        log.write(f"{_LAST}\n")
    shutil.copyfile(run.log, run.copy)
    ways = {"now": partial(_open_run, run), "as a file": partial(_open_file, python("-c", _FILE, str(run.log)))}
    if toolong := peer_command("toolong"):
        ways["toolong"] = partial(_open_file, [toolong, str(run.log)])
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            results[name].append(way())
    file = {"now": results["as a file"], **{name: results[name] for name in ways if name == "toolong"}}
    screen = {**file, "now": results["now"]}
    for source, values in (("from the list of runs", screen), ("as a file, from the start", file)):
        for index, unit, goals in ((0, "s", "≤ 0.1 × toolong"), (1, "MB", "≤ 1/6 × toolong")):
            figures = {name: [pair[index] for pair in pairs] for name, pairs in values.items()}
            reason = _MEMORY_REASON if "list" in source and index else ""
            yield Row(f"the last line of 1 GB, {source}", unit, figures, goals, 7, reason)


def _open_run(run: WatchedRun) -> tuple[float, float]:
    """Open the screen of the run; return the seconds until its last line is shown, and the memory in MB."""
    with run.open_list(ROOT) as terminal:
        started_at = time.perf_counter()
        terminal.type(b"\r")
        terminal.wait_for(_LAST)
        seconds = time.perf_counter() - started_at
        terminal.watch(4.0)
        return seconds, terminal.memory_mb


def _open_file(command: list[str]) -> tuple[float, float]:
    """Start the command; return the seconds until the last line is shown, and the memory in MB."""
    with Terminal(command, {"PYTHONPATH": ROOT}) as terminal:
        seconds = terminal.wait_for(_LAST)
        terminal.watch(2.0)
        return seconds, terminal.memory_mb


def rows() -> Iterator[Row]:
    """Measure all rows."""
    with start_run() as run:
        yield cpu_usage(run, 100, "≤ 1/8 × before")
        yield cpu_usage(run, 0, "≤ 1/10 × before")
        yield from keys(run)
        yield memory(run)
        yield from last_line(run)
