"""`suite_toml`: a suite as the file that `suite_file.read_suite` reads."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

import tomli_w

from llmb_tui.plan.selection import FIELDS, LAYOUT, OPTIONS, Selection
from llmb_tui.results.suite.suite import Suite, SuiteRow


def suite_toml(suite: Suite) -> str:
    """Its text. Runs that follow each other and are alike are one with `repeats`.

    It is read as rows chosen one by one, in the order in which they stand: what shuffled them is done.
    """
    form: dict[str, Any] = {"name": suite.name, "cluster": suite.cluster}
    form |= {name: value for name in ("at_most", "stop_after") if (value := getattr(suite, name)) is not None}
    form |= {"chain": True} if suite.chain else {}
    form["runs"] = [_run(row, len(list(same))) for row, same in _alike(suite.rows)]
    return tomli_w.dumps(form)


def file_name(name: str) -> str:
    """A suite's name as one of a file."""
    return re.sub(r"[^\w.@+-]+", "-", name).strip("-.") or "suite"


def _alike(rows: tuple[SuiteRow, ...]) -> list[tuple[SuiteRow, list[SuiteRow]]]:
    groups = (list(group) for _, group in groupby(rows, key=lambda row: (row.selection, row.procedure)))
    return [(group[0], group) for group in groups]


def _run(row: SuiteRow, repeats: int) -> dict[str, Any]:
    selection = row.selection
    values: dict[str, Any] = {"workload": f"{selection.workload}@{selection.release}"}
    values |= {
        name: value
        for name in FIELDS
        if name not in ("workload", "release") and (value := _value(selection, name)) not in (None, False)
    }
    values["procedure"] = row.procedure
    return values | ({"repeats": repeats} if repeats > 1 else {})


def _value(selection: Selection, name: str) -> object:
    field = FIELDS[name]
    holder = selection.overrides if field in LAYOUT else selection.options if field in OPTIONS else selection
    return getattr(holder, name)
