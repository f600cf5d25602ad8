"""`sbatch`: queue a batch script."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

from llmb_tui.demo import faults
from llmb_tui.demo.slurm import facts, hostlist, pyxis, times
from llmb_tui.demo.slurm.job import Job
from llmb_tui.demo.slurm.options import Parsed, Parser, Refusal
from llmb_tui.demo.slurm.request import RESOURCES, Refused, check_shape, directives, job_of, record_refusal
from llmb_tui.demo.slurm.runner import start_runner
from llmb_tui.demo.slurm.store import Store

OPTIONS = f"{RESOURCES} {pyxis.OPTIONS} help no-requeue parsable requeue quiet/Q test-only verbose/v version/V wrap="
INPUTS = {
    "SBATCH_ACCOUNT": "account",
    "SBATCH_EXCLUSIVE": "exclusive",
    "SBATCH_GPUS_PER_NODE": "gpus-per-node",
    "SBATCH_GRES": "gres",
    "SBATCH_JOB_NAME": "job-name",
    "SBATCH_PARTITION": "partition",
    "SBATCH_TIMELIMIT": "time",
}
"""Input environment variables; the command line goes before them, they go before the script."""


def main(store: Store, arguments: list[str]) -> int:
    """Run `sbatch`."""
    parser = Parser("sbatch", OPTIONS, refused=255)
    typed = parser.parse(arguments, until_operand=True)
    if "version" in typed:
        sys.stdout.write(f"slurm {facts.VERSION}\n")
        return 0
    if "help" in typed:
        sys.stdout.write(f"Usage: sbatch [OPTIONS(0)...] script [args(0)...]\n\n{pyxis.HELP}")
        return 0
    script, path = _script(typed)
    given = {name: os.environ[variable] for variable, name in INPUTS.items() if variable in os.environ}
    written = parser.parse(directives(script))
    if written.operands:
        raise Refusal(f"sbatch: error: Invalid directive found in batch script: {written.operands[0]}", 255)
    asked = Parsed({**written.values, **given, **typed.values}, typed.operands)
    if "dependency" in asked:
        sys.stderr.write("sbatch: simulated cluster: --dependency is not honoured\n")
    try:
        name = "wrap" if "wrap" in typed else Path(path or "sbatch").name
        job = job_of(store, "sbatch", asked, name=name, command=path or "(null)")
        job.submit_line = shlex.join(["sbatch", *arguments])
        check_shape(job)
    except Refused as refused:
        if "test-only" in asked:
            raise Refusal(f"allocation failure: {refused.text}") from refused
        if refused.recorded:
            record_refusal(store, job)
        raise Refusal(refused.words("sbatch", "Batch job submission failed")) from refused
    if "test-only" in asked:
        return _test_only(store, job)
    job = _submit(store, job, script, typed.operands[1:])
    time.sleep(faults.number(store.path, "answer-delay") or 0)
    sys.stdout.write(f"{job.id}\n" if "parsable" in asked else f"Submitted batch job {job.id}\n")
    return 0


def _script(typed: Parsed) -> tuple[str, str]:
    """The batch script's text and its path; no path for --wrap and for a script on stdin. Raises Refusal."""
    if "wrap" in typed:
        if typed.operands:
            raise Refusal("sbatch: error: Script arguments not permitted with --wrap option")
        return f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{typed.get('wrap')}\n", ""
    path = ""
    if typed.operands:
        path = os.path.abspath(typed.operands[0])
        try:
            text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            raise Refusal(f"sbatch: error: Unable to open file {typed.operands[0]}") from None
    else:
        text = sys.stdin.read()
    if not text:
        raise Refusal("sbatch: error: Batch script is empty!")
    if not text.startswith("#!"):
        raise Refusal(
            "sbatch: error: This does not look like a batch script.  The first\n"
            "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
            "sbatch: error: For instance: #!/bin/sh"
        )
    if "\r\n" in text:
        raise Refusal(
            "sbatch: error: Batch script contains DOS line breaks (\\r\\n)\n"
            "sbatch: error: instead of expected UNIX line breaks (\\n)."
        )
    return text, path


def _submit(store: Store, job: Job, script: str, arguments: tuple[str, ...]) -> Job:
    job, handle = store.add(job)
    store.spool(job.id, script, arguments)
    start_runner(store, job.id, handle)
    return job


def _test_only(store: Store, job: Job) -> int:
    with store.locked():
        busy = store.busy()
    free = [name for name in facts.NODES if name not in busy] or list(facts.NODES)
    sys.stderr.write(
        f"sbatch: Job {max((known.id for known in store.all()), default=0) + 1} to start at {times.stamp(job.eligible)}"
        f" using {job.nodes * facts.CPUS_PER_NODE} processors on nodes {hostlist.compress(free[: job.nodes])}"
        f" in partition {job.partition}\n"
    )
    return 0
