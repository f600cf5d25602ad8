"""Measure several programs in turns, round after round, and format the figures as a row of the table."""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bench._baselines import ROOT, older_version

ROUNDS = 5
_GOAL = re.compile(r"([≤≥]) ([\d.]+)(?:/([\d.]+))?(?: (×|more than) (.+))?")


class Row(NamedTuple):
    """A row of the table: the measurements of each way to do the same work. `now` is the way of this version."""

    name: str
    unit: str
    values: Mapping[str, Sequence[float]]
    goals: str = ""
    """Goals, separated by `; `. `≤ 1/8 × before` and `≥ 20 × Log` limit the ratio of the median of `now` to another
    median, `≤ 1.5 more than minimal Textual` limits their difference, and `≤ 10` limits the median of `now`. Any other
    text is shown and not judged."""
    number: int = 0
    """Number of the goal; 0 if the row has none."""
    reason: str = ""
    """Reason why a goal is not reached; empty if unknown."""

    def __str__(self) -> str:
        head = f"{self.number or '-'}  {self.name} ({self.unit}, {self.rounds} rounds)"
        lines = [
            f"  {way:16} {_format(statistics.median(figures)):>8}  ({_format(min(figures))}–{_format(max(figures))})"
            + (f"   now is {self._median('now') / statistics.median(figures):.3g} of it" if way != "now" else "")
            for way, figures in self.values.items()
        ]
        return "\n".join([head, *lines, *(f"  to reach: {goal}: {verdict}" for goal, verdict in self.judged())])

    @property
    def rounds(self) -> int:
        """Number of measurements of each way."""
        return len(next(iter(self.values.values())))

    def judged(self) -> list[tuple[str, str]]:
        """Return each goal with its verdict: `yes` or `no` and the figure, or `not judged`."""
        return [(goal, self._verdict(goal)) for goal in self.goals.split("; ") if goal]

    def cells(self) -> list[str]:
        """Return the cells of a Markdown table: number, name, goals, measurements, ratios, verdicts."""
        measured = [
            f"{way} {_format(statistics.median(figures))} ({_format(min(figures))}–{_format(max(figures))})"
            for way, figures in self.values.items()
        ]
        ratios = [f"{_format(self._median('now') / self._median(way))} × {way}" for way in self.values if way != "now"]
        verdicts = [verdict for _, verdict in self.judged()]
        reasons = [self.reason] if self.reason and any(verdict.startswith("no:") for verdict in verdicts) else []
        return [
            str(self.number or "–"),
            f"{self.name}, {self.unit}",
            "<br>".join(self.goals.split("; ")),
            "<br>".join([*measured, f"{self.rounds} rounds"]),
            "<br>".join(ratios),
            "<br>".join([*verdicts, *reasons]),
        ]

    def _verdict(self, goal: str) -> str:
        match = _GOAL.fullmatch(goal)
        if not match:
            return "not judged"
        relation, numerator, denominator, comparison, way = match.groups()
        if way and way not in self.values:
            return f"not judged: nothing to compare with, {way!r} was not measured"
        limit, ours = float(numerator) / float(denominator or 1), self._median("now")
        figure = {"×": lambda: ours / self._median(way), "more than": lambda: ours - self._median(way)}.get(
            comparison, lambda: ours
        )()
        reached = figure <= limit if relation == "≤" else figure >= limit
        return f"{'yes' if reached else 'no'}: {_format(figure)}"

    def _median(self, way: str) -> float:
        return statistics.median(self.values[way])


def _format(figure: float) -> str:
    """Round to three significant digits; from 1,000 on, to an integer."""
    return f"{figure:,.0f}" if abs(figure) >= 1000 else f"{figure:.3g}"


def measure(ways: Mapping[str, Callable[[], float]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Call each way once in each round; return the figures of each way, in the order of the rounds."""
    values: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            values[name].append(way())
    return values


def measure_cpu_s(command: Sequence[str], tree: str = ROOT, **environment: str) -> float:
    """Run a command with `tree` as the program and discard its output; return its CPU seconds, with its children's."""
    cpu_before = children_cpu_s()
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": tree, **environment},
        cwd=tree,
        check=True,
    )
    return children_cpu_s() - cpu_before


def children_cpu_s() -> float:
    """CPU seconds of all ended child processes and their descendants."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def versions() -> dict[str, str]:
    """Source trees to compare, by name: this one, and the older one if it is available."""
    older_tree = older_version()
    return {"now": ROOT, **({"before": older_tree} if older_tree else {})}


def python(*arguments: str) -> list[str]:
    """Command line that starts this Python with these arguments."""
    return [sys.executable, *arguments]
