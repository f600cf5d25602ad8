"""Slurm's accounting: `sacct` for jobs, `sacctmgr` for a user. Some clusters have none, and some delete old jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from llmb_tui.cluster.batch import TIMED_OUT
from llmb_tui.cluster.job import TERMINAL_STATES, Job
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.slurm.partition import parse_count, parse_time
from llmb_tui.cluster.slurm.queue import LIMIT_S, SEPARATOR, UNIX_TIMES, rows
from llmb_tui.language.text import clean

# The name is last, because it may contain anything. All columns exist since Slurm 20.11.
_COLUMNS = "JobID State ExitCode NNodes ElapsedRaw NodeList JobName".split()

# Stored columns of every start of a job. No column is a command line or a comment, which may contain a secret.
STORED_COLUMNS = (
    "JobID User Account Partition QOS Cluster State ExitCode DerivedExitCode Submit Eligible Start End ElapsedRaw "
    "TimelimitRaw NNodes NCPUS ReqTRES AllocTRES NodeList WorkDir JobName"
).split()

ASSOCIATIONS = 'limited 6 sacctmgr -nP show assoc user="$(id -un)" format=cluster,account,partition,qos,defaultqos'
"""Snippet for `run_batch`, whose answer covers all clusters of the site's database."""
DEFAULT_ACCOUNT = 'limited 6 sacctmgr -nP show user "$(id -un)" format=defaultaccount'


@dataclass(frozen=True, slots=True)
class Association:
    """One line of the user's associations."""

    account: str
    partition: str
    """Name of the partition; empty for all partitions."""
    qos: tuple[str, ...]
    default_qos: str
    """Default QOS; empty if none is set."""


def sacct(*options: str, columns: Sequence[str] = _COLUMNS, limit_s: int = LIMIT_S) -> str:
    """Snippet for a batch that runs `sacct`; for a requeued job it prints only the last start."""
    command = ["sacct", "-X", "-n", "-P", f"--delimiter={SEPARATOR}", "-o", ",".join(columns), *options]
    return f"limited {limit_s} {shell_join(command)}"


def sacct_of_jobs(command: str, job_ids: str) -> str:
    """Snippet for a batch that runs a `sacct` command for jobs. A site's wrapper may accept only one job at a time.

    `job_ids`: shell word for their ids, separated by commas. After a failure each job is asked for until one fails.
    """
    return f"""\
of_jobs() {{
    {command} -j {job_ids} && return
    set -- "$?"
    case $1:{job_ids} in
        {TIMED_OUT}:*) return "$1" ;;
        *,*) ;;
        *) return "$1" ;;
    esac
    for id in $(printf %s {job_ids} | tr , ' '); do
        {command} -j "$id" || return
    done
}}
of_jobs"""


def stored_records(job_ids: Sequence[str], limit_s: int) -> str:
    """Snippet for a batch that prints the stored columns of jobs, with headings and Unix times."""
    command = shell_join(["sacct", "-X", "-D", "-P", "-o", ",".join(STORED_COLUMNS)])
    return f"({UNIX_TIMES}; {sacct_of_jobs(f'limited {limit_s} {command}', shell_join([','.join(job_ids)]))})"


def complete_records(text: str, job_ids: Sequence[str]) -> str:
    """Output lines of `stored_records`, unchanged; empty until accounting has the end of every job."""
    lines = [line for line in clean(text).splitlines() if line.count("|") >= len(STORED_COLUMNS) - 1]
    lines = [line for number, line in enumerate(lines) if not number or line != lines[0]]
    rows = [dict(zip(STORED_COLUMNS, line.split("|"), strict=False)) for line in lines[1:]]
    ends = {row["JobID"]: row["State"].partition(" ")[0] for row in rows}
    is_complete = all(ends.get(job_id) in TERMINAL_STATES for job_id in job_ids)
    return "".join(f"{line}\n" for line in lines) if is_complete else ""


def unless_it_hangs(search: str) -> str:
    """Snippet for a long search, which ends with the exit code of a timeout if accounting hangs.

    A short question to slurmdbd before the search shows whether accounting hangs.
    """
    return f'if {DEFAULT_ACCOUNT} >/dev/null 2>&1; [ "$?" -eq {TIMED_OUT} ]; then (exit {TIMED_OUT}); else {search}; fi'


def parse_sacct(text: str, uid: str = "") -> list[Job]:
    """Parse the output of `sacct`. `uid`: id of the present user, to name the user who cancelled a job."""
    jobs = []
    for cells in rows(text, _COLUMNS):
        job = Job(
            id=cells["JobID"],
            name=cells["JobName"],
            state=cells["State"].partition(" ")[0],
            reason=_cancelled_by(cells["State"], uid),
            nodes=parse_count(cells["NNodes"]),
            elapsed_s=parse_time(cells["ElapsedRaw"]),
            node_list=cells["NodeList"].replace("None assigned", ""),
        )
        jobs.append(replace(job, exit_code=cells["ExitCode"]) if job.finished else job)
    return jobs


def parse_associations(text: str, cluster: str) -> list[Association]:
    """Parse the user's associations on one cluster, or on all clusters if its name is unknown (empty)."""
    associations = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[1] and cluster in ("", cells[0]):
            _, account, partition, qos, default = cells
            associations.append(Association(account, partition, tuple(filter(None, qos.split(","))), default))
    return associations


def accounts_of(associations: Iterable[Association]) -> tuple[str, ...]:
    """Accounts of associations, without duplicates."""
    return tuple(dict.fromkeys(association.account for association in associations))


def qos_of(associations: Iterable[Association], account: str = "") -> tuple[str, ...]:
    """QOS that an account may use, without duplicates; for an empty name those of all accounts."""
    allowed = (a.qos for a in associations if account in ("", a.account))
    return tuple(dict.fromkeys(name for names in allowed for name in names))


def _cancelled_by(state: str, uid: str) -> str:
    """User who cancelled a job, from a state such as `CANCELLED by 1001`; empty for other states."""
    match = re.fullmatch(r"CANCELLED by (\d+)", state)
    if match is None:
        return ""
    if match[1] == uid:
        return "cancelled by its owner"
    return "cancelled by an administrator (root)" if match[1] == "0" else f"cancelled by user {match[1]}"
