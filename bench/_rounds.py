"""Two versions of the program side by side: CPU time of child processes, taken in turns, round after round.

`LLMB_BENCH_BEFORE` names a checkout of an older version; without it only the present one is measured.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

HERE = str(Path(__file__).parent.parent)
BEFORE = os.environ.get("LLMB_BENCH_BEFORE", "")
ROUNDS = 5


class Row(NamedTuple):
    """One line of the table: what was measured, in which unit, by way."""

    what: str
    unit: str
    values: Mapping[str, Sequence[float]]
    to_reach: str = ""

    def __str__(self) -> str:
        shown = [
            f"{self.what} ({self.unit}, {len(next(iter(self.values.values())))} rounds; to reach: {self.to_reach})"
        ]
        base = statistics.median(self.values["now"])
        for way, taken in self.values.items():
            middle = statistics.median(taken)
            ratio = "" if way == "now" else f"   now is {base / middle:.3f} of it"
            shown.append(f"  {way:14} {middle:10.4g}  ({min(taken):.4g}-{max(taken):.4g}){ratio}")
        return "\n".join(shown)


def in_turns(ways: Mapping[str, Callable[[], float]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """What each way gave, in each round."""
    values: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            values[name].append(way())
    return values


def cpu_of(command: Sequence[str], tree: str = HERE, **environment: str) -> float:
    """Seconds of CPU of a command and all that it started, with `tree` as the program. What it prints is dropped."""
    before = children_s()
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": tree, **environment},
        cwd=tree,
        check=True,
    )
    return children_s() - before


def children_s() -> float:
    """Seconds of CPU of all child processes that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def versions() -> dict[str, str]:
    """The checkouts that are compared."""
    return {"now": HERE, **({"before": BEFORE} if BEFORE else {})}


def python(*arguments: str) -> list[str]:
    """A command of this very Python."""
    return [sys.executable, *arguments]
