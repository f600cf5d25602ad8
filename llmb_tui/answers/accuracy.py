"""`accuracy_answer`: errors of the estimate and of naive predictions on published rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Grid, Text
from llmb_tui.answers.table import Column, Table, quantity
from llmb_tui.language.quantities import percent_digits


class _Line(NamedTuple):
    """The errors of one predictor in one case."""

    case: str
    predictor: str
    numbers: Mapping[str, Any]


_LINE: tuple[Column, ...] = (
    Column("case", "case"),
    Column("predictor", "predictor"),
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
                "Absolute error of predicted step times, in per cent of the published ones. Except in the cases `in "
                "sample`, neither the estimate nor its fit uses the rows that are predicted.",
                Table.by(_LINE, _lines(cases)),
            ),
            Text(
                "A model with experts has no estimate if its size or its recipe is left out; those rows are excluded."
            ),
        ),
        lambda: cases,
    )


def _lines(cases: Mapping[str, Mapping[str, Any]]) -> Iterator[_Line]:
    """For each case a line for the estimate, then one for each naive prediction."""
    for case, numbers in cases.items():
        yield _Line(case.replace("_", " "), "estimate", numbers)
        for baseline, baseline_numbers in numbers["baselines"].items():
            yield _Line("", baseline.replace("_", " "), baseline_numbers)
