"""`accuracy`: how far the estimate is off on published step times that it has not seen."""

from __future__ import annotations

import argparse
import time
from typing import Any

from llmb_tui.cli.output import print_json, print_line, print_table, say
from llmb_tui.cli.user import user_services

_COLUMNS = ("case", "way", "rows", "mean %", "p90 %", "worst %", "in band %")

_PATIENCE_S = 1.0
"""What takes longer says what it is doing."""


def accuracy_verb(arguments: argparse.Namespace) -> int:
    """Leave-one-out errors of the estimate and of naive ways, with refits; a second or two."""
    from llmb_tui.fit.accuracy import accuracy

    began = time.monotonic()

    def progress(case: str) -> None:
        if time.monotonic() - began > _PATIENCE_S:
            say(f"accuracy: {case}")

    found = accuracy(user_services().catalog(), progress)
    if arguments.json:
        print_json(found)
        return 0
    print_line("Absolute error of step times that were left out, also of the fit, in per cent of the published ones.")
    print_table(_COLUMNS, [line for case, numbers in found.items() for line in _lines(case, numbers)])
    print_line("With experts nothing is left to estimate from when a size or a recipe is out: those rows are refused.")
    return 0


def _lines(case: str, numbers: dict[str, Any]) -> list[tuple[str, ...]]:
    """The estimate's line, and one for each naive way."""
    name = case.replace("_", " ")
    first = (name, "estimate", *_figures(numbers), f"{numbers['coverage_pct']:.0f}")
    return [first, *(("", way.replace("_", " "), *_figures(one), "") for way, one in numbers["baselines"].items())]


def _figures(numbers: dict[str, Any]) -> tuple[str, ...]:
    return (str(numbers["n"]), *(f"{numbers[key]:.2f}" for key in ("mean_pct", "p90_pct", "worst_pct")))
