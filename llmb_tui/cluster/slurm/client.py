"""Questions to Slurm through its commands: jobs, partitions and version.

Each function is one remote call. If the controller hangs, each Slurm command waits for its own time limit (10 seconds,
more on large sites); so after a failed command no other one is run.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from llmb_tui.cluster.batch import NO_ANSWER, TOO_LONG, Answer, run_batch
from llmb_tui.cluster.failures import DeadlineError
from llmb_tui.cluster.job import ENDED_UNHEARD, LEFT_QUEUE, NO_ACCOUNTING, Job, OwnJob
from llmb_tui.cluster.link import LONGEST_ANSWER, answer_too_long
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.quoting import one_line, shell_join
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.accounting import parse_sacct, sacct, sacct_of_jobs, unless_it_hangs
from llmb_tui.cluster.slurm.errors import AccountingError, accounting_is_closed, silence, slurm_error
from llmb_tui.cluster.slurm.partition import SINFO_FORMAT, NodeGroup, Partition, parse_partitions, sinfo
from llmb_tui.cluster.slurm.queue import LIMIT_S, SEPARATOR, UNIX_TIMES, parse_squeue, rows, squeue, unix_time
from llmb_tui.language.redact import server_words
from llmb_tui.language.text import clean_line

Version = tuple[int, int]

SEGMENT_SINCE: Version = (24, 5)
"""First Slurm whose `sbatch` has `--segment`. Source: CHANGELOG/slurm-24.05.md."""
SRUN_OUTPUT_SINCE: Version = (23, 2)
"""First Slurm whose `srun` reads SRUN_OUTPUT and SRUN_ERROR. Source: RELEASE_NOTES of 23.02."""

_DEADLINE_S = 2.0 * LIMIT_S + 20.0
"""Deadline of a call that asks the queue, tests accounting, then asks accounting."""
ONE_DEADLINE_S = LIMIT_S + 5.0
ENDED_WITHIN_S = 8
"""Time limit for accounting of jobs that are given by id, seconds."""
_DAYS_BACK = 8
# The login node's memory is not for a program that prints without end: without the last line the output was cut.
_QUEUE = """\
queue=$({{ {squeue}; printf '\\n= %s' "$?"; }} | head -c {most})
if [ "${{#queue}}" -gt {almost} ]; then queue=''; fi  # dash takes seconds to search so much
end='
= '
case $queue in
    *"$end"[0-9]*) rc=${{queue##*"$end"}} queue=${{queue%"$end"*}} ;;
    *) rc={too_long} queue='' ;;
esac
printf '%s\\n' "$queue"
(exit "$rc")"""
# Columns of an `OwnJob`. The name is last, because it may contain anything.
OWN_QUEUED = "JobID SubmitTime WorkDir Command Name".split()
OWN_ENDED = "JobIDRaw Submit WorkDir JobName".split()


def find_jobs(session: Session, job_name: str) -> list[Job]:
    """Find the user's jobs with exactly this name: queued, running or ended within the last week, oldest first.

    Without accounting, an ended job is found only for some minutes. Raises AccountingError if accounting does not
    answer, SlurmError if Slurm fails, and the errors of `Session.run`.
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
    # A job in the queue is found even if accounting fails.
    queued = [job.id for job in parse_squeue(answers["squeue"].text) if job.name == job_name]
    jobs = read_jobs(answers, queued).values()
    return sorted((job for job in jobs if job.name == job_name), key=_number)


def own_jobs(session: Session, since: float) -> tuple[OwnJob, ...]:
    """Find the user's jobs that were submitted since a Unix time: queued, running or ended, sorted by number.

    Without accounting, an ended job is found only for some minutes. Raises AccountingError if accounting does not
    answer, SlurmError if Slurm fails, and the errors of `Session.run`.
    """
    day = (datetime.date.fromtimestamp(since) - datetime.timedelta(days=1)).isoformat()
    ended = f'{sacct("-S", day, columns=OWN_ENDED)} -u "$(id -u)"'
    commands = {
        "squeue": f"({squeue(OWN_QUEUED)})",
        "sacct": f'[ "$rc_squeue" -ne 0 ] || ({UNIX_TIMES}; {unless_it_hangs(ended)})',
    }
    answers = ask(session, commands)
    if answers["squeue"].exit_code != 0:
        raise slurm_error("squeue", answers["squeue"])
    if answers["sacct"].exit_code != 0 and not accounting_is_closed(answers["sacct"]):
        raise AccountingError(answers["sacct"], {})
    ended_jobs = parse_own_jobs(answers["sacct"].text, OWN_ENDED)
    queued_jobs = parse_own_jobs(answers["squeue"].text, OWN_QUEUED)
    jobs = {job.id: job for job in (*ended_jobs, *queued_jobs)}
    return tuple(sorted((job for job in jobs.values() if job.submitted_at >= since), key=_number))


def going_jobs(session: Session) -> tuple[Job, ...]:
    """List the user's waiting and running jobs. Raises SlurmError and the errors of `Session.run`."""
    return tuple(job for job in parse_squeue(run_program(session, "squeue", f"({squeue()})")) if not job.finished)


def partitions(session: Session) -> list[Partition]:
    """List all partitions that the user may see. Raises SlurmError and the errors of `Session.run`."""
    # The echo ends a line that the login shell may have begun.
    result = session.run_script(f"echo; {sinfo('-o', SINFO_FORMAT)}", deadline_s=ONE_DEADLINE_S, only_looks=True)
    if result.exit_code != 0:
        raise slurm_error("sinfo", Answer(result.exit_code, result.stderr))
    return parse_partitions(result.stdout)


def slurm_version(session: Session, prompter: Prompter | None = None) -> Version | None:
    """Read the version, year and month, of the login node's `sbatch`; None if it prints none.

    `prompter` answers questions of the login. Raises the errors of `Session.connect` and `Session.run`.
    """
    session.connect(prompter)
    return parse_version(
        session.retry_after_disconnect(lambda: session.run_script("sbatch --version", only_looks=True)).stdout
    )


def read_jobs(answers: Mapping[str, Answer], needed: Iterable[str] = ()) -> dict[str, Job]:
    """Parse the answers of `squeue` and `sacct` to jobs by id.

    A `needed` job that is not in the queue has the state LEFT_QUEUE if the user cannot query accounting.
    Raises SlurmError if squeue failed, AccountingError if accounting failed unless all `needed` ids are queued.
    """
    squeue, ended = answers["squeue"], answers["sacct"]
    if squeue.exit_code != 0:
        raise slurm_error("squeue", squeue)
    queued = {job.id: job for job in parse_squeue(squeue.text)}
    accounted: dict[str, Job] = {}
    if ended.exit_code == 0:
        uid = answers.get("owner", NO_ANSWER).text.strip()
        accounted = {
            job.id: job if job.finished else replace(job, reason=ENDED_UNHEARD) for job in parse_sacct(ended.text, uid)
        }
    elif accounting_is_closed(ended):
        accounted = {job_id: Job(job_id, "", LEFT_QUEUE, NO_ACCOUNTING) for job_id in needed}
    elif not (needed and all(job_id in queued for job_id in needed)):
        raise AccountingError(ended, queued)
    return {**accounted, **{job_id: _join(job, accounted.get(job_id)) for job_id, job in queued.items()}}


def parse_own_jobs(text: str, columns: Sequence[str]) -> list[OwnJob]:
    """Parse the output of squeue or sacct in the columns of `OwnJob`. Lines of another form are ignored."""
    jobs = []
    for cells in rows(text, columns):
        job_id, submitted_at, folder, *script, name = cells.values()
        moment = unix_time(submitted_at)
        if moment is not None:
            jobs.append(OwnJob(job_id, name.removesuffix(SEPARATOR), moment, folder, *script))
    return jobs


def parse_bad_nodes(text: str) -> tuple[str, ...]:
    """Parse broken nodes from the output of `sinfo`, each once: name, state and reason."""
    nodes = {}
    for line in text.split("\n"):
        name, _, rest = line.partition(SEPARATOR)
        state, separator, reason = rest.partition(SEPARATOR)
        if separator and not NodeGroup(1, state, ()).works:
            why = "" if reason == "none" else f": {server_words(reason)}"
            nodes[name] = f"{clean_line(name)} is {clean_line(state.rstrip('*'))}{why}"
    return tuple(nodes.values())


def parse_version(text: str) -> Version | None:
    """Parse year and month in `slurm 23.11.4` or `slurm-wlm 22.05.8`; other output may come before it."""
    match = re.search(r"\bslurm\S*\s+(\d{1,4})\.(\d{1,4})", text, re.ASCII | re.IGNORECASE)
    return (int(match[1]), int(match[2])) if match else None


def look_commands(job_ids: Sequence[str]) -> dict[str, str]:
    """Make snippets that ask the queue, then accounting for the jobs that neither wait nor run."""
    # One pass over the queue for any number of jobs. If awk fails, accounting is asked for all of them.
    choose = f"""\
ended=$({{ printf '%s\\n' {shell_join(job_ids)} ''; printf '%s\\n' "$queue"; }} | awk -F '{SEPARATOR}' '
!asked {{ if ($0 == "") asked = count; else ids[++count] = $0; next }}
NF > 2 && ($2 == "PENDING" || $2 == "RUNNING") {{ goes_on[$1] = 1 }}
END {{ for (at = 1; at <= count; at++) if (!(ids[at] in goes_on)) {{ printf "%s%s", comma, ids[at]; comma = "," }} }}
') || ended={shell_join([",".join(job_ids)])}"""
    of_these = sacct_of_jobs(sacct(limit_s=ENDED_WITHIN_S), '"$ended"')
    return {
        "squeue": _QUEUE.format(squeue=squeue(), most=LONGEST_ANSWER, almost=LONGEST_ANSWER - 4096, too_long=TOO_LONG),
        "sacct": f'{choose}\n[ "$rc_squeue" -ne 0 ] || [ -z "$ended" ] || {{ {of_these}; }}',
        "owner": "id -u",
    }


def run_program(session: Session, program: str, command: str) -> str:
    """Run one of Slurm's programs, and return its output. Raises SlurmError and the errors of `Session.run`."""
    answer = ask(session, {program: command})[program]
    if answer.exit_code != 0:
        raise slurm_error(program, answer)
    return answer.text


def ask(session: Session, commands: Mapping[str, str]) -> dict[str, Answer]:
    """Run several commands in one call.

    Raises SlurmError if no answer comes in time, AnswerTooLongError for a program that prints without end.
    """
    try:
        answers = run_batch(session, commands, _DEADLINE_S)
    except DeadlineError as late:
        raise silence("Slurm") from late
    for program, answer in answers.items():
        if answer.exit_code == TOO_LONG:
            raise answer_too_long([program], session.profile.host)
    return answers


def _join(queued: Job, ended: Job | None) -> Job:
    """Join both records: the controller has the newest state, accounting has the user who cancelled."""
    if ended is None or not (queued.finished and ended.finished):
        return queued
    return replace(queued, exit_code=ended.exit_code, reason=ended.reason or queued.reason)


def _number(job: Job | OwnJob) -> int:
    """Sort key that orders jobs by their submission."""
    return int(re.split(r"[_+]", job.id)[0])
