"""`squeue`: the jobs that Slurm's controller knows, in a text format that versions 20.11 to 26.05 support.

`-O NAME:SUFFIX` prints a complete value and then the suffix, which is used as the separator. A width in place of the
suffix would cut long reasons and node lists. `-o` cannot print restarts, and the form of `--json` differs between
versions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from llmb_tui.cluster.job import Job
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.slurm.partition import parse_count, parse_time

SEPARATOR = "\x1f"
"""ASCII's unit separator, which users do not type in names."""
JOB_ID = re.compile(r"\d+(?:[_+]\d+)?", re.ASCII)
"""Job id: `12`, `12_3` of an array, `12+1` of a heterogeneous job."""

UNIX_TIMES = "SLURM_TIME_FORMAT=%s; export SLURM_TIME_FORMAT"
"""Snippet for a batch that makes Slurm print Unix times, independent of the cluster's time zone."""

LIMIT_S = 40
"""Time limit after which a command is ended on the cluster, seconds. Slurm's own limit is 10 by default."""

# The name is last, because it may contain anything.
COLUMNS = "JobArrayID State Reason NumNodes TimeUsed RestartCnt exit_code StartTime NodeList Name".split()
_FILTERS = "SQUEUE_ACCOUNT SQUEUE_LICENSES SQUEUE_NAMES SQUEUE_PARTITION SQUEUE_QOS"
"""Filters that the user's shell may set. Filters of the command line have priority anyway."""


def squeue(columns: Sequence[str] = COLUMNS) -> str:
    """Snippet for a batch that prints columns of the user's jobs; run it in a subshell."""
    # -j would fail at one unknown id. --me -a lists the user's own jobs, also in hidden partitions.
    command = ["squeue", "--me", "-a", "-h", "-t", "all", "-O", ",".join(f"{name}:{SEPARATOR}" for name in columns)]
    return f"unset {_FILTERS}; {UNIX_TIMES}; limited {LIMIT_S} {shell_join(command)}"


def parse_squeue(text: str) -> list[Job]:
    """Parse the output of `squeue`. Lines of another form are ignored."""
    return [_job(cells) for cells in rows(text, COLUMNS) if cells["State"].isupper()]


def rows(text: str, columns: Sequence[str]) -> list[dict[str, str]]:
    """Parse the lines that have a cell for each column and begin with a job's number."""
    lines = (line.split(SEPARATOR, len(columns) - 1) for line in text.split("\n"))
    complete = (cells for cells in lines if len(cells) == len(columns) and JOB_ID.fullmatch(cells[0]))
    return [dict(zip(columns, cells, strict=True)) for cells in complete]


def unix_time(text: str) -> float | None:
    """Parse a Unix time; None for `N/A`, `UnknownNameError` and other texts."""
    return float(text) if re.fullmatch(r"[1-9]\d{5,11}", text) else None


def _job(cells: dict[str, str]) -> Job:
    state = cells["State"]
    # The reason of a cancelled job is the reason of its earlier wait.
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
    """Parse an exit code to `code:signal`. Before 23.02 squeue printed the status of wait(2)."""
    if re.fullmatch(r"\d+:\d+", text):
        return text
    return f"{int(text) >> 8 & 0xFF}:{int(text) & 0x7F}" if text.isdigit() else None
