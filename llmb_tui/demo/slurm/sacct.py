"""`sacct`: every job there ever was, from accounting."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llmb_tui.demo.slurm import facts, times
from llmb_tui.demo.slurm.job import ALL_STATES, CANCELLED, PENDING, SHORT_STATES, TIMEOUT, Job, Step
from llmb_tui.demo.slurm.options import Parsed, Parser, Refusal
from llmb_tui.demo.slurm.store import Store

OPTIONS = (
    "allusers/a accounts=/A allocations/X brief/b delimiter= duplicates/D endtime=/E format=/o helpformat/e jobs=/j "
    "allclusters/L name= noheader/n parsable/p parsable2/P partition=/r starttime=/S state=/s uid=/u user= "
    "version/V units= long/l"
)
DEFAULT_FORMAT = "jobid,jobname,partition,account,alloccpus,state,exitcode"


@dataclass(frozen=True)
class Entry:
    """One line of accounting: a job, or one of its steps."""

    job: Job
    step: Step | None = None

    @property
    def id(self) -> str:
        """`48` or `48.batch`."""
        return f"{self.job.id}.{self.step.id}" if self.step else str(self.job.id)

    @property
    def state(self) -> str:
        """The state; of a cancelled job it names who cancelled it."""
        if self.step:
            return self.step.state
        cancelled = self.job.state == CANCELLED and self.job.cancelled_by is not None
        return f"{CANCELLED} by {self.job.cancelled_by}" if cancelled else self.job.state

    @property
    def exit_code(self) -> str:
        """`code:signal`; a job that was ended from outside has 0:0, its batch step the signal."""
        part: Job | Step = self.step or self.job
        if not self.step and self.job.state in (CANCELLED, TIMEOUT):
            return "0:0"
        return f"{part.exit_code}:{part.signal}"

    @property
    def seconds(self) -> float:
        """Run time on the job's clock."""
        if self.step is None:
            return self.job.elapsed()
        return max(0.0, (self.job.now() if self.step.ended is None else self.step.ended) - self.step.started)


def _moment(moment: float | None) -> str:
    return "Unknown" if moment is None else times.stamp(moment)


def _start(entry: Entry) -> str:
    return _moment(entry.step.started if entry.step else entry.job.started)


def _end(entry: Entry) -> str:
    return _moment(entry.step.ended if entry.step else entry.job.ended)


def _nodes(entry: Entry) -> str:
    return entry.job.node_list or "None assigned"


def _cpus(entry: Entry) -> str:
    return str(entry.step.nodes * facts.CPUS_PER_NODE if entry.step else entry.job.cpus)


def _job_only(value: Callable[[Job], str]) -> Callable[[Entry], str]:
    return lambda entry: "" if entry.step else value(entry.job)


FIELDS: dict[str, tuple[str, int, Callable[[Entry], str]]] = {
    "jobid": ("JobID", -12, lambda entry: entry.id),
    "jobidraw": ("JobIDRaw", -12, lambda entry: entry.id),
    "jobname": ("JobName", 10, lambda entry: entry.step.name if entry.step else entry.job.name),
    "partition": ("Partition", 10, _job_only(lambda job: job.partition)),
    "account": ("Account", 10, lambda entry: entry.job.account),
    "user": ("User", 9, _job_only(lambda job: job.user)),
    "uid": ("UID", 6, _job_only(lambda job: str(job.uid))),
    "cluster": ("Cluster", 10, lambda _: facts.CLUSTER),
    "qos": ("QOS", 10, _job_only(lambda _: facts.QOS)),
    "state": ("State", 10, lambda entry: entry.state),
    "exitcode": ("ExitCode", 8, lambda entry: entry.exit_code),
    "derivedexitcode": ("DerivedExitCode", 15, _job_only(lambda _: "0:0")),
    "elapsed": ("Elapsed", 10, lambda entry: times.full(entry.seconds)),
    "elapsedraw": ("ElapsedRaw", 10, lambda entry: str(int(entry.seconds))),
    "submit": ("Submit", 19, lambda entry: times.stamp(entry.step.started if entry.step else entry.job.created)),
    "eligible": ("Eligible", 19, lambda entry: times.stamp(entry.job.created)),
    "start": ("Start", 19, _start),
    "end": ("End", 19, _end),
    "timelimit": ("Timelimit", 10, _job_only(lambda job: times.full(job.minutes * 60))),
    "timelimitraw": ("TimelimitRaw", 12, _job_only(lambda job: str(job.minutes))),
    "nnodes": ("NNodes", 8, lambda entry: str(entry.step.nodes if entry.step else entry.job.nodes)),
    "reqnodes": ("ReqNodes", 8, lambda entry: str(entry.job.nodes)),
    "nodelist": ("NodeList", 15, _nodes),
    "ntasks": ("NTasks", 8, lambda entry: str(entry.step.tasks) if entry.step else ""),
    "ncpus": ("NCPUS", 10, _cpus),
    "alloccpus": ("AllocCPUS", 10, _cpus),
    "alloctres": ("AllocTRES", 10, lambda entry: entry.job.tres if entry.job.node_names else ""),
    "reqtres": ("ReqTRES", 10, _job_only(lambda job: job.tres)),
    "reason": ("Reason", 22, _job_only(lambda job: "None" if job.state == PENDING else job.reason)),
    "workdir": ("WorkDir", 20, _job_only(lambda job: job.work_dir)),
    "submitline": ("SubmitLine", 20, _job_only(lambda job: job.submit_line)),
    "comment": ("Comment", 14, lambda _: ""),
}


