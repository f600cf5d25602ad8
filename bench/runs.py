"""`jobs --json` on a directory with a thousand finished runs, each with a short log."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench._rounds import Row, cpu_of, in_turns, python, versions
from bench.parse import make_log
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import Places
from tests.kit.runs import make_run

_RUNS = 1000


def remember(state: Path, count: int) -> None:
    """Runs that are over, as they lie on the disk."""
    runs, log = Runs(Places(state / "config", state)), make_log(60, 0.9)
    for number in range(count):
        run = make_run(f"run{number}", job_ids=(str(number),), submission="submitted", job_state="COMPLETED")
        runs.save(replace(run, log_read=True))
        (runs.folder(run.id) / "log").write_bytes(log)


def jobs() -> Row:
    """The list of all runs, nothing of which goes on."""
    with tempfile.TemporaryDirectory() as folder:
        remember(Path(folder), _RUNS)
        ways = {
            version: partial(
                cpu_of,
                python("-m", "llmb_tui", "jobs", "--json"),
                tree,
                LLMB_TUI_STATE_DIR=folder,
                LLMB_TUI_CONFIG_DIR=f"{folder}/config",
            )
            for version, tree in versions().items()
        }
        return Row(f"jobs --json with {_RUNS:,} finished runs", "CPU s", in_turns(ways), "≤ 1/4 of before")


def main() -> None:
    """Print the rows."""
    print(jobs())


if __name__ == "__main__":
    main()
