"""`squeue`: jobs that the controller knows."""

from __future__ import annotations

import sys

from llmb_tui.demo.slurm import facts, times
from llmb_tui.demo.slurm.columns import Column, Field, header, line, long_columns, percent_columns
from llmb_tui.demo.slurm.job import ALL_STATES, COMPLETING, PENDING, RUNNING, SHORT_STATES, Job
from llmb_tui.demo.slurm.options import Parsed, Parser, Refusal
from llmb_tui.demo.slurm.store import Store

OPTIONS = (
    "account=/A all/a noheader/h jobs~/j long/l me name=/n noconvert format=/o Format=/O partition=/p qos=/q array/r "
    "sort=/S start states=/t user=/u verbose/v version/V"
)
DEFAULT_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
LONG_FORMAT = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
START_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"


def _start(job: Job) -> str:
    """When it started; while it waits, when the scheduler expects to start it, unless that has passed."""
    expected = job.eligible if job.eligible > job.now() else None
    moment = expected if job.started is None else job.started
    return "N/A" if moment is None else times.stamp(moment)


def _end(job: Job) -> str:
    if job.started is None:
        return "N/A"
    return times.stamp(job.started + job.minutes * 60 if job.ended is None else job.ended)


def _where(job: Job) -> str:
    """Nodes of a running job; of any other the reason, in brackets."""
    waits_or_failed = job.state == PENDING or (not job.active and job.reason != "None")
    return f"({job.reason})" if waits_or_failed else job.node_list


def _gres(job: Job) -> str:
    return f"gres:gpu:{job.gpus_per_node}" if job.gpus_per_node else "N/A"


FIELDS: tuple[Field[Job], ...] = (
    Field("i", "jobid", "JOBID", lambda job: str(job.id)),
    Field("A", "jobarrayid", "JOBID", lambda job: str(job.id)),
    Field("F", "arrayjobid", "ARRAY_JOB_ID", lambda job: str(job.id)),
    Field("K", "arraytaskid", "ARRAY_TASK_ID", lambda _: "N/A"),
    Field("j", "name", "NAME", lambda job: job.name),
    Field("T", "state", "STATE", lambda job: job.shown_state),
    Field("t", "statecompact", "ST", lambda job: SHORT_STATES[job.shown_state]),
    Field("r", "reason", "REASON", lambda job: job.reason),
    Field("R", "reasonlist", "NODELIST(REASON)", _where),
    Field("N", "nodelist", "NODELIST", lambda job: job.node_list),
    Field("Y", "schednodes", "SCHEDNODES", lambda _: "(null)"),
    Field("B", "batchhost", "EXEC_HOST", lambda job: (job.node_names or ["n/a"])[0]),
    Field("M", "timeused", "TIME", lambda job: times.short(job.elapsed())),
    Field("l", "timelimit", "TIME_LIMIT", lambda job: times.short(job.minutes * 60)),
    Field("L", "timeleft", "TIME_LEFT", lambda job: times.short(job.minutes * 60 - job.elapsed())),
    Field("V", "submittime", "SUBMIT_TIME", lambda job: times.stamp(job.created)),
    Field("S", "starttime", "START_TIME", _start),
    Field("e", "endtime", "END_TIME", _end),
    Field("D", "numnodes", "NODES", lambda job: str(job.nodes)),
    Field("C", "numcpus", "CPUS", lambda job: str(job.cpus)),
    Field("", "numtasks", "TASKS", lambda job: str(job.tasks)),
    Field("b", "tres-per-node", "TRES_PER_NODE", _gres),
    Field("", "tres-alloc", "TRES_ALLOC", lambda job: job.tres if job.node_names else "N/A"),
    Field("u", "username", "USER", lambda job: job.user),
    Field("U", "userid", "UID", lambda job: str(job.uid)),
    Field("a", "account", "ACCOUNT", lambda job: job.account),
    Field("P", "partition", "PARTITION", lambda job: job.partition),
    Field("q", "qos", "QOS", lambda _: facts.QOS),
    Field("Q", "prioritylong", "PRIORITY", lambda job: str(4294901760 - job.id)),
    Field("y", "nice", "NICE", lambda _: "0"),
    Field("E", "dependency", "DEPENDENCY", lambda _: "(null)"),
    Field("k", "comment", "COMMENT", lambda _: "(null)"),
    Field("Z", "workdir", "WORK_DIR", lambda job: job.work_dir),
    Field("o", "command", "COMMAND", lambda job: job.command),
    Field("", "exit_code", "EXIT_CODE", lambda job: str(job.exit_code << 8 | job.signal)),
    Field("", "restartcnt", "RESTART_COUNT", lambda job: str(job.restarts)),
)


