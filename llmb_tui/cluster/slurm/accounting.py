"""`sacct`: what Slurm's accounting says. Some clusters keep none, and some forget old jobs."""

from __future__ import annotations

import re
from dataclasses import replace

from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.slurm.job import Job
from llmb_tui.cluster.slurm.partition import parse_count, parse_time
from llmb_tui.cluster.slurm.queue import JOB_ID, LIMIT_S, SEPARATOR

# The name comes last: it may hold anything. All of these are there since 20.11.
_COLUMNS = "JobID State ExitCode NNodes ElapsedRaw NodeList JobName".split()
# Of a job that was requeued only its last start.
SACCT = ["limited", str(LIMIT_S), "sacct", "-X", "-n", "-P", f"--delimiter={SEPARATOR}", "-o", ",".join(_COLUMNS)]

_OFF = re.compile(r"accounting storage is disabled|not running a supported accounting_storage", re.IGNORECASE)


def sacct(*options: str) -> str:
    """`sacct` with our columns and more options, as a snippet of a batch."""
    return shell_join([*SACCT, *options])


def parse_sacct(text: str, uid: str = "") -> list[Job]:
    """Jobs from the output of `SACCT`. `uid` is that of who asks: it names who cancelled a job."""
    jobs = []
    for line in text.split("\n"):
        cells = line.split(SEPARATOR, len(_COLUMNS) - 1)
        if len(cells) == len(_COLUMNS) and JOB_ID.fullmatch(cells[0]):
            job_id, state, exit_code, nodes, elapsed, node_list, name = cells
            job = Job(
                id=job_id,
                name=name,
                state=state.split(maxsplit=1)[0] if state.split() else "",
                reason=_cancelled_by(state, uid),
                nodes=parse_count(nodes),
                elapsed_s=parse_time(elapsed),
                node_list="" if node_list == "None assigned" else node_list,
            )
            jobs.append(replace(job, exit_code=exit_code) if job.finished else job)
    return jobs


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
