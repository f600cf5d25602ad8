"""Measure the real program in a real terminal: CPU usage while idle, keys, start, and Review."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench._baselines import ROOT, peer_command
from bench._rounds import ROUNDS, Row, measure, python, versions
from bench._terminal import Terminal
from bench.runs import save_finished_runs

_MINIMAL = """\
from textual.app import App
from textual.widgets import Static
class Minimal(App):
    def compose(self): yield Static("no plan yet")
Minimal().run()
"""
_IDLE_S = 12.0
_KEYS = 40
_CHOICE = "grok1"
"""First workload of the list."""
_PROGRAM = python("-m", "llmb_tui")


@contextmanager
def wizard(tree: str, home: Path) -> Iterator[Terminal]:
    """Start the program with the state below `home`; yield its terminal when the wizard waits for a key."""
    with Terminal(_PROGRAM, environment(tree, home)) as terminal:
        terminal.wait_for("Runs")
        terminal.settle(2.0)
        yield terminal


def idle(keys: bytes = b"") -> Row:
    """Measure the CPU usage of the idle wizard, or with `J` of the list of finished runs."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        save_finished_runs(home / "state", 1000)
        ways = {version: partial(_idle_usage, tree, home, keys) for version, tree in versions().items()}
        ways["minimal Textual"] = partial(_minimal_idle_usage, home)
        name = "the list of 1,000 finished runs, idle" if keys else "the wizard, idle"
        return Row(name, "% of a core", measure(ways), "≤ 1.5 more than minimal Textual", 2)


def _idle_usage(tree: str, home: Path, keys: bytes) -> float:
    with wizard(tree, home) as terminal:
        for key in keys:
            terminal.type(bytes([key]))
            terminal.settle(2.0)
            terminal.watch(4.0)
        return terminal.watch(_IDLE_S)


def _minimal_idle_usage(home: Path) -> float:
    with Terminal(python("-c", _MINIMAL), environment("", home)) as terminal:
        terminal.settle(2.0)
        return terminal.watch(_IDLE_S)


def key() -> Iterator[Row]:
    """Measure an arrow key in the list of scales: time until its last byte is painted, and CPU time."""
    with tempfile.TemporaryDirectory() as folder:
        ways = {version: partial(_wizard_keys, tree, Path(folder)) for version, tree in versions().items()}
        if harlequin := peer_command("harlequin"):
            ways["harlequin"] = partial(_harlequin_keys, harlequin, folder)
        results: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                results[name].append(way())
        median, p95, cpu = (
            {name: [result[index] for result in each] for name, each in results.items()} for index in range(3)
        )
        reason = (
            "on one machine it varies from 10.6 to 15.9 ms between starts of the program, "
            "and from 0.24 to 0.32 of harlequin's time between runs"
        )
        yield Row("a key in the wizard to its preview", "ms", median, "≤ 1/4 × harlequin", 3, reason)
        yield Row("the same, p95", "ms", {**p95, "median": median["now"]}, "≤ 2 × median", 3)
        yield Row("the same, CPU", "ms", cpu, number=3)


def _wizard_keys(tree: str, home: Path) -> tuple[float, float, float]:
    with wizard(tree, home) as terminal:
        terminal.type(b"3")
        terminal.settle(1.0)
        return _measure_keys(terminal, (b"\x1b[B", b"\x1b[A"))


def _harlequin_keys(harlequin: str, home: str) -> tuple[float, float, float]:
    """Type a letter into harlequin's editor and delete it, repeatedly."""
    with Terminal([harlequin], {"HOME": home}) as terminal:
        terminal.wait_for("Query Editor")
        terminal.watch(2.0)  # not settle(): the cursor blinks all the time
        return _measure_keys(terminal, (b"a", b"\x7f"))


def _measure_keys(terminal: Terminal, keys: tuple[bytes, bytes]) -> tuple[float, float, float]:
    """Type both keys in turns; return median and p95 of the time to the last painted byte, and CPU time, in ms."""
    cpu_before, times = terminal.cpu_s, []
    for number in range(_KEYS):
        terminal.type(keys[number % 2])
        times.append(terminal.settle(0.2) * 1000)
    return statistics.median(times), sorted(times)[int(_KEYS * 0.95)], (terminal.cpu_s - cpu_before) / _KEYS * 1000


def first_paint() -> Iterator[Row]:
    """Measure the CPU time from the start to the first frame; the load of other programs does not count."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        log = home / "log"
        log.write_text("0: NCCL INFO first\n" * 100)
        ours = {
            version: partial(_paint_cpu_s, _PROGRAM, environment(tree, home)) for version, tree in versions().items()
        }
        ways = {**ours, "minimal Textual": partial(_paint_cpu_s, python("-c", _MINIMAL), environment("", home))}
        for name, arguments, text in (("toolong", [str(log)], "NCCL"), ("harlequin", [], "Query Editor")):
            if command := peer_command(name):
                ways[name] = partial(_paint_cpu_s, [command, *arguments], {"HOME": folder}, text)
        goals = "≤ 1.7 × minimal Textual; ≤ 0.6 × toolong; ≤ 0.3 × harlequin"
        yield Row("the first frame", "CPU s", measure(ways), goals, 9)
        variables = environment(ROOT, home)
        choices = {"now": partial(_paint_cpu_s, _PROGRAM, variables, _CHOICE), "first frame": ours["now"]}
        reason = (
            "catalog, plan and wizard are imported after the first frame, "
            "and Python creates their dataclasses at each start"
        )
        yield Row("the choices", "CPU s", measure(choices), "≤ 1.3 × first frame", 9, reason)
        demo = {"now": partial(_paint_cpu_s, [*_PROGRAM, "demo"], {**variables, "TMPDIR": folder}), "bare": ours["now"]}
        yield Row("the demo's first frame", "CPU s", measure(demo), "≤ 1.1 × bare", 9)


def _paint_cpu_s(command: list[str], variables: Mapping[str, str], text: str = "no plan yet") -> float:
    """Start the command; return its CPU seconds until the text is painted."""
    with Terminal(command, variables) as terminal:
        terminal.wait_for(text)
        return terminal.cpu_s


def review() -> Row:
    """Measure from the key for Review, on the demo cluster, until the batch script is shown."""
    ways = {version: partial(_review_ms, tree) for version, tree in versions().items()}
    return Row("from Review to its batch script", "ms", measure(ways), "≤ 1/8 × before", 19)


def _review_ms(tree: str) -> float:
    with (
        tempfile.TemporaryDirectory() as folder,
        Terminal([*_PROGRAM, "demo"], {"PYTHONPATH": tree, "TMPDIR": folder}) as terminal,
    ):
        terminal.wait_for(" ms ")  # the round-trip time appears when the cluster is connected
        terminal.watch(5.0)
        terminal.type(b"6")
        started_at = time.perf_counter()
        terminal.wait_for("#SBATCH")
        return (time.perf_counter() - started_at) * 1000


def environment(tree: str, home: Path) -> dict[str, str]:
    """Environment that selects the version of the program and the directories of its state."""
    return {"PYTHONPATH": tree, "LLMB_TUI_CONFIG_DIR": f"{home}/config", "LLMB_TUI_STATE_DIR": f"{home}/state"}


def rows() -> Iterator[Row]:
    """Measure all rows."""
    yield idle()
    yield idle(b"J")
    yield from key()
    yield from first_paint()
    yield review()
