"""How long the verbs take that need no cluster, beside the smallest Python program that reads flags and writes JSON."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial

from bench._rounds import ROUNDS, Row, cpu_of, in_turns, python, versions
from bench.plan import requests
from llmb_tui.catalog.load import load_presets

_PLAN = "plan -w nemotron4 -s 15b --gpu h100 -d bf16 --scale 64 --json".split()


def verb(words: Sequence[str], number: int, to_reach: str, rounds: int = 15) -> Row:
    """One verb with nothing saved, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"LLMB_TUI_STATE_DIR": folder, "LLMB_TUI_CONFIG_DIR": folder}
        command = python("-m", "llmb_tui", *words)
        ways = {name: partial(cpu_of, command, tree, **environment) for name, tree in versions().items()}
        ways["argparse"] = partial(cpu_of, python("-c", "import argparse, json"))
        return Row(f"llmb-tui {' '.join(words[:2])}", "CPU s", in_turns(ways, rounds), to_reach, number)


def many_plans(kinds: int, why: str = "") -> Row:
    """10,000 lines: published configurations and larger ones, so many of each, again and again."""
    lines = requests(load_presets(), kinds)
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("\n".join((lines * 100)[:10_000]))
        file.flush()
        row = verb(["plan", "--from", file.name], 20, "≤ 1/5 × before", ROUNDS)
    return row._replace(
        what=f"llmb-tui plan --from, 10,000 lines, {len({*lines[:10_000]}):,} of them different", why=why
    )


def rows() -> Iterator[Row]:
    """All."""
    yield verb(["--help"], 10, "≤ 1.7 × argparse")
    yield verb(_PLAN, 10, "≤ 6 × argparse")
    yield many_plans(2)
    yield many_plans(
        80, "Reading a line, planning it and writing the answer take some hundred microseconds, in about equal parts."
    )
    yield verb(["accuracy", "--json"], 20, "≤ 1/2 × before", ROUNDS)
