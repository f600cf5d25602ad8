"""`sacct`: all jobs ever submitted, without their steps; `sacctmgr`: one association, and a QOS without limits."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable

from llmb_tui.demo.slurm import facts, notation
from llmb_tui.demo.slurm.job import CANCELLED, TIMEOUT, DemoJob
from llmb_tui.demo.slurm.options import Parser, RefusedError, not_offered
from llmb_tui.demo.slurm.store import Store


def _state(job: DemoJob) -> str:
    """The state; for a cancelled job, with the user who cancelled it."""
    return f"{CANCELLED} by {job.cancelled_by}" if job.state == CANCELLED else job.state


def _exit_code(job: DemoJob) -> str:
    """`code:signal`; 0:0 for a job that was ended from outside."""
    return "0:0" if job.state in (CANCELLED, TIMEOUT) else f"{job.exit_code}:{job.signal}"


def _stamp(moment: float | None) -> str:
    return "Unknown" if moment is None else notation.stamp(moment)


def _tres(job: DemoJob) -> str:
    cpus, gpus = job.nodes * facts.CPUS_PER_NODE, job.nodes * facts.GPUS_PER_NODE
    return f"billing={cpus},cpu={cpus},gres/gpu={gpus},node={job.nodes}"


FIELDS: dict[str, Callable[[DemoJob], str]] = {
    "Account": lambda _: facts.ACCOUNT,
    "AllocTRES": lambda job: _tres(job) if job.node_names else "",
    "Cluster": lambda _: facts.CLUSTER,
    "DerivedExitCode": _exit_code,
    "ElapsedRaw": lambda job: str(int(job.elapsed())),
    "Eligible": lambda job: _stamp(job.eligible),
    "End": lambda job: _stamp(job.ended),
    "ExitCode": _exit_code,
    "JobID": lambda job: str(job.id),
    "JobIDRaw": lambda job: str(job.id),
    "JobName": lambda job: job.name,
    "NCPUS": lambda job: str(job.nodes * facts.CPUS_PER_NODE),
    "NNodes": lambda job: str(job.nodes),
    "NodeList": lambda job: job.node_list or "None assigned",
    "Partition": lambda job: job.partition,
    "QOS": lambda _: facts.QOS,
    "ReqTRES": _tres,
    "Start": lambda job: _stamp(job.started),
    "State": _state,
    "Submit": lambda job: notation.stamp(job.created),
    "TimelimitRaw": lambda job: str(job.minutes),
    "User": lambda _: "",
    "WorkDir": lambda job: job.work_dir,
}


ASSOCIATION = {"cluster": facts.CLUSTER, "account": facts.ACCOUNT, "partition": "", "qos": facts.QOS, "defaultqos": ""}
USER = {"defaultaccount": facts.ACCOUNT}
QOS = {"name": facts.QOS, "flags": "", "maxwall": "", "maxtres": "", "maxtrespu": "", "grptres": "", "mintres": ""}


def sacct(store: Store, arguments: list[str]) -> int:
    """Print jobs, ordered by id."""
    args = sacct_options().parse(arguments)
    if store.fault("no-accounting") is not None:
        raise RefusedError("Slurm accounting storage is disabled")
    columns = args.o.split(",")
    if unknown := [name for name in columns if name not in FIELDS]:
        raise not_offered("sacct", f"column {unknown[0]}")
    if not args.n:
        sys.stdout.write(args.delimiter.join(columns) + "\n")
    for job in _chosen(store.all(), args):
        cells = (str(store.settings["user"]) if name == "User" else FIELDS[name](job) for name in columns)
        sys.stdout.write(args.delimiter.join(cells) + "\n")
    return 0


def sacctmgr(store: Store, arguments: list[str]) -> int:
    """Print the site's only association, user or QOS."""
    if store.fault("no-accounting") is not None:
        raise RefusedError("You are not running a supported accounting_storage plugin")
    user = store.settings["user"]
    entities = {f"assoc user={user}": ASSOCIATION, f"user {user}": USER, "qos": QOS}
    shown, _, columns = " ".join(arguments).partition(" format=")
    row = entities.get(shown.removeprefix("-nP show "), {})
    names = columns.split(",")
    if not shown.startswith("-nP show ") or not set(names) <= set(row):
        raise not_offered("sacctmgr", " ".join(arguments))
    sys.stdout.write("|".join(row[name] for name in names) + "\n")
    return 0


def sacct_options() -> Parser:
    """Options of `sacct`, for whole jobs only. No job starts twice, so `-D` changes nothing."""
    parser = Parser("sacct", "-j --name", "-n -D")
    for flag in ("-X", "-P"):
        parser.add_argument(flag, action="store_true", required=True)
    parser.add_argument("-o", required=True)
    parser.add_argument("--delimiter", default="|")
    parser.add_argument("-S", type=notation.day_start)
    parser.add_argument("-u", choices=[str(os.getuid())])
    return parser


def _chosen(jobs: list[DemoJob], args: Namespace) -> list[DemoJob]:
    ids = args.j.split(",") if args.j else [str(job.id) for job in jobs]
    since = args.S or 0.0
    named = [job for job in jobs if str(job.id) in ids and args.name in (None, job.name)]
    return [job for job in named if job.ended is None or job.ended >= since]
