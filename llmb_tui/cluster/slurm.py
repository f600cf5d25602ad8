"""Slurm through its commands, in text formats that versions 20.11 to 26.05 have in common.

`--json` changes its shape from version to version, and accounting may be switched off; neither is relied upon.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from llmb_tui.cluster.batch import Answer, run_batch
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.partition import SINFO_FORMAT, Partition, parse_count, parse_partitions, parse_time
from llmb_tui.cluster.quoting import one_line, shell_join
from llmb_tui.cluster.session import Session
from llmb_tui.errors import Trouble
from llmb_tui.text import clean, clean_line

# Slurm's clients give up on a hung controller by themselves after 10 seconds each.
_DEADLINE_S = 45.0
_DAYS_BACK = 8

# Columns of fixed width: -o cannot print the number of restarts.
_SQUEUE_COLUMNS = (
    ("JobArrayID", 24),
    ("State", 24),
    ("Reason", 160),
    ("NumNodes", 12),
    ("TimeUsed", 20),
    ("RestartCnt", 12),
    ("Name", 512),
)
# Without -j it answers for all jobs, with one unknown id it fails; this asks for the user's own jobs only.
SQUEUE = 'squeue -h -t all -u "$(id -un)" ' + shell_join(
    ["-O", ",".join(f"{name}:{width}" for name, width in _SQUEUE_COLUMNS)]
)
# The name comes last: it may hold the separator.
SACCT = ["sacct", "-X", "-n", "-P", "-o", "JobID,State,ExitCode,NNodes,ElapsedRaw,JobName"]

_JOB_ID = re.compile(r"\d+(?:[_+]\d+)?")
_ACCOUNTING_OFF = re.compile(
    r"accounting storage is disabled|not running a supported accounting_storage", re.IGNORECASE
)
_ALREADY_ENDED = re.compile(r"already completing or completed|Invalid job id specified", re.IGNORECASE)

_WAITS_FOR = {
    "None": "Slurm has not looked at it yet.",
    "Priority": "Other jobs are before it in the queue.",
    "Resources": "It is next, and waits until enough nodes are free.",
    "Dependency": "It waits for another job.",
    "DependencyNeverSatisfied": "The job that it waits for has failed; it will never start.",
    "BeginTime": "Its start time has not come, for example after a requeue.",
    "JobHeldUser": "It is held by its owner: `scontrol release` lets it go.",
    "JobHeldAdmin": "It is held by an administrator.",
    "PartitionDown": "The partition is down.",
    "PartitionInactive": "The partition takes no jobs at the moment.",
    "PartitionNodeLimit": "It asks for more nodes than the partition allows.",
    "PartitionTimeLimit": "It asks for more time than the partition allows.",
    "PartitionConfig": "It asks for something that the partition does not allow.",
    "ReqNodeNotAvail": "A node that it needs is down, drained or reserved, often for maintenance.",
    "Reservation": "It waits for its reservation.",
    "NodeDown": "A node that it needs is down.",
    "BadConstraints": "No node can ever satisfy it.",
    "Licenses": "It waits for a licence.",
    "InvalidAccount": "Its account is not valid.",
    "InvalidQOS": "Its QOS is not valid.",
    "QOSNotAllowed": "Its QOS may not be used with this account or partition.",
    "JobArrayTaskLimit": "Enough tasks of its array are running.",
    "Cleaning": "It was requeued and its nodes are still being cleaned up.",
    "Prolog": "Its nodes are being prepared.",
    "launch failed requeued held": "Its start failed; it is held until `scontrol release`.",
}
# Associations and QOS have some eighty such reasons, made of the same words.
_WAITS_FOR_PATTERNS = (
    (re.compile(r"Nodes required for job are DOWN.*"), "Nodes that it needs are down, drained or reserved."),
    (re.compile(r"(?:Assoc|QOS).*Minutes.*"), "The account or its QOS has used up its GPU or CPU time."),
    (re.compile(r"(?:Assoc|QOS).*(?:Jobs|SubmitJob).*"), "As many of its owner's jobs are running as are allowed."),
    (re.compile(r"(?:Assoc|QOS).*(?:GRES|TRES|Gpu).*"), "The account or its QOS has all its GPUs in use."),
    (re.compile(r"(?:Assoc|QOS).*Node.*"), "The account or its QOS has all its nodes in use."),
    (re.compile(r"(?:Assoc|QOS).*Wall.*"), "It asks for more time than the account or its QOS allows."),
    (re.compile(r"(?:Assoc|QOS).*"), "The account or its QOS has reached a limit."),
)


class SlurmTrouble(Trouble):
    """Slurm did not answer, or refused. It says nothing about any job."""


def look(session: Session, job_ids: Sequence[str]) -> dict[str, Job]:
    """What Slurm knows of these jobs of the user, by id; a job that it does not know is absent.

    One remote call. Raises SlurmTrouble when Slurm cannot say, and what `Session.run` raises.
    """
    if not job_ids:
        return {}
    for job_id in job_ids:
        _check_id(job_id)
    shown = f'for id in {shell_join(job_ids)}; do scontrol show job "$id"; done'
    commands = {
        "squeue": SQUEUE,
        "sacct": shell_join([*SACCT, "-j", ",".join(job_ids)]),
        # Without accounting the controller remembers an ended job for some minutes.
        "scontrol": f'[ "$rc_squeue" -ne 0 ] || [ "$rc_sacct" -eq 0 ] || {shown}',
    }
    jobs = read_jobs(run_batch(session, commands, _DEADLINE_S), job_ids)
    return {job_id: jobs[job_id] for job_id in job_ids if job_id in jobs}


def find_jobs(session: Session, job_name: str) -> list[Job]:
    """The user's jobs with exactly this name, queued, running or ended within the last week, oldest first.

    Without accounting an ended job is found for some minutes only. Raises as `look` does.
    """
    one_line(job_name, "the job name")
    since = (datetime.date.today() - datetime.timedelta(days=_DAYS_BACK)).isoformat()
    sacct = shell_join([*SACCT, "-S", since, f"--name={job_name}"])
    commands = {"squeue": SQUEUE, "sacct": f'{sacct} -u "$(id -un)"'}
    jobs = read_jobs(run_batch(session, commands, _DEADLINE_S)).values()
    return sorted((job for job in jobs if job.name == job_name), key=lambda job: int(_digits(job.id)))


def cancel(session: Session, job_id: str) -> None:
    """Cancel a job; one that has ended is left as it is.

    Raises SlurmTrouble when Slurm refuses, and what `Session.run` raises.
    """
    _check_id(job_id)
    done = session.run(["scancel", job_id], deadline_s=_DEADLINE_S)
    if done.exit_code != 0 and not _ALREADY_ENDED.search(done.stderr):
        raise slurm_trouble("scancel", Answer(done.exit_code, done.stderr))


def partitions(session: Session) -> list[Partition]:
    """All partitions that the user may see. Raises SlurmTrouble, and what `Session.run` raises."""
    done = session.run(["sinfo", "-h", "-o", SINFO_FORMAT], deadline_s=_DEADLINE_S)
    if done.exit_code != 0:
        raise slurm_trouble("sinfo", Answer(done.exit_code, done.stderr))
    return parse_partitions(done.stdout)


ACCOUNTS = 'sacctmgr -nP show assoc user="$(id -un)" format=account'


def accounts(session: Session) -> list[str]:
    """The user's Slurm accounts; none where accounting is off. Raises SlurmTrouble, and as `Session.run`."""
    answer = run_batch(session, {"accounts": ACCOUNTS}, _DEADLINE_S)["accounts"]
    if answer.exit_code != 0 and not accounting_is_off(answer):
        raise slurm_trouble("sacctmgr", answer)
    return parse_accounts(answer)