def main(store: Store, arguments: list[str]) -> int:
    """Run `sacct`."""
    asked = Parser("sacct", OPTIONS, hint=False).parse(arguments)
    if "version" in asked:
        sys.stdout.write(f"slurm {facts.VERSION}\n")
        return 0
    if "helpformat" in asked:
        names = [f"{title:<20}" for title, _, _ in FIELDS.values()]
        lines = ["".join(names[start : start + 4]) for start in range(0, len(names), 4)]
        sys.stdout.write("\n".join(lines) + "\n")
        return 0
    if store.fault("no-accounting") is not None:
        raise Refusal("Slurm accounting storage is disabled")
    columns = _columns(asked.get("format", DEFAULT_FORMAT))
    _print(asked, columns, _chosen(store, asked))
    return 0


def _columns(names: str) -> list[tuple[str, int, Callable[[Entry], str]]]:
    columns = []
    for word in names.split(","):
        name, percent, width = word.partition("%")
        if name.lower() not in FIELDS:
            raise Refusal(f'sacct: error: Invalid field requested: "{name}"')
        title, usual, value = FIELDS[name.lower()]
        columns.append((title, int(width) if percent else usual, value))
    return columns


def _print(asked: Parsed, columns: Sequence[tuple[str, int, Callable[[Entry], str]]], entries: Sequence[Entry]) -> None:
    if "parsable" in asked or "parsable2" in asked:
        mark = asked.get("delimiter", "|")
        end = mark if "parsable" in asked else ""
        lines = [] if "noheader" in asked else [mark.join(title for title, _, _ in columns) + end]
        lines += [mark.join(value(entry) for _, _, value in columns) + end for entry in entries]
    else:
        lines = []
        if "noheader" not in asked:
            lines.append("".join(_padded(title, width) for title, width, _ in columns))
            lines.append(" ".join("-" * abs(width) for _, width, _ in columns) + " ")
        lines += ["".join(_padded(value(entry), width) for _, width, value in columns) for entry in entries]
    sys.stdout.write("".join(f"{text}\n" for text in lines))


def _padded(text: str, width: int) -> str:
    if len(text) > abs(width):
        text = text[: abs(width) - 1] + "+"
    return (text.ljust(-width) if width < 0 else text.rjust(width)) + " "


def _chosen(store: Store, asked: Parsed) -> list[Entry]:
    jobs = store.all()
    if "user" in asked or "uid" in asked:
        wanted = set((asked.get("user") or asked.get("uid")).split(","))
        unknown = sorted(wanted - {str(store.settings["user"]), str(os.getuid())})
        if unknown:
            raise Refusal(f"sacct: error: Invalid user id: {unknown[0]}")
        jobs = [job for job in jobs if {job.user, str(job.uid)} & wanted]
    if "accounts" in asked:
        jobs = [job for job in jobs if job.account in asked.get("accounts").split(",")]
    if "partition" in asked:
        jobs = [job for job in jobs if job.partition in asked.get("partition").split(",")]
    if "name" in asked:
        jobs = [job for job in jobs if job.name in asked.get("name").split(",")]
    begin, end = _window(asked)
    jobs = [job for job in jobs if job.created <= end and (job.ended is None or job.ended >= begin)]
    entries = [entry for job in jobs for entry in _lines(job, steps="allocations" not in asked)]
    if "jobs" in asked:
        wanted = set(asked.get("jobs").split(","))
        entries = [entry for entry in entries if {entry.id, str(entry.job.id)} & wanted]
    if "state" in asked:
        letters = {short: state for state, short in SHORT_STATES.items()}
        states = {letters.get(word, word) for word in asked.get("state").upper().split(",")}
        if not states <= set(ALL_STATES.split(",")):
            raise Refusal(f"sacct: fatal: unrecognized job state value '{asked.get('state')}'")
        entries = [entry for entry in entries if entry.state.split()[0] in states]
    return entries


def _lines(job: Job, *, steps: bool) -> list[Entry]:
    return [Entry(job), *(Entry(job, step) for step in job.steps if steps)]


def _window(asked: Parsed) -> tuple[float, float]:
    """The moments of -S and -E. Without -S the window begins at midnight, with -j ever. Raises Refusal."""
    begin = asked.get("starttime", "1970-01-01" if "jobs" in asked else "midnight")
    now = time.time()
    try:
        return times.parse_moment(begin, now), times.parse_moment(asked.get("endtime", "now"), now)
    except ValueError as error:
        raise Refusal(f"Invalid time specification (pos=0): {error}") from error
