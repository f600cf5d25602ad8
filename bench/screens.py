"""The real program in a real terminal: what it costs while it waits and while a log streams, its keys, its start.

The log is a real one of a real Slurm job, followed over a real SSH connection: the rig of the tests.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench._rounds import Row, in_turns, python, versions
from bench._terminal import Terminal
from bench.runs import remember
from llmb_tui.clusters import Clusters
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import Places
from tests.kit.runs import make_run, make_spec
from tests.rig.cluster import Rig

_MINIMAL = """\
from textual.app import App
from textual.widgets import Static
class Minimal(App):
    def compose(self): yield Static("What will run")
Minimal().run()
"""
_WRITER = """\
import sys, time
path, per_s = sys.argv[1], float(sys.argv[2])
began, lines, steps = time.monotonic(), 0, 0
with open(path, "ab", buffering=0) as log:
    while per_s:
        passed = time.monotonic() - began
        text = ""
        while lines < passed * per_s:
            text += f"{lines % 64}: node{lines % 8:03}:71:93 [{lines % 8}] NCCL INFO Channel {lines % 32:02}/0\\n"
            lines += 1
        while steps < passed:
            text += f"Training epoch 0, iteration {steps}/49 | global_step: {steps} | reduced_train_loss: 9.81 | "
            text += f"train_step_timing in s: {1.9 + steps % 5 / 50:.3f} | consumed_samples: {256 * steps + 256}\\n"
            steps += 1
        log.write(text.encode())
        time.sleep(0.02)
"""
_WAITS_S = 12.0
_KEYS = 40
_PROGRAM = python("-m", "llmb_tui")


@contextmanager
def wizard(tree: str, home: Path) -> Iterator[Terminal]:
    """The program with that state, once it waits for a key."""
    with Terminal(_PROGRAM, _environment(tree, home)) as terminal:
        terminal.wait_for("Runs")
        terminal.settle(2.0)
        yield terminal


def waits(keys: bytes = b"") -> Row:
    """The wizard, or with `J` the list of runs, while nothing goes on."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        remember(home / "state", 1000)
        ways = {version: partial(_waiting, tree, home, keys) for version, tree in versions().items()}
        ways["minimal Textual"] = partial(_minimal_waiting, home)
        what = "the list of 1,000 finished runs waits" if keys else "the wizard waits"
        return Row(what, "% of a core", in_turns(ways), "≤ 1.5 more than minimal Textual", 2)


def _waiting(tree: str, home: Path, keys: bytes) -> float:
    with wizard(tree, home) as terminal:
        for key in keys:
            terminal.type(bytes([key]))
            terminal.settle(2.0)
            terminal.watch(4.0)
        return terminal.watch(_WAITS_S)


def _minimal_waiting(home: Path) -> float:
    with Terminal(python("-c", _MINIMAL), _environment("", home)) as terminal:
        terminal.settle(2.0)
        return terminal.watch(_WAITS_S)


def key() -> Iterator[Row]:
    """An arrow in the list of scales: to the last byte that it has painted, and the CPU that it takes."""
    with tempfile.TemporaryDirectory() as folder:
        ways = {version: partial(_keys, tree, Path(folder)) for version, tree in versions().items()}
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(5):
            for name, way in ways.items():
                taken[name].append(way())
        for at, (what, reach) in enumerate((("its preview", "≤ 1/4 × harlequin"), ("rest, CPU", ""))):
            values = {name: [one[at] for one in all_of] for name, all_of in taken.items()}
            yield Row(f"a key in the wizard to {what}", "ms", values, reach, 3)


def _keys(tree: str, home: Path) -> tuple[float, float]:
    with wizard(tree, home) as terminal:
        terminal.type(b"3")
        terminal.settle(1.0)
        before, times = terminal.cpu_s, []
        for number in range(_KEYS):
            terminal.type(b"\x1b[A" if number % 2 else b"\x1b[B")
            times.append(terminal.settle(0.2))
        return statistics.median(times) * 1000, (terminal.cpu_s - before) / _KEYS * 1000


