"""Measure the verbs that need no cluster; compare them with a Python that only imports argparse and json."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial

from bench._rounds import ROUNDS, Row, measure, measure_cpu_s, python, versions
from bench.plan import requests
from llmb_tui.catalog.load import load_presets

_PLAN = "plan -w nemotron4 -s 15b --gpu h100 -d bf16 --scale 64 --json".split()


def verb(words: Sequence[str], number: int, goals: str, rounds: int = 15) -> Row:
    """Measure one verb without saved state, in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"LLMB_TUI_STATE_DIR": folder, "LLMB_TUI_CONFIG_DIR": folder}
        command = python("-m", "llmb_tui", *words)
        ways = {name: partial(measure_cpu_s, command, tree, **environment) for name, tree in versions().items()}
        ways["argparse"] = partial(measure_cpu_s, python("-c", "import argparse, json"))
        return Row(f"llmb-tui {' '.join(words[:2])}", "CPU s", measure(ways, rounds), goals, number)


def many_plans(scales: int, reason: str = "") -> Row:
    """Measure 10,000 lines: published configurations at `scales` scales, repeated as often as needed."""
    lines = requests(load_presets(), scales)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("\n".join((lines * 100)[:10_000]))
        file.flush()
        row = verb(["plan", "--from", file.name], 20, "≤ 1/5 × before", ROUNDS)
    return row._replace(
        name=f"llmb-tui plan --from, 10,000 lines, {len({*lines[:10_000]}):,} of them different", reason=reason
    )


def rows() -> Iterator[Row]:
    """Measure all rows."""
    yield verb(["--help"], 10, "≤ 1.7 × argparse")
    yield verb(_PLAN, 10, "≤ 6 × argparse")
    yield many_plans(2)
    yield many_plans(
        80, "Reading a line, planning it and writing the answer take some hundred microseconds, in about equal parts."
    )
    yield verb(["accuracy", "--json"], 20, "≤ 1/2 × before", ROUNDS)
