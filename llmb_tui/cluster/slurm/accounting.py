"""Slurm's accounting: `sacct` on jobs, `sacctmgr` on a user. Some clusters keep none, and some forget old jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from llmb_tui.cluster.batch import TIMED_OUT, Answer
from llmb_tui.cluster.job import TERMINAL_STATES, Job
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.slurm.partition import parse_count, parse_time
from llmb_tui.cluster.slurm.queue import LIMIT_S, SEPARATOR, UNIX_TIMES, rows
from llmb_tui.language.text import clean

# The name comes last: it may hold anything. All of these are there since 20.11.
_COLUMNS = "JobID State ExitCode NNodes ElapsedRaw NodeList JobName".split()

# What is kept of a job, every start of it. None of these holds a command line or a comment, in which a secret may be.
KEPT = (
    "JobID User Account Partition QOS Cluster State ExitCode DerivedExitCode Submit Eligible Start End ElapsedRaw "
    "TimelimitRaw NNodes NCPUS ReqTRES AllocTRES NodeList WorkDir JobName"
).split()

ASSOCIATIONS = 'limited 6 sacctmgr -nP show assoc user="$(id -un)" format=cluster,account,partition,qos,defaultqos'
"""For `run_batch`; answers about every cluster of the site's database."""
DEFAULT_ACCOUNT = 'limited 6 sacctmgr -nP show user "$(id -un)" format=defaultaccount'

_OFF = re.compile(r"accounting storage is disabled|not running a supported accounting_storage", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Association:
    """One line of the user's associations."""

    account: str
    partition: str
    """Empty: every partition."""
    qos: tuple[str, ...]
    default_qos: str
    """Empty where none is set."""


def sacct(*options: str, columns: Sequence[str] = _COLUMNS, limit_s: int = LIMIT_S) -> str:
    """`sacct` with some columns and more options, as a snippet of a batch; of a requeued job only its last start."""
    command = ["sacct", "-X", "-n", "-P", f"--delimiter={SEPARATOR}", "-o", ",".join(columns), *options]
    return f"limited {limit_s} {shell_join(command)}"


def kept(job_ids: Sequence[str], limit_s: int) -> str:
    """`sacct` on what is kept of jobs, with a heading and in Unix time, as a snippet of a batch."""
    command = ["sacct", "-X", "-D", "-P", "-o", ",".join(KEPT), "-j", ",".join(job_ids)]
    return f"({UNIX_TIMES}; limited {limit_s} {shell_join(command)})"


def kept_text(text: str, job_ids: Sequence[str]) -> str:
    """The lines of `kept`, as they were printed; none before accounting has heard of the end of each job."""
    lines = [line for line in clean(text).splitlines() if line.count("|") >= len(KEPT) - 1]
    rows = [dict(zip(KEPT, line.split("|"), strict=False)) for line in lines[1:]]
    ends = {row["JobID"]: row["State"].partition(" ")[0] for row in rows}
    whole = all(ends.get(job_id) in TERMINAL_STATES for job_id in job_ids)
    return "".join(f"{line}\n" for line in lines) if whole else ""


def unless_it_hangs(search: str) -> str:
    """A search that may rightly take long, as a snippet that ends as a command at its limit where accounting hangs.

    A question that slurmdbd answers at once tells the one from the other.
    """
    return f'if {DEFAULT_ACCOUNT} >/dev/null 2>&1; [ "$?" -eq {TIMED_OUT} ]; then (exit {TIMED_OUT}); else {search}; fi'


def parse_sacct(text: str, uid: str = "") -> list[Job]:
    """Jobs from the output of `sacct`. `uid` is that of who asks: it names who cancelled a job."""
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
    """The user's associations on one cluster, or on all of them where its name is not known (empty)."""
    associations = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[1] and cluster in ("", cells[0]):
            _, account, partition, qos, default = cells
            associations.append(Association(account, partition, tuple(filter(None, qos.split(","))), default))
    return associations


def accounts_of(associations: Iterable[Association]) -> tuple[str, ...]:
    """Their accounts, each once."""
    return tuple(dict.fromkeys(association.account for association in associations))


def qos_of(associations: Iterable[Association], account: str = "") -> tuple[str, ...]:
    """The QOS that an account may use, or any account (empty); each once."""
    allowed = (a.qos for a in associations if account in ("", a.account))
    return tuple(dict.fromkeys(name for names in allowed for name in names))


def accounting_is_off(answer: Answer) -> bool:
    """True when a command failed because this cluster keeps no accounts."""
    return answer.exit_code != 0 and _OFF.search(answer.text) is not None


def _cancelled_by(state: str, uid: str) -> str:
    """Who cancelled a job, of a state such as `CANCELLED by 1001`; empty for every other state."""
    match = re.fullmatch(r"CANCELLED by (\d+)", state)
    if match is None:
        return ""
    if match[1] == uid:
        return "cancelled by its owner"
    return "cancelled by an administrator (root)" if match[1] == "0" else f"cancelled by user {match[1]}"