def first_paint() -> Row:
    """From the start to the first frame, by the CPU that it takes: another program's load does not count."""
    with tempfile.TemporaryDirectory() as folder:
        ways = {version: partial(_painted, _PROGRAM, tree, Path(folder)) for version, tree in versions().items()}
        ways["minimal Textual"] = partial(_painted, python("-c", _MINIMAL), "", Path(folder))
        return Row("the first frame", "CPU s", in_turns(ways), "≤ 1.7 × minimal Textual", 9)


def _painted(command: list[str], tree: str, home: Path) -> float:
    with Terminal(command, _environment(tree, home)) as terminal:
        terminal.wait_for("What will run")
        return terminal.cpu_s


def review() -> Row:
    """Review entered from a choice that has been whole for five seconds, on the demo's cluster: to its script."""
    ways = {version: partial(_reviewed, tree) for version, tree in versions().items()}
    return Row("Review to its batch script", "ms", in_turns(ways), "in the step's first frame")


def _reviewed(tree: str) -> float:
    with (
        tempfile.TemporaryDirectory() as folder,
        Terminal([*_PROGRAM, "demo"], {"PYTHONPATH": tree, "TMPDIR": folder}) as terminal,
    ):
        terminal.wait_for(" ms ")  # how far the cluster is: it is connected
        terminal.watch(5.0)
        terminal.type(b"6")
        began = time.perf_counter()
        terminal.wait_for("#SBATCH")
        return (time.perf_counter() - began) * 1000


def run_screen() -> Iterator[Row]:
    """A run that is watched: a hundred lines and a step a second, and nothing new."""
    rig = Rig()
    rig.start()
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        stack.callback(rig.stop)
        home, task = Path(folder), rig.directory / "install" / "main" / "bench"
        rig.as_operator(["mkdir", "-p", str(task)], check=True)
        batch = ["sbatch", "--parsable", "--account=llmbench", "--partition=batch", "--time=4:00:00"]
        batch += [f"--chdir={task}", "--output=/dev/null", "--wrap", "sleep 14000"]
        job = rig.as_operator(batch, check=True).stdout.strip()
        Clusters(home / "config" / "clusters", 10.0).save(rig.client.profile("login"))
        run = make_run("bench", task, cluster="rig-login", job_ids=(job,))
        log = Path(make_spec("bench", task).log.path(job, 0))
        for per_s, reach in ((100, "≤ 1/8 × before"), (0, "≤ 1/10 × before")):
            ways = {v: partial(_watched, tree, home, run, log, per_s) for v, tree in versions().items()}
            yield Row(f"a run is watched, {per_s} lines a second", "% of a core", in_turns(ways), reach, 1)


def _watched(tree: str, home: Path, run: Run, log: Path, per_s: int) -> float:
    places = Places(home / "config", home / "state")
    shutil.rmtree(places.runs, ignore_errors=True)
    Runs(places).save(run)
    log.write_text("0: NCCL INFO first\n")
    with subprocess.Popen(python("-c", _WRITER, str(log), str(per_s))) as writer, wizard(tree, home) as terminal:
        terminal.type(b"J")
        terminal.settle(2.0)
        terminal.type(b"\r")
        terminal.wait_for("NCCL")
        terminal.watch(4.0)
        used = terminal.watch(_WAITS_S)
        writer.kill()
    return used


def _environment(tree: str, home: Path) -> dict[str, str]:
    return {"PYTHONPATH": tree, "LLMB_TUI_CONFIG_DIR": f"{home}/config", "LLMB_TUI_STATE_DIR": f"{home}/state"}


def rows() -> Iterator[Row]:
    """All."""
    yield waits()
    yield waits(b"J")
    yield from key()
    yield first_paint()
    yield review()
    yield from run_screen()
