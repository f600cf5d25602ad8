"""`scancel`: end jobs."""

from __future__ import annotations

import os
import sys

from llmb_tui.demo.slurm import facts
from llmb_tui.demo.slurm.job import CANCELLED, PENDING, RUNNING, SHORT_STATES, Job
from llmb_tui.demo.slurm.options import Parsed, Parser, Refusal
from llmb_tui.demo.slurm.store import Store

OPTIONS = "account=/A full/f me name=/n partition=/p quiet/Q state=/t user=/u verbose/v version/V"


def main(store: Store, arguments: list[str]) -> int:
    """Run `scancel`."""
    asked = Parser("scancel", OPTIONS).parse(arguments)
    if "version" in asked:
        sys.stdout.write(f"slurm {facts.VERSION}\n")
        return 0
    if asked.get("user", str(store.settings["user"])) != store.settings["user"]:
        raise Refusal(f"scancel: error: Invalid user name: {asked.get('user')}")
    filters = {"account", "me", "name", "partition", "state", "user"} & set(asked.values)
    if not asked.operands and not filters:
        raise Refusal("scancel: error: No job identification provided")
    for word in asked.operands:
        if not word.isdigit():
            raise Refusal(f"scancel: error: Invalid job id {word}")
    jobs = {str(job.id): job for job in store.remembered()}
    for word in asked.operands or jobs:
        job = jobs.get(word)
        if job is None:
            _say(asked, f"Terminating job {word}")
            _say(asked, f"error: Kill job error on job id {word}: Invalid job id specified")
        elif _meant(job, asked):
            _say(asked, f"Terminating job {word}")
            if not cancel(store, job.id):
                _say(asked, f"error: Kill job error on job id {word}: Job/step already completing or completed")
    return 0


def cancel(store: Store, job_id: int) -> bool:
    """Ask for the end of a job; the process that runs it does the rest. False when it has ended already."""
    with store.change(job_id) as job:
        if job.state not in (PENDING, RUNNING) or job.completing:
            return False
        job.cancelled_by = os.getuid()
        job.requeue_wanted = False
        job.completing = job.state == RUNNING
        job.state = CANCELLED
        if not job.completing:
            job.close()
    return True


def _say(asked: Parsed, text: str) -> None:
    if "verbose" in asked:
        sys.stderr.write(f"scancel: {text}\n")


def _meant(job: Job, asked: Parsed) -> bool:
    return (
        job.account == asked.get("account", job.account)
        and job.partition == asked.get("partition", job.partition)
        and job.name in asked.get("name", job.name).split(",")
        and asked.get("state", job.state).upper() in (job.state, SHORT_STATES[job.state])
    )
