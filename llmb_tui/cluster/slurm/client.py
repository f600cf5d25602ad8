"""Slurm through its commands: what its jobs are doing, and the few things that are asked of it beside `SlurmCluster`.

Each function is one remote call. A controller that hangs makes each of Slurm's commands wait until its own time
limit has passed (10 seconds, more on large sites), so none is asked after one that failed.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from llmb_tui.cluster.batch import NO_ANSWER, Answer, run_batch
from llmb_tui.cluster.failures import DeadlinePassed
from llmb_tui.cluster.job import ENDED_UNHEARD, Job, OwnJob
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.quoting import one_line, shell_join
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.accounting import accounting_is_off, parse_sacct, sacct, unless_it_hangs
from llmb_tui.cluster.slurm.partition import SINFO_FORMAT, NodeGroup, Partition, parse_partitions, sinfo
from llmb_tui.cluster.slurm.queue import LIMIT_S, SEPARATOR, UNIX_TIMES, parse_squeue, rows, squeue, unix_time
from llmb_tui.cluster.slurm.trouble import AccountingTrouble, silence, slurm_trouble
from llmb_tui.language.text import clean, clean_line

Version = tuple[int, int]

SEGMENT_SINCE: Version = (24, 5)
"""The first Slurm whose `sbatch` knows `--segment`: its list of changes, CHANGELOG/slurm-24.05.md."""
SRUN_OUTPUT_SINCE: Version = (23, 2)
"""The first Slurm whose `srun` reads SRUN_OUTPUT and SRUN_ERROR: its release notes, RELEASE_NOTES of 23.02."""

_DEADLINE_S = 2.0 * LIMIT_S + 20.0
"""Of a call that asks the queue, whether accounting answers, then accounting."""
ONE_DEADLINE_S = LIMIT_S + 5.0
ENDED_WITHIN_S = 8
"""A look does not wait longer for what accounting knows of jobs by their ids."""
_DAYS_BACK = 8
# Columns of an `OwnJob`; the name comes last: it may hold anything.
OWN_QUEUED = "JobID SubmitTime WorkDir Command Name".split()
OWN_ENDED = "JobIDRaw Submit WorkDir JobName".split()


def find_jobs(session: Session, job_name: str) -> list[Job]:
    """The user's jobs with exactly this name, queued, running or ended within the last week, oldest first.

    Without accounting an ended job is found for some minutes only. Raises AccountingTrouble when that does not answer,
    SlurmTrouble when Slurm cannot say, and what `Session.run` raises.
    """
    one_line(job_name, "the job name")
    since = (datetime.date.today() - datetime.timedelta(days=_DAYS_BACK)).isoformat()
    ended = f'{sacct("-S", since, f"--name={job_name}")} -u "$(id -u)"'
    commands = {
        "squeue": f"({squeue()})",
        "sacct": f'[ "$rc_squeue" -ne 0 ] || {unless_it_hangs(ended)}',
        "owner": "id -u",
    }
    answers = ask(session, commands)
    # A job that the queue names is found, whatever accounting says.
    queued = [job.id for job in parse_squeue(answers["squeue"].text) if job.name == job_name]
    jobs = read_jobs(answers, queued).values()
    return sorted((job for job in jobs if job.name == job_name), key=_number)


def own_jobs(session: Session, since: float) -> tuple[OwnJob, ...]:
    """The user's jobs that were submitted since that Unix time, queued, running or ended, by their numbers.

    Without accounting an ended job is known for some minutes only. Raises AccountingTrouble when that does not answer,
    SlurmTrouble when Slurm cannot say, and what `Session.run` raises.
    """
    day = (datetime.date.fromtimestamp(since) - datetime.timedelta(days=1)).isoformat()
    ended = f'{sacct("-S", day, columns=OWN_ENDED)} -u "$(id -u)"'
    commands = {
        "squeue": f"({squeue(OWN_QUEUED)})",
        "sacct": f'[ "$rc_squeue" -ne 0 ] || ({UNIX_TIMES}; {unless_it_hangs(ended)})',
    }
    answers = ask(session, commands)
    for program, answer in answers.items():
        if answer.exit_code != 0 and not (program == "sacct" and accounting_is_off(answer)):
            raise slurm_trouble(program, answer)
    ended_jobs = parse_own_jobs(answers["sacct"].text, OWN_ENDED)
    queued_jobs = parse_own_jobs(answers["squeue"].text, OWN_QUEUED)
    jobs = {job.id: job for job in (*ended_jobs, *queued_jobs)}
    return tuple(sorted((job for job in jobs.values() if job.submitted_at >= since), key=_number))


def going_jobs(session: Session) -> tuple[Job, ...]:
    """The user's jobs that wait or run. Raises SlurmTrouble when Slurm cannot say, and what `Session.run` raises."""
    return tuple(job for job in parse_squeue(said(session, "squeue", f"({squeue()})")) if not job.finished)


def partitions(session: Session) -> list[Partition]:
    """All partitions that the user may see. Raises SlurmTrouble, and what `Session.run` raises."""
    # The echo ends a line that a login shell may have begun.
    result = session.run_script(f"echo; {sinfo('-o', SINFO_FORMAT)}", deadline_s=ONE_DEADLINE_S, only_looks=True)
    if result.exit_code != 0:
        raise slurm_trouble("sinfo", Answer(result.exit_code, result.stderr))
    return parse_partitions(result.stdout)


