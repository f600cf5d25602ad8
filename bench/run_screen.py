"""The screen of a run in the real program: what it costs, its keys, its memory, and how soon a long log is there.

The log is a real one of a real Slurm job, followed over a real SSH connection: the rig of the tests.
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

from bench._others import HERE, peer
from bench._rounds import ROUNDS, Row, in_turns, python, versions
from bench._terminal import Terminal
from bench._writer import lines_of, streams
from bench.screens import wizard
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import make_run, make_spec
from tests.rig.cluster import Rig

_WAITS_S = 12.0
_KEYS = 12
_LAST = "THE LAST LINE OF ALL"
_LONG = 1_000_000_000
_WHY_QUIET = (
    "a fifth of it is Textual's check for input, ten times a second, and a third is the clocks, painted once a second; "
    "on another AMD EPYC it was 0.0812"
)
_WHY_MB = (
    "nine tenths of it are used before any log is open: importing the standard library, Textual, pydantic and paramiko "
    "takes 56 MB"
)
_FIELDS = ("name", "host", "account", "partition", "install_dir", "known_hosts", "ssh_config")
"""Of a cluster's file: an older version refuses one with a field that it does not know."""
_FILE = """\
import sys
from pathlib import Path
from textual.app import App
from llmb_tui.ui.widgets.log_pane import LogPane
class File(App):
    def compose(self): yield LogPane([("log", Path(sys.argv[1]))])
File().run()
"""


class Watched(NamedTuple):
    """A run whose job goes on."""

    home: Path
    run: Run
    log: Path
    """What the job writes, on the cluster."""

    @property
    def copy(self) -> Path:
        """The copy on this machine."""
        return Runs(self._places).folder(self.run.id) / "log"

    def remember(self) -> None:
        """Begin anew: a log of one line, nothing of which is copied."""
        shutil.rmtree(self._places.runs, ignore_errors=True)
        Runs(self._places).save(self.run)
        self.log.write_text("0: NCCL INFO first\n")

    @contextmanager
    def listed(self, tree: str) -> Iterator[Terminal]:
        """The program, with its list of runs open, which has this one alone."""
        with wizard(tree, self.home) as terminal:
            terminal.type(b"J")
            terminal.wait_for("nemotron4 15b")
            terminal.settle(2.0)
            yield terminal

    @contextmanager
    def opened(self, tree: str, shown: str = "NCCL") -> Iterator[Terminal]:
        """The same with the screen of the run open, and this in its log."""
        with self.listed(tree) as terminal:
            terminal.type(b"\r")
            terminal.wait_for(shown)
            yield terminal

    @property
    def _places(self) -> UserPaths:
        return UserPaths(self.home / "config", self.home / "state")


@contextmanager
def watched() -> Iterator[Watched]:
    """A rig with a job that sleeps for hours."""
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
            saved = home / "config" / "clusters" / f"{profile.name}.toml"
            saved.parent.mkdir(parents=True)
            saved.write_text(tomli_w.dumps({field: getattr(profile, field) for field in _FIELDS}))
            run = make_run("bench", task, cluster="rig-login", job_ids=(job,))
            yield Watched(home, run, Path(make_spec("bench", task).log.path(job, 0)))
    finally:
        rig.stop()


def cost(run: Watched, per_s: int, to_reach: str) -> Row:
    """What a run that is watched takes of a core."""
    ways = {version: partial(_cost, run, tree, per_s) for version, tree in versions().items()}
    return Row(f"watching a run, {per_s} lines a second", "% of a core", in_turns(ways), to_reach, 1, _WHY_QUIET)


def _cost(run: Watched, tree: str, per_s: int) -> float:
    run.remember()
    with streams(run.log, per_s), run.opened(tree) as terminal:
        terminal.watch(4.0)
        return terminal.watch(_WAITS_S)


def keys(run: Watched) -> Iterator[Row]:
    """Hold and follow again, to when it is said on the screen."""
    run.remember()
    rates = (100, 5_000, 20_000)
    with run.opened(HERE) as terminal:
        taken = in_turns({str(per_s): partial(_key, terminal, run.log, per_s) for per_s in (0, *rates)})
    for per_s in rates:
        values = {"now": taken[str(per_s)], "a quiet log": taken["0"]}
        yield Row(f"a key while {per_s:,} lines a second arrive", "ms", values, "≤ 2 × a quiet log", 4)


def _key(terminal: Terminal, log: Path, per_s: int) -> float:
    taken = []
    with streams(log, per_s):
        terminal.watch(2.0)
        for said in ("paused", "following") * (_KEYS // 2):
            began = time.perf_counter()
            terminal.type(b" ")
            terminal.wait_for(said)
            taken.append(time.perf_counter() - began)
            terminal.watch(0.25)
    terminal.watch(1.0)
    return statistics.median(taken) * 1000


def memory(run: Watched) -> Row:
    """What 2 GB that come within a hundred seconds leave in memory after the first minute."""
    run.remember()
    with run.opened(HERE) as terminal, streams(run.log, 2 * _LONG // len(lines_of(0, 100))):
        terminal.watch(60.0)
        before = terminal.memory_mb
        while run.copy.stat().st_size < 2 * _LONG:
            terminal.watch(1.0)
        return Row("watching 2 GB, after the first minute", "MB", {"now": [terminal.memory_mb - before]}, "≤ 10", 6)


def last_line(run: Watched) -> Iterator[Row]:
    """A log of 1 GB, on the screen of its run and as a file: until its last line is there, and the memory then."""
    run.remember()
    with run.log.open("w") as log:
        for first in range(0, _LONG // len(lines_of(0, 1)), 10_000):
            log.write(lines_of(first, 10_000))
        log.write(f"{_LAST}\n")
    shutil.copyfile(run.log, run.copy)
    ways = {"now": partial(_opened, run), "as a file": partial(_shown, python("-c", _FILE, str(run.log)))}
    if toolong := peer("toolong"):
        ways["toolong"] = partial(_shown, [toolong, str(run.log)])
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            taken[name].append(way())
    file = {"now": taken["as a file"], **{name: taken[name] for name in ways if name == "toolong"}}
    screen = {**file, "now": taken["now"]}
    for what, values in (("from the list of runs", screen), ("as a file, from the start", file)):
        for at, unit, to_reach in ((0, "s", "≤ 0.1 × toolong"), (1, "MB", "≤ 1/6 × toolong")):
            figures = {name: [one[at] for one in all_of] for name, all_of in values.items()}
            why = _WHY_MB if "list" in what and at else ""
            yield Row(f"the last line of 1 GB, {what}", unit, figures, to_reach, 7, why)


def _opened(run: Watched) -> tuple[float, float]:
    with run.listed(HERE) as terminal:
        began = time.perf_counter()
        terminal.type(b"\r")
        terminal.wait_for(_LAST)
        taken = time.perf_counter() - began
        terminal.watch(4.0)
        return taken, terminal.memory_mb


def _shown(command: list[str]) -> tuple[float, float]:
    with Terminal(command, {"PYTHONPATH": HERE}) as terminal:
        taken = terminal.wait_for(_LAST)
        terminal.watch(2.0)
        return taken, terminal.memory_mb


def rows() -> Iterator[Row]:
    """All."""
    with watched() as run:
        yield cost(run, 100, "≤ 1/8 × before")
        yield cost(run, 0, "≤ 1/10 × before")
        yield from keys(run)
        yield memory(run)
        yield from last_line(run)
