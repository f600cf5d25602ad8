"""`accuracy_answer`: errors of the estimate on published rows that were left out of it, and of naive ways."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Grid, Text
from llmb_tui.answers.table import Column, Table, quantity
from llmb_tui.language.quantities import percent_digits


class _Line(NamedTuple):
    """The errors of one way in one case."""

    case: str
    way: str
    numbers: Mapping[str, Any]


_LINE: tuple[Column, ...] = (
    Column("case", "case"),
    Column("way", "way"),
    Column("rows", "numbers.n"),
    Column("mean %", quantity("numbers.mean_pct", percent_digits)),
    Column("p90 %", quantity("numbers.p90_pct", percent_digits)),
    Column("worst %", quantity("numbers.worst_pct", percent_digits)),
    Column("in band %", quantity(lambda line: line.numbers.get("coverage_pct"), percent_digits)),
)


def accuracy_answer(cases: Mapping[str, Mapping[str, Any]]) -> Answer:
    """The errors by case, as `fit.accuracy.accuracy` returns them."""
    return Answer(
        "Accuracy of the estimate",
        lambda: (
            Grid(
                "Absolute error of step times that were left out, also of the fit, in per cent of the published ones.",
                Table.by(_LINE, _lines(cases)),
            ),
            Text(
                "With experts nothing is left to estimate from when a size or a recipe is out: those rows are refused."
            ),
        ),
        lambda: cases,
    )


def _lines(cases: Mapping[str, Mapping[str, Any]]) -> Iterator[_Line]:
    """For each case the line of the estimate, and one for each naive way."""
    for case, numbers in cases.items():
        yield _Line(case.replace("_", " "), "estimate", numbers)
        for way, its_numbers in numbers["baselines"].items():
            yield _Line("", way.replace("_", " "), its_numbers)
