"""`squeue`: the jobs that Slurm's controller knows, in a text format that versions 20.11 to 26.05 have in common.

`-O NAME:SUFFIX` prints a value whole, of whatever length, and the suffix behind it; the suffix is our separator.
With a width instead, long reasons and node lists are cut. `-o` cannot print restarts. `--json` changes its shape
from version to version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from llmb_tui.cluster.job import Job
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.slurm.partition import parse_count, parse_time

SEPARATOR = "\x1f"
"""ASCII's own unit separator: in no name that a person types."""
JOB_ID = re.compile(r"\d+(?:[_+]\d+)?", re.ASCII)
"""`12`, `12_3` of an array, `12+1` of a heterogeneous job."""

UNIX_TIMES = "SLURM_TIME_FORMAT=%s; export SLURM_TIME_FORMAT"
"""As a snippet of a batch: moments are printed as Unix time, whatever the cluster's time zone is."""

LIMIT_S = 40
"""A command that has no answer after so many seconds is ended on the cluster. Slurm's own limit is 10 by default."""

# The name comes last: it may hold anything.
COLUMNS = "JobArrayID State Reason NumNodes TimeUsed RestartCnt exit_code StartTime NodeList Name".split()
_FILTERS = "SQUEUE_ACCOUNT SQUEUE_LICENSES SQUEUE_NAMES SQUEUE_PARTITION SQUEUE_QOS"
"""Filters that a person's profile may set; those that the command line sets go before them anyway."""


def squeue(columns: Sequence[str] = COLUMNS) -> str:
    """The user's jobs in some columns, as a snippet of a batch, for a subshell."""
    # With -j it fails at one unknown id; this asks for the user's own jobs only, in hidden partitions too.
    command = ["squeue", "--me", "-a", "-h", "-t", "all", "-O", ",".join(f"{name}:{SEPARATOR}" for name in columns)]
    return f"unset {_FILTERS}; {UNIX_TIMES}; limited {LIMIT_S} {shell_join(command)}"


def parse_squeue(text: str) -> list[Job]:
    """Jobs from the output of `squeue`. Lines of another shape are left out."""
    return [_job(cells) for cells in rows(text, COLUMNS) if cells["State"].isupper()]


def rows(text: str, columns: Sequence[str]) -> list[dict[str, str]]:
    """The lines with a cell for each column, the first of which is a job's number."""
    lines = (line.split(SEPARATOR, len(columns) - 1) for line in text.split("\n"))
    whole = (cells for cells in lines if len(cells) == len(columns) and JOB_ID.fullmatch(cells[0]))
    return [dict(zip(columns, cells, strict=True)) for cells in whole]


def unix_time(text: str) -> float | None:
    """A moment that was printed as Unix time; None for `N/A`, `Unknown` and the like."""
    return float(text) if re.fullmatch(r"[1-9]\d{5,11}", text) else None


def _job(cells: dict[str, str]) -> Job:
    state = cells["State"]
    # Of a cancelled job the reason is the one for which it had waited before.
    reason = "" if cells["Reason"] == "None" or state == "CANCELLED" else cells["Reason"]
    job = Job(
        id=cells["JobArrayID"],
        name=cells["Name"].removesuffix(SEPARATOR),
        state=state,
        reason=reason,
        nodes=parse_count(cells["NumNodes"]),
        elapsed_s=parse_time(cells["TimeUsed"]),
        restarts=parse_count(cells["RestartCnt"]) or 0,
        node_list=cells["NodeList"],
    )
    if job.waiting:
        return replace(job, starts_at=unix_time(cells["StartTime"]))
    return replace(job, exit_code=_exit_code(cells["exit_code"])) if job.finished else job


def _exit_code(text: str) -> str | None:
    """`code:signal`. Before 23.02 squeue printed the number that wait(2) gives."""
    if re.fullmatch(r"\d+:\d+", text):
        return text
    return f"{int(text) >> 8 & 0xFF}:{int(text) & 0x7F}" if text.isdigit() else None
