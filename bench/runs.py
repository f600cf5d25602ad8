"""`jobs --json` on a directory with a thousand finished runs, each with a short log."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench._others import HERE
from bench._rounds import ROUNDS, Row, cpu_of, in_turns, python, versions
from bench.parse import make_log
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import make_run


def remember(state: Path, count: int) -> None:
    """Runs that are over, as they lie on the disk."""
    runs, log = Runs(UserPaths(state / "config", state)), make_log(60, 0.9)
    for number in range(count):
        run = make_run(f"run{number}", job_ids=(str(number),), submission="submitted", job_state="COMPLETED")
        runs.save(replace(run, log_read=True))
        (runs.folder(run.id) / "log").write_bytes(log)


def jobs(count: int, rounds: int) -> Row:
    """The list of all runs, nothing of which goes on; the first time they are read."""
    with tempfile.TemporaryDirectory() as folder:
        places = UserPaths(Path(folder) / "config", Path(folder))
        remember(Path(folder), count)
        for file in places.runs.glob("*/*"):
            os.utime(file, (0, 0))  # as if they had lain there for long

        def taken(tree: str, first: bool) -> float:
            if first:
                places.runs_done.unlink(missing_ok=True)
            state = {"LLMB_TUI_STATE_DIR": folder, "LLMB_TUI_CONFIG_DIR": f"{folder}/config"}
            return cpu_of(python("-m", "llmb_tui", "jobs", "--json"), tree, **state)

        ways = {"now, first time": partial(taken, HERE, True)}
        ways |= {version: partial(taken, tree, False) for version, tree in versions().items()}
        return Row(f"jobs --json with {count:,} finished runs", "CPU s", in_turns(ways, rounds), "≤ 1/4 × before", 18)


def cheap() -> Iterator[Row]:
    """With fewer runs, where the start of the program counts for more."""
    yield jobs(200, 3)._replace(to_reach="")  # which is meant for a thousand


def rows() -> Iterator[Row]:
    """All."""
    yield jobs(1000, ROUNDS)
