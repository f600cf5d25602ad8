"""`squeue` and `scancel`, for the jobs that the controller knows."""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Callable

from llmb_tui.demo.slurm import notation
from llmb_tui.demo.slurm.job import CANCELLED, COMPLETING, PENDING, RUNNING, DemoJob
from llmb_tui.demo.slurm.options import Parser, RefusedError, not_offered
from llmb_tui.demo.slurm.store import Store


def _start(job: DemoJob) -> str:
    """Start time; for a waiting job the expected start, unless that has passed."""
    expected = job.eligible if job.eligible > job.now() else None
    moment = expected if job.started is None else job.started
    return "N/A" if moment is None else notation.stamp(moment)


FIELDS: dict[str, Callable[[DemoJob], str]] = {
    "Command": lambda job: job.command,
    "JobArrayID": lambda job: str(job.id),
    "JobID": lambda job: str(job.id),
    "Name": lambda job: job.name,
    "NodeList": lambda job: job.node_list,
    "NumNodes": lambda job: str(job.nodes),
    "Reason": lambda job: job.reason,
    "RestartCnt": lambda _: "0",
    "StartTime": _start,
    "State": lambda job: job.shown_state,
    "SubmitTime": lambda job: notation.stamp(job.created),
    "TimeUsed": lambda job: notation.short(job.elapsed()),
    "WorkDir": lambda job: job.work_dir,
    "exit_code": lambda job: str(job.exit_code << 8 | job.signal),
}
LETTERS = {"A": "JobID", "i": "JobID", "r": "Reason", "S": "StartTime"}


def squeue(store: Store, arguments: list[str]) -> int:
    """Run `squeue`."""
    args = squeue_options(str(store.settings["user"])).parse(arguments)
    columns = _columns(args)
    for job in _chosen(store, args):
        sys.stdout.write("".join(f"{FIELDS[name](job)}{suffix}" for name, suffix in columns) + "\n")
    return 0


def scancel(store: Store, arguments: list[str]) -> int:
    """Run `scancel`. Unknown and finished jobs are ignored without a message."""
    job_id = Parser("scancel", numbers="job").parse(arguments).job
    if any(job.id == job_id for job in store.remembered()):
        cancel(store, job_id)
    return 0


def cancel(store: Store, job_id: int) -> None:
    """Request the end of a job; its own process does the rest."""
    with store.change(job_id) as job:
        if job.state in (PENDING, RUNNING) and not job.completing:
            job.cancelled_by = os.getuid()
            job.completing = job.state == RUNNING
            job.state = CANCELLED
            if not job.completing:
                job.close()


def squeue_options(user: str) -> Parser:
    """Options of `squeue`: always without a heading and with columns."""
    parser = Parser("squeue", "-n", "--me -a", "-j")
    parser.add_argument("-t", choices=["all", "PENDING,CONFIGURING,RUNNING,SUSPENDED"])
    parser.add_argument("-h", action="store_true", required=True)
    parser.add_argument("-u", choices=[user])
    columns = parser.add_mutually_exclusive_group(required=True)
    columns.add_argument("-o")
    columns.add_argument("-O")
    return parser


def _columns(args: Namespace) -> list[tuple[str, str]]:
    """Fields and separators of a pattern such as `%r|%S` or a list such as `JobID:|,Name:|`."""
    if args.o:
        columns = [(LETTERS.get(letter, f"%{letter}"), suffix) for letter, suffix in re.findall(r"%(.)([^%]*)", args.o)]
    else:
        columns = [(name, suffix) for name, _, suffix in (word.partition(":") for word in args.O.split(","))]
    if unknown := [name for name, _ in columns if name not in FIELDS]:
        raise not_offered("squeue", f"column {unknown[0]}")
    return columns


def _chosen(store: Store, args: Namespace) -> list[DemoJob]:
    jobs = [job for job in store.remembered() if args.j in (None, job.id)]
    if args.j and not jobs:
        raise RefusedError("slurm_load_jobs error: Invalid job id specified")
    states = {*(args.t or f"{PENDING},{RUNNING},{COMPLETING}").split(",")}
    return [job for job in jobs if states & {"all", job.shown_state} and args.n in (None, job.name)]