def main(store: Store, arguments: list[str]) -> int:
    """Run `squeue`."""
    asked = Parser("squeue", OPTIONS).parse(arguments)
    if "version" in asked:
        sys.stdout.write(f"slurm {facts.VERSION}\n")
        return 0
    columns = _columns(asked)
    jobs = _chosen(store, asked)
    if "noheader" not in asked:
        sys.stdout.write(header(columns) + "\n")
    for job in jobs:
        sys.stdout.write(line(columns, job) + "\n")
    return 0


def _columns(asked: Parsed) -> list[Column[Job]]:
    if "Format" in asked:
        columns, unknown = long_columns(asked.get("Format"), FIELDS)
    else:
        usual = START_FORMAT if "start" in asked else LONG_FORMAT if "long" in asked else DEFAULT_FORMAT
        columns, unknown = percent_columns(asked.get("format", usual), FIELDS)
    for word in unknown:
        sys.stderr.write(f"squeue: error: Invalid job format specification: {word}\n")
    return columns


def _chosen(store: Store, asked: Parsed) -> list[Job]:
    known = {job.id: job for job in store.remembered()}
    jobs = list(known.values())
    if asked.get("jobs"):
        numbers = [_job_number(word) for word in asked.get("jobs").split(",")]
        if len(numbers) == 1 and numbers[0] not in known:
            raise Refusal("slurm_load_jobs error: Invalid job id specified")
        jobs = [known[number] for number in numbers if number in known]
    states = _states(asked)
    jobs = [job for job in jobs if job.shown_state in states]
    if "user" in asked:
        users = _users(store, asked)
        jobs = [job for job in jobs if job.user in users]
    if "account" in asked:
        jobs = [job for job in jobs if job.account in asked.get("account").split(",")]
    if "partition" in asked:
        jobs = [job for job in jobs if job.partition in asked.get("partition").split(",")]
    if "name" in asked:
        jobs = [job for job in jobs if job.name in asked.get("name").split(",")]
    if "start" in asked:
        jobs = [job for job in jobs if job.state == PENDING]
    return sorted(jobs, key=lambda job: (job.partition, job.state != PENDING, job.id))


def _users(store: Store, asked: Parsed) -> list[str]:
    names = asked.get("user").split(",")
    for name in names:
        if name != store.settings["user"]:
            sys.stderr.write(f"squeue: error: Invalid user: {name}\n")
    return names


def _job_number(word: str) -> int:
    if not word.isdigit():
        raise Refusal(f"squeue: error: Invalid job id: {word}")
    return int(word)


def _states(asked: Parsed) -> set[str]:
    if "states" not in asked:
        return {PENDING, RUNNING, COMPLETING}
    valid = set(ALL_STATES.split(","))
    by_letters = {letters: state for state, letters in SHORT_STATES.items()}
    states: set[str] = set()
    for word in asked.get("states").upper().split(","):
        if word == "ALL":
            return valid
        if by_letters.get(word, word) not in valid:
            raise Refusal(
                f"squeue: error: Invalid job state specified: {word}\n"
                f"squeue: error: Valid job states include: {ALL_STATES}\n"
            )
        states.add(by_letters.get(word, word))
    return states