def pending_reason(reason: str) -> str:
    """Slurm's reason for waiting in plain words; Slurm's own, clean, where there are none."""
    word = reason.strip().strip("()")
    for name in (word, re.split(r"[,:]", word)[0]):
        if name in _WAITS_FOR:
            return _WAITS_FOR[name]
    for pattern, words in _WAITS_FOR_PATTERNS:
        if pattern.fullmatch(word):
            return words
    return clean_line(word)


def read_jobs(answers: Mapping[str, Answer], needed: Iterable[str] = ()) -> dict[str, Job]:
    """All jobs in the answers of `squeue`, `sacct` and, where accounting is off, `scontrol`.

    Raises SlurmTrouble when squeue failed, or when accounting failed and one of the `needed` ids is in no answer.
    """
    squeue, sacct = answers["squeue"], answers["sacct"]
    if squeue.exit_code != 0:
        raise slurm_trouble("squeue", squeue)
    queued = {job.id: job for job in parse_squeue(squeue.text)}
    if sacct.exit_code == 0:
        ended = {job.id: job for job in parse_sacct(sacct.text)}
    elif accounting_is_off(sacct):
        ended = {job.id: job for job in parse_scontrol(answers["scontrol"].text)} if "scontrol" in answers else {}
    elif needed and all(job_id in queued for job_id in needed):
        ended = {}
    else:
        raise slurm_trouble("sacct", sacct)
    return {**ended, **{job_id: _joined(job, ended.get(job_id)) for job_id, job in queued.items()}}


