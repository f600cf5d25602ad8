"""The real program in a real terminal: what it costs while it waits, its keys, its start."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench._others import HERE, peer
from bench._rounds import ROUNDS, Row, in_turns, python, versions
from bench._terminal import Terminal
from bench.runs import remember

_MINIMAL = """\
from textual.app import App
from textual.widgets import Static
class Minimal(App):
    def compose(self): yield Static("no plan yet")
Minimal().run()
"""
_WAITS_S = 12.0
_KEYS = 40
_CHOICE = "grok1"
"""The first one."""
_PROGRAM = python("-m", "llmb_tui")


@contextmanager
def wizard(tree: str, home: Path) -> Iterator[Terminal]:
    """The program with that state, once it waits for a key."""
    with Terminal(_PROGRAM, environment(tree, home)) as terminal:
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
        what = "the list of 1,000 finished runs, idle" if keys else "the wizard, idle"
        return Row(what, "% of a core", in_turns(ways), "≤ 1.5 more than minimal Textual", 2)


def _waiting(tree: str, home: Path, keys: bytes) -> float:
    with wizard(tree, home) as terminal:
        for key in keys:
            terminal.type(bytes([key]))
            terminal.settle(2.0)
            terminal.watch(4.0)
        return terminal.watch(_WAITS_S)


def _minimal_waiting(home: Path) -> float:
    with Terminal(python("-c", _MINIMAL), environment("", home)) as terminal:
        terminal.settle(2.0)
        return terminal.watch(_WAITS_S)


def key() -> Iterator[Row]:
    """An arrow in the list of scales: to the last byte that it has painted, and the CPU that it takes."""
    with tempfile.TemporaryDirectory() as folder:
        ways = {version: partial(_keys, tree, Path(folder)) for version, tree in versions().items()}
        if harlequin := peer("harlequin"):
            ways["harlequin"] = partial(_letters, harlequin, folder)
        taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                taken[name].append(way())
        median, late, cpu = ({name: [one[at] for one in all_of] for name, all_of in taken.items()} for at in range(3))
        why = (
            "on one machine it varies from 10.6 to 15.9 ms between starts of the program, "
            "and from 0.24 to 0.32 of harlequin's time between runs"
        )
        yield Row("a key in the wizard to its preview", "ms", median, "≤ 1/4 × harlequin", 3, why)
        yield Row("the same, p95", "ms", {**late, "median": median["now"]}, "≤ 2 × median", 3)
        yield Row("the same, CPU", "ms", cpu, number=3)


def _keys(tree: str, home: Path) -> tuple[float, float, float]:
    with wizard(tree, home) as terminal:
        terminal.type(b"3")
        terminal.settle(1.0)
        return _typed(terminal, (b"\x1b[B", b"\x1b[A"))


def _letters(harlequin: str, home: str) -> tuple[float, float, float]:
    """A letter into its editor, and away again."""
    with Terminal([harlequin], {"HOME": home}) as terminal:
        terminal.wait_for("Query Editor")
        terminal.watch(2.0)  # its cursor blinks, so it never settles
        return _typed(terminal, (b"a", b"\x7f"))


def _typed(terminal: Terminal, keys: tuple[bytes, bytes]) -> tuple[float, float, float]:
    """Median and p95 to the last byte that a key has painted, and CPU, in milliseconds."""
    before, times = terminal.cpu_s, []
    for number in range(_KEYS):
        terminal.type(keys[number % 2])
        times.append(terminal.settle(0.2) * 1000)
    return statistics.median(times), sorted(times)[int(_KEYS * 0.95)], (terminal.cpu_s - before) / _KEYS * 1000


def first_paint() -> Iterator[Row]:
    """From the start to the first frame, by the CPU that it takes: another program's load does not count."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        log = home / "log"
        log.write_text("0: NCCL INFO first\n" * 100)
        own = {version: partial(_painted, _PROGRAM, environment(tree, home)) for version, tree in versions().items()}
        ways = {**own, "minimal Textual": partial(_painted, python("-c", _MINIMAL), environment("", home))}
        for name, arguments, text in (("toolong", [str(log)], "NCCL"), ("harlequin", [], "Query Editor")):
            if command := peer(name):
                ways[name] = partial(_painted, [command, *arguments], {"HOME": folder}, text)
        reach = "≤ 1.7 × minimal Textual; ≤ 0.6 × toolong; ≤ 0.3 × harlequin"
        yield Row("the first frame", "CPU s", in_turns(ways), reach, 9)
        tree = environment(HERE, home)
        choices = {"now": partial(_painted, _PROGRAM, tree, _CHOICE), "first frame": own["now"]}
        why = (
            "catalog, plan and wizard are imported after the first frame, "
            "and Python creates their dataclasses at each start"
        )
        yield Row("the choices", "CPU s", in_turns(choices), "≤ 1.3 × first frame", 9, why)
        demo = {"now": partial(_painted, [*_PROGRAM, "demo"], {**tree, "TMPDIR": folder}), "bare": own["now"]}
        yield Row("the demo's first frame", "CPU s", in_turns(demo), "≤ 1.1 × bare", 9)


def _painted(command: list[str], variables: Mapping[str, str], text: str = "no plan yet") -> float:
    with Terminal(command, variables) as terminal:
        terminal.wait_for(text)
        return terminal.cpu_s


def review() -> Row:
    """Review entered from a choice that has been whole for five seconds, on the demo's cluster: to its script."""
    ways = {version: partial(_reviewed, tree) for version, tree in versions().items()}
    return Row("from Review to its batch script", "ms", in_turns(ways), "≤ 1/8 × before", 19)


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


def environment(tree: str, home: Path) -> dict[str, str]:
    """Which program, and where its state is."""
    return {"PYTHONPATH": tree, "LLMB_TUI_CONFIG_DIR": f"{home}/config", "LLMB_TUI_STATE_DIR": f"{home}/state"}


def rows() -> Iterator[Row]:
    """All."""
    yield waits()
    yield waits(b"J")
    yield from key()
    yield from first_paint()
    yield review()
