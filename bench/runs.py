"""Measure `jobs --json` with a thousand finished runs, each with a short log."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench._baselines import ROOT
from bench._rounds import ROUNDS, Row, measure, measure_cpu_s, python, versions
from bench.parse import make_log
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import make_run


def save_finished_runs(state: Path, count: int) -> None:
    """Store this many finished runs with their logs."""
    runs, log = Runs(UserPaths(state / "config", state)), make_log(60, 0.9)
    for number in range(count):
        run = make_run(f"run{number}", job_ids=(str(number),), submission="submitted", job_state="COMPLETED")
        runs.save(replace(run, log_read=True))
        (runs.folder(run.id) / "log").write_bytes(log)


def jobs(count: int, rounds: int) -> Row:
    """Measure listing `count` finished runs, for the first time and with the stored results."""
    with tempfile.TemporaryDirectory() as folder:
        paths = UserPaths(Path(folder) / "config", Path(folder))
        save_finished_runs(Path(folder), count)
        for file in paths.runs.glob("*/*"):
            os.utime(file, (0, 0))  # as files that were not changed for a long time

        def list_cpu_s(tree: str, first: bool) -> float:
            if first:
                paths.runs_done.unlink(missing_ok=True)
            state = {"LLMB_TUI_STATE_DIR": folder, "LLMB_TUI_CONFIG_DIR": f"{folder}/config"}
            return measure_cpu_s(python("-m", "llmb_tui", "jobs", "--json"), tree, **state)

        ways = {"now, first time": partial(list_cpu_s, ROOT, True)}
        ways |= {version: partial(list_cpu_s, tree, False) for version, tree in versions().items()}
        return Row(f"jobs --json with {count:,} finished runs", "CPU s", measure(ways, rounds), "≤ 1/4 × before", 18)


def cheap() -> Iterator[Row]:
    """Measure fewer runs; the start of the program has a larger share of the time."""
    yield jobs(200, 3)._replace(goals="")  # the goal is for a thousand runs


def rows() -> Iterator[Row]:
    """Measure all rows."""
    yield jobs(1000, ROUNDS)