def _joined(queued: Job, ended: Job | None) -> Job:
    """The controller knows the present state first; how a job ended is in accounting."""
    if ended is None or not (queued.finished and ended.finished):
        return queued
    return replace(queued, exit_code=ended.exit_code, reason=ended.reason or queued.reason)


def parse_squeue(text: str) -> list[Job]:
    """Jobs from the output of `SQUEUE`."""
    jobs = []
    for line in text.splitlines():
        cells, start = {}, 0
        for name, width in _SQUEUE_COLUMNS:
            cells[name] = line[start : start + width].strip()
            start += width
        state = _first_word(cells["State"])
        if _JOB_ID.fullmatch(cells["JobArrayID"]) and state.isupper():
            jobs.append(
                Job(
                    id=cells["JobArrayID"],
                    name=cells["Name"],
                    state=state,
                    reason=_reason(state, cells["Reason"]),
                    nodes=parse_count(cells["NumNodes"]),
                    elapsed_s=parse_time(cells["TimeUsed"]),
                    restarts=parse_count(cells["RestartCnt"]) or 0,
                )
            )
    return jobs


def parse_sacct(text: str) -> list[Job]:
    """Jobs from the output of `SACCT`."""
    jobs = []
    for line in text.splitlines():
        cells = line.split("|", 5)
        if len(cells) == 6 and _JOB_ID.fullmatch(cells[0]):
            job_id, state, exit_code, nodes, elapsed, name = cells
            job = Job(
                id=job_id,
                name=name,
                state=_first_word(state),
                reason=state if " " in state else "",  # CANCELLED by 1000
                nodes=parse_count(nodes),
                elapsed_s=parse_time(elapsed),
            )
            jobs.append(replace(job, exit_code=exit_code) if job.finished else job)
    return jobs


def parse_scontrol(text: str) -> list[Job]:
    """Jobs from the output of `scontrol show job`."""
    jobs = []
    for record in re.split(r"(?m)^(?=JobId=)", text):
        head = re.match(r"JobId=(\d+) (?:\S+ )*?JobName=(.*)", record)
        if head is None:
            continue
        values = dict(re.findall(r"(?<=\s)(JobState|Reason|Restarts|NumNodes|RunTime|ExitCode)=(\S*)", record))
        state = values.get("JobState", "")
        job = Job(
            id=head[1],
            name=head[2],
            state=state,
            reason=_reason(state, values.get("Reason", "")),
            nodes=parse_count(values.get("NumNodes", "")),
            elapsed_s=parse_time(values.get("RunTime", "")),
            restarts=parse_count(values.get("Restarts", "")) or 0,
        )
        jobs.append(replace(job, exit_code=values.get("ExitCode")) if job.finished else job)
    return jobs


def parse_accounts(answer: Answer) -> list[str]:
    """Account names from the answer to `ACCOUNTS`, each once; none when it failed."""
    names = answer.text.split() if answer.exit_code == 0 else []
    return list(dict.fromkeys(names))


def accounting_is_off(answer: Answer) -> bool:
    """True when a command failed because this cluster keeps no accounts."""
    return answer.exit_code != 0 and _ACCOUNTING_OFF.search(answer.text) is not None


def slurm_trouble(command: str, answer: Answer) -> SlurmTrouble:
    """Why a Slurm command failed, in three parts."""
    said = clean(answer.text.strip()) or f"It ended with exit code {answer.exit_code} and no message."
    if answer.exit_code == 127:
        fix = (
            "Make Slurm's commands known to non-interactive shells, for example with `module load slurm` in ~/.bashrc."
        )
    elif re.search(r"Socket timed out|Unable to contact slurm", answer.text):
        fix = "Slurm's controller hangs or is down: running jobs go on. Wait, or ask the cluster's administrators."
    else:
        fix = f"Run `{command}` on the login node to see more."
    return SlurmTrouble(f"`{command}` failed on the cluster.", said, fix)


def _check_id(job_id: str) -> None:
    if not _JOB_ID.fullmatch(job_id):
        raise Trouble(f"{clean_line(job_id)!r} is no Slurm job id.", "", "Job ids are numbers.", exit_code=1)


def _digits(job_id: str) -> str:
    return re.split(r"[_+]", job_id)[0]


def _first_word(state: str) -> str:
    return state.split(maxsplit=1)[0] if state.split() else ""


def _reason(state: str, reason: str) -> str:
    """The controller's reason; of a cancelled job it is the one for which it had waited before."""
    return "" if reason == "None" or state == "CANCELLED" else reason
