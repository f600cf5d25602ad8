"""`sbatch`: queue a batch script, or test whether it could run, by the controller's rules."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from argparse import Namespace
from pathlib import Path

from llmb_tui.demo import faults
from llmb_tui.demo.slurm import facts, notation
from llmb_tui.demo.slurm.job import DemoJob
from llmb_tui.demo.slurm.options import Parser, RefusedError, not_offered
from llmb_tui.demo.slurm.runner import start_runner
from llmb_tui.demo.slurm.store import Store

QUEUE_WAIT_S = 45.0
"""Simulated seconds that a job waits even on an empty cluster."""

_TEXTS = (
    "--account --comment --constraint --dependency --gpus-per-node --gres --job-name --mem --output --partition --qos"
)
_DEPENDENCY = re.compile(r"after(?:ok|any)(?::\d+)+")
_GPUS = re.compile(rf"(?:gpu:)?(?:{facts.GPU_TYPE}:)?(\d+)")


def main(store: Store, arguments: list[str]) -> int:
    """Run `sbatch`."""
    parser = options()
    script, path = _script(parser.parse(arguments))
    args = parser.parse([*_directives(script), *arguments])  # the command line overrides the script
    if denial := _denial(args):
        failed = "allocation failure" if args.test_only else "sbatch: error: Batch job submission failed"
        raise RefusedError(f"{failed}: {denial}")
    job = _job(store, args, path)
    return _trial(store, job) if args.test_only else _submit(store, job, script, parsable=args.parsable)


def options() -> Parser:
    """Options that a script may have, in its text or on the command line."""
    flags = "--exclusive --no-requeue --parsable --test-only"
    parser = Parser("sbatch", f"{_TEXTS} --reservation --wrap", flags, "--nodes --ntasks --ntasks-per-node")
    parser.add_argument("--open-mode", choices=["append"])
    parser.add_argument("--kill-on-invalid-dep", choices=["yes"])
    parser.add_argument("--time", type=notation.minutes)
    parser.add_argument("--version", action="version", version=facts.VERSION)
    parser.add_argument("script", nargs="?")
    parser.set_defaults(
        account=facts.ACCOUNT, partition=facts.DEFAULT.name, qos=facts.QOS, nodes=1, output="slurm-%j.out"
    )
    return parser


def _script(args: Namespace) -> tuple[str, str]:
    """Text and path of the batch script; no path for --wrap and for a script on stdin. Raises RefusedError."""
    if args.wrap:
        return f"#!/bin/sh\n{args.wrap}\n", ""
    path = os.path.abspath(args.script) if args.script else ""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="surrogateescape") if path else sys.stdin.read()
    except OSError:
        raise RefusedError(f"sbatch: error: Unable to open file {args.script}") from None
    if not text.startswith("#!"):
        raise RefusedError("sbatch: error: This does not look like a batch script.")
    return text, path


def _directives(script: str) -> list[str]:
    """Words of a batch script's #SBATCH lines, which end at the first command."""
    words: list[str] = []
    for line in script.splitlines():
        if line.startswith("#SBATCH "):
            words += shlex.split(line[7:])
        elif line.strip() and not line.startswith("#"):
            break
    return words


def _denial(args: Namespace) -> str:
    """Why the controller rejects the job; empty if it accepts it."""
    partition = facts.PARTITIONS.get(args.partition)
    if partition is None:
        return "Invalid partition name specified"
    gpus = _GPUS.fullmatch(args.gpus_per_node or args.gres or "0")
    has_gpus = gpus is not None and int(gpus[1]) <= facts.GPUS_PER_NODE
    reasons = {
        "Invalid account or account/partition combination specified": args.account != facts.ACCOUNT,
        "Invalid qos specification": args.qos != facts.QOS,
        "Requested reservation is invalid": args.reservation,
        "Invalid feature specification": args.constraint,
        "Job dependency problem": not _DEPENDENCY.fullmatch(args.dependency or "afterany:1"),
        "Requested time limit is invalid (missing or exceeds some limit)": (args.time or 0) > partition.max_minutes,
        "Node count specification invalid": not 1 <= args.nodes <= partition.max_nodes,
        "Requested node configuration is not available": not has_gpus,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _job(store: Store, args: Namespace, path: str) -> DemoJob:
    """Requested job, not yet queued. Raises RefusedError for unsupported options."""
    if re.search("%(?!j)", args.output):
        raise not_offered("sbatch", f"--output={args.output}")
    tasks = args.ntasks or args.nodes * (args.ntasks_per_node or 1)
    created = time.time()
    wait_s = faults.number(store.path, "queue-wait")
    return DemoJob(
        id=0,
        name=args.job_name or os.path.basename(path or "wrap"),
        partition=args.partition,
        nodes=args.nodes,
        tasks=tasks,
        tasks_per_node=args.ntasks_per_node or -(-tasks // args.nodes),
        minutes=args.time or facts.PARTITIONS[args.partition].default_minutes,
        command=path or "(null)",
        work_dir=os.getcwd(),
        output=args.output,
        speed=store.speed,
        dependency=args.dependency or "",
        created=created,
        eligible=created + (QUEUE_WAIT_S if wait_s is None else wait_s),
    )


def _trial(store: Store, job: DemoJob) -> int:
    busy = store.busy_now()
    nodes = [name for name in facts.NODES if name not in busy] or list(facts.NODES)
    sys.stderr.write(
        f"sbatch: Job {store.next_id()} to start at {notation.stamp(job.eligible)}"
        f" using {job.nodes * facts.CPUS_PER_NODE} processors on nodes {notation.compress(nodes[: job.nodes])}"
        f" in partition {job.partition}\n"
    )
    return 0


def _submit(store: Store, job: DemoJob, script: str, *, parsable: bool) -> int:
    job, handle = store.add(job)
    store.spool(job.id, script)
    start_runner(store, job.id, handle)
    time.sleep(faults.number(store.path, "answer-delay") or 0)
    sys.stdout.write(f"{job.id}\n" if parsable else f"Submitted batch job {job.id}\n")
    return 0