def slurm_version(session: Session, prompter: Prompter | None = None) -> Version | None:
    """Year and month of the login node's `sbatch`; None where it does not say.

    `prompter` answers what connecting asks. Raises what `Session.connect` and `Session.run` raise.
    """
    session.connect(prompter)
    return parse_version(session.patiently(lambda: session.run_script("sbatch --version", only_looks=True)).stdout)


def read_jobs(answers: Mapping[str, Answer], needed: Iterable[str] = ()) -> dict[str, Job]:
    """All jobs in the answers of `squeue` and `sacct`, by id.

    Raises SlurmTrouble when squeue failed, or when accounting failed and one of the `needed` ids is not in the queue.
    """
    squeue, ended = answers["squeue"], answers["sacct"]
    if squeue.exit_code != 0:
        raise slurm_trouble("squeue", squeue)
    queued = {job.id: job for job in parse_squeue(squeue.text)}
    accounted: dict[str, Job] = {}
    if ended.exit_code == 0:
        uid = answers.get("owner", NO_ANSWER).text.strip()
        accounted = {
            job.id: job if job.finished else replace(job, reason=ENDED_UNHEARD) for job in parse_sacct(ended.text, uid)
        }
    elif not accounting_is_off(ended) and not (needed and all(job_id in queued for job_id in needed)):
        raise AccountingTrouble(ended, queued)
    return {**accounted, **{job_id: _join(job, accounted.get(job_id)) for job_id, job in queued.items()}}


def parse_own_jobs(text: str, columns: Sequence[str]) -> list[OwnJob]:
    """Jobs from the output of squeue or sacct in their columns of `OwnJob`. Lines of another shape are left out."""
    jobs = []
    for cells in rows(text, columns):
        job_id, submitted_at, folder, *script, name = cells.values()
        moment = unix_time(submitted_at)
        if moment is not None:
            jobs.append(OwnJob(job_id, name.removesuffix(SEPARATOR), moment, folder, *script))
    return jobs


def parse_bad_nodes(text: str) -> tuple[str, ...]:
    """Nodes that do not work, each once, from the output of `sinfo`: name, state and reason."""
    nodes = {}
    for line in text.split("\n"):
        name, _, rest = line.partition(SEPARATOR)
        state, separator, reason = rest.partition(SEPARATOR)
        if separator and not NodeGroup(1, state, ()).works:
            why = "" if reason == "none" else f": {clean(reason)}"
            nodes[name] = f"{clean_line(name)} is {clean_line(state.rstrip('*'))}{why}"
    return tuple(nodes.values())


def parse_version(text: str) -> Version | None:
    """Year and month in a text such as `slurm 23.11.4`, or `slurm-wlm 22.05.8`; a login shell may print before it."""
    match = re.search(r"\bslurm\S*\s+(\d+)\.(\d+)", text, re.ASCII | re.IGNORECASE)
    return (int(match[1]), int(match[2])) if match else None


def look_commands(job_ids: Sequence[str]) -> dict[str, str]:
    """Ask the queue, then accounting about those of the jobs that neither wait nor run there."""
    # One pass over the queue, however many jobs are asked about; where it fails, accounting is asked about all of them.
    choose = f"""\
ended=$({{ printf '%s\\n' {shell_join(job_ids)} ''; printf '%s\\n' "$queue"; }} | awk -F '{SEPARATOR}' '
!asked {{ if ($0 == "") asked = count; else ids[++count] = $0; next }}
NF > 2 && ($2 == "PENDING" || $2 == "RUNNING") {{ goes_on[$1] = 1 }}
END {{ for (at = 1; at <= count; at++) if (!(ids[at] in goes_on)) {{ printf "%s%s", comma, ids[at]; comma = "," }} }}
') || ended={shell_join([",".join(job_ids)])}"""
    of_these = f'{sacct("-j", limit_s=ENDED_WITHIN_S)} "$ended"'
    return {
        "squeue": f"queue=$({squeue()}); rc=$?; printf '%s\\n' \"$queue\"; (exit $rc)",
        "sacct": f'{choose}\n[ "$rc_squeue" -ne 0 ] || [ -z "$ended" ] || {of_these}',
        "owner": "id -u",
    }


def said(session: Session, program: str, command: str) -> str:
    """What one of Slurm's programs says. Raises SlurmTrouble where it fails, and what `Session.run` raises."""
    answer = ask(session, {program: command})[program]
    if answer.exit_code != 0:
        raise slurm_trouble(program, answer)
    return answer.text


def ask(session: Session, commands: Mapping[str, str]) -> dict[str, Answer]:
    """The answers to several commands, in one call. Raises SlurmTrouble where none comes in time."""
    try:
        return run_batch(session, commands, _DEADLINE_S)
    except DeadlinePassed as late:
        raise silence("Slurm", "Its controller or its accounting (slurmdbd) hangs or is overloaded.") from late


def _join(queued: Job, ended: Job | None) -> Job:
    """The controller knows the present state first; who cancelled a job is in accounting."""
    if ended is None or not (queued.finished and ended.finished):
        return queued
    return replace(queued, exit_code=ended.exit_code, reason=ended.reason or queued.reason)


def _number(job: Job | OwnJob) -> int:
    """By which jobs are in the order of their submission."""
    return int(re.split(r"[_+]", job.id)[0])
