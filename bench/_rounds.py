"""Ways of doing the same side by side, taken in turns, round after round; and the row of the table that they make."""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bench._others import HERE, before

ROUNDS = 5
_GOAL = re.compile(r"([≤≥]) ([\d.]+)(?:/([\d.]+))?(?: (×|more than) (.+))?")


class Row(NamedTuple):
    """One line of the table: what was measured, in which unit, by way. Ours is the way `now`."""

    what: str
    unit: str
    values: Mapping[str, Sequence[float]]
    to_reach: str = ""
    """What is judged, with `;` between: `≤ 1/8 × before` and `≥ 20 × Log` by the ratio of medians to another way,
    `≤ 1.5 more than minimal Textual` by their difference, `≤ 10` by ours alone. Other words are only shown."""
    number: int = 0
    """Of the goal; 0 where it belongs to none."""
    why: str = ""
    """Why it is not reached, where that is known."""

    def __str__(self) -> str:
        head = f"{self.number or '-'}  {self.what} ({self.unit}, {self.rounds} rounds)"
        lines = [
            f"  {way:16} {_short(statistics.median(taken)):>8}  ({_short(min(taken))}–{_short(max(taken))})"
            + (f"   now is {self._middle('now') / statistics.median(taken):.3g} of it" if way != "now" else "")
            for way, taken in self.values.items()
        ]
        return "\n".join([head, *lines, *(f"  to reach: {goal}: {judged}" for goal, judged in self.judged())])

    @property
    def rounds(self) -> int:
        """How often each way was taken."""
        return len(next(iter(self.values.values())))

    def judged(self) -> list[tuple[str, str]]:
        """Each goal, and whether it is reached."""
        return [(goal, self._judged(goal)) for goal in self.to_reach.split("; ") if goal]

    def cells(self) -> list[str]:
        """As a line of a Markdown table: number, what, to reach, measured, ratio, reached."""
        measured = [
            f"{way} {_short(statistics.median(taken))} ({_short(min(taken))}–{_short(max(taken))})"
            for way, taken in self.values.items()
        ]
        ratios = [f"{_short(self._middle('now') / self._middle(way))} × {way}" for way in self.values if way != "now"]
        judged = [said for _, said in self.judged()]
        missed = [self.why] if self.why and any(said.startswith("no:") for said in judged) else []
        return [
            str(self.number or "–"),
            f"{self.what}, {self.unit}",
            "<br>".join(self.to_reach.split("; ")),
            "<br>".join([*measured, f"{self.rounds} rounds"]),
            "<br>".join(ratios),
            "<br>".join([*judged, *missed]),
        ]

    def _judged(self, goal: str) -> str:
        found = _GOAL.fullmatch(goal)
        if not found:
            return "not judged"
        than, over, under, how, way = found.groups()
        if way and way not in self.values:
            return f"not judged: nothing to compare with, {way!r} was not measured"
        limit, ours = float(over) / float(under or 1), self._middle("now")
        figure = {"×": lambda: ours / self._middle(way), "more than": lambda: ours - self._middle(way)}.get(
            how, lambda: ours
        )()
        reached = figure <= limit if than == "≤" else figure >= limit
        return f"{'yes' if reached else 'no'}: {_short(figure)}"

    def _middle(self, way: str) -> float:
        return statistics.median(self.values[way])


def _short(figure: float) -> str:
    """Three digits, and thousands as they are."""
    return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.3g}"


def in_turns(ways: Mapping[str, Callable[[], float]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """What each way gave, in each round."""
    values: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            values[name].append(way())
    return values


def cpu_of(command: Sequence[str], tree: str = HERE, **environment: str) -> float:
    """Seconds of CPU of a command and all that it started, with `tree` as the program. What it prints is dropped."""
    spent = children_s()
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": tree, **environment},
        cwd=tree,
        check=True,
    )
    return children_s() - spent


def children_s() -> float:
    """Seconds of CPU of all child processes that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def versions() -> dict[str, str]:
    """The checkouts that are compared: this one, and the older one where there is one."""
    older = before()
    return {"now": HERE, **({"before": older} if older else {})}


def python(*arguments: str) -> list[str]:
    """A command of this very Python."""
    return [sys.executable, *arguments]
