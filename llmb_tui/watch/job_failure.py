"""`of_job`: what Slurm's own words for the end of a job say about why it failed."""

from __future__ import annotations

from llmb_tui.cluster.slurm.job import Job
from llmb_tui.text import clean_line
from llmb_tui.watch.failure import Failure
from llmb_tui.watch.failure_rules import (
    CAUSE,
    END,
    KILLED,
    NODE_FAILURE,
    NOT_STARTED,
    OUT_OF_MEMORY,
    PREEMPTION,
    TIME_LIMIT,
    Rule,
)

_OF_STATE = {
    "TIMEOUT": TIME_LIMIT,
    "DEADLINE": TIME_LIMIT,
    "OUT_OF_MEMORY": OUT_OF_MEMORY,
    "NODE_FAIL": NODE_FAILURE,
    "BOOT_FAIL": NODE_FAILURE,
    "PREEMPTED": PREEMPTION,
}
_NO_OUTPUT = "0:53"
"""Not a signal: slurmd could not open the job's output file."""
_KILLED = "0:9"


def of_job(job: Job) -> Failure | None:
    """Why a job failed as far as Slurm says; None of one that did not."""
    words = [job.state, *(f"exit code {code}" for code in (job.exit_code,) if code and code != "0:0"), *job.bad_nodes]
    line = clean_line(f"Slurm: {', '.join(words)}")
    if job.state in _OF_STATE:
        return _of_rule(_OF_STATE[job.state], line)
    if job.state != "FAILED":
        return None
    if job.exit_code == _NO_OUTPUT:
        return Failure(
            line,
            "Slurm could not write the job's output file.",
            "Check that the run's folder on the cluster exists, is yours and has room.",
            CAUSE,
        )
    if job.exit_code == _KILLED:
        return _of_rule(KILLED, line)
    if job.reason == "JobLaunchFailure":
        return _of_rule(NOT_STARTED, line)
    return Failure(
        line, "The batch script ended with an error.", "Read the end of the log and of the batch script's output.", END
    )


def _of_rule(rule: Rule, line: str) -> Failure:
    return Failure(line, rule.reason, rule.fix, rule.weight)
