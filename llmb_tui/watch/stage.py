"""`stage_of`: how far a run is, inferred from what Slurm says and what the log holds."""

from __future__ import annotations

import re

from llmb_tui.cluster.slurm.job import Job
from llmb_tui.watch.progress import WARM_UP_STEPS
from llmb_tui.watch.state import Progress, Stage

# What Pyxis and Enroot print while they fetch and unpack an image.
_CONTAINER_LINE = re.compile(rb"(?:\d+: ?)?(?:(?:slurmstepd|srun): )?(?:pyxis: |enroot|\[INFO\] )|\s*$")


def stage_of(job: Job | None, progress: Progress, *, started: bool, ended: bool) -> Stage:
    """The stage. `started`: the log has a line of the training program; `ended`: the job is over.

    A run whose last step is in the log is done, however its clean-up ended. A job that is over although Slurm
    no longer knows it is `unknown`, unless its log says more.
    """
    if ended:
        return _end(job, progress)
    if job and job.waiting:
        return "queued"
    if progress.steps_done:
        return "measuring" if len(progress.step_times_s) >= WARM_UP_STEPS else "warm-up"
    if started:
        return "start"
    return "image" if job else "unknown"


def only_container_lines(log: bytes) -> bool:
    """True while a log, from its beginning, holds nothing but the container's own lines."""
    return all(_CONTAINER_LINE.match(line) for line in log.splitlines())


def _end(job: Job | None, progress: Progress) -> Stage:
    if progress.steps_total and progress.steps_done >= progress.steps_total:
        return "done"
    if job is None or not job.finished:
        return "failed" if progress.failure else "unknown"
    if job.state == "COMPLETED":
        return "done"
    return "cancelled" if job.state == "CANCELLED" else "failed"
