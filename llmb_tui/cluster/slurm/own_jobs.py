"""`own_jobs`: the user's jobs, with what tells one from another whose name is the same."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from llmb_tui.cluster.batch import run_batch
from llmb_tui.cluster.failures import DeadlinePassed
from llmb_tui.cluster.quoting import shell_join
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.accounting import accounting_is_off
from llmb_tui.cluster.slurm.queue import FILTERS, LIMIT_S, SEPARATOR, unix_time
from llmb_tui.cluster.slurm.trouble import silence, slurm_trouble

_DEADLINE_S = 2.0 * LIMIT_S + 10.0
# The name comes last: it may hold anything.
_QUEUED = "JobID SubmitTime Command WorkDir Name".split()
_ENDED = "JobIDRaw Submit WorkDir JobName".split()


@dataclass(frozen=True, slots=True)
class OwnJob:
    """A job of the user. Its texts are Slurm's own, not clean."""

    id: str
    name: str
    submitted_at: float
    """Unix time, by the controller's clock."""
    folder: str
    """Its working directory, without symbolic links."""
    script: str = ""
    """Path of its batch script; empty where only accounting knows it."""


def own_jobs(session: Session, since: float) -> tuple[OwnJob, ...]:
    """The user's jobs that were submitted since that Unix time, queued, running or ended, by their numbers.

    Without accounting an ended job is known for some minutes only. Raises SlurmTrouble when Slurm cannot say, and what
    `Session.run` raises.
    """
    day = (datetime.date.fromtimestamp(since) - datetime.timedelta(days=1)).isoformat()
    times = "SLURM_TIME_FORMAT=%s; export SLURM_TIME_FORMAT"
    columns = ",".join(f"{name}:{SEPARATOR}" for name in _QUEUED)
    squeue = shell_join(["squeue", "--me", "-a", "-h", "-t", "all", "-O", columns])
    sacct = shell_join(["sacct", "-X", "-n", "-P", f"--delimiter={SEPARATOR}", "-o", ",".join(_ENDED), "-S", day])
    commands = {
        "squeue": f"(unset {FILTERS}; {times}; limited {LIMIT_S} {squeue})",
        "sacct": f'[ "$rc_squeue" -ne 0 ] || ({times}; limited {LIMIT_S} {sacct} -u "$(id -u)")',
    }
    try:
        answers = run_batch(session, commands, _DEADLINE_S)
    except DeadlinePassed as late:
        raise silence("Slurm") from late
    for program, answer in answers.items():
        if answer.exit_code != 0 and not (program == "sacct" and accounting_is_off(answer)):
            raise slurm_trouble(program, answer)
    found = {job.id: job for job in parse_ended(answers["sacct"].text) + parse_queued(answers["squeue"].text)}
    return tuple(sorted((job for job in found.values() if job.submitted_at >= since), key=lambda job: int(job.id)))


def parse_queued(text: str) -> list[OwnJob]:
    """Jobs from the output of squeue. Lines of another shape are left out."""
    return [
        OwnJob(row["JobID"], row["Name"].removesuffix(SEPARATOR), moment, row["WorkDir"], row["Command"])
        for row in _rows(text, _QUEUED)
        if (moment := unix_time(row["SubmitTime"])) is not None
    ]


def parse_ended(text: str) -> list[OwnJob]:
    """The same of the output of sacct."""
    return [
        OwnJob(row["JobIDRaw"], row["JobName"], moment, row["WorkDir"])
        for row in _rows(text, _ENDED)
        if (moment := unix_time(row["Submit"])) is not None
    ]


def _rows(text: str, columns: list[str]) -> list[dict[str, str]]:
    """The lines with a cell for each column, the first of which is a job's number."""
    lines = (line.split(SEPARATOR, len(columns) - 1) for line in text.split("\n"))
    whole = (cells for cells in lines if len(cells) == len(columns) and re.fullmatch(r"\d+", cells[0], re.ASCII))
    return [dict(zip(columns, cells, strict=True)) for cells in whole]
