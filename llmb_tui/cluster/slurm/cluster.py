"""`SlurmCluster`: a cluster with Slurm, which is reached through its login node."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.cluster import CancelUnconfirmedError, SchedulerError
from llmb_tui.cluster.failures import DeadlineError, DisconnectedError
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.quoting import one_line
from llmb_tui.cluster.remotelog import LoginNodeOutput
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.accounting import complete_records, stored_records
from llmb_tui.cluster.slurm.client import (
    ENDED_WITHIN_S,
    ONE_DEADLINE_S,
    ask,
    look_commands,
    parse_bad_nodes,
    read_jobs,
    run_program,
)
from llmb_tui.cluster.slurm.errors import silence, slurm_error
from llmb_tui.cluster.slurm.partition import sinfo
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.slurm.queue import JOB_ID, SEPARATOR
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line

_ALREADY_ENDED = re.compile(r"already completing or completed|Invalid job id specified", re.IGNORECASE)
# scancel lost its connection to the controller after sending; a failure to connect does not match.
_ANSWER_LOST = re.compile(
    r"timed out|timeout|zero bytes|connection reset|broken pipe|(?:send|receive|shutdown) failure|transport endpoint",
    re.I,
)
# The user's shell may set variables that restrict `scancel` to some jobs, or make it ask.
_SCANCEL = """\
unset SCANCEL_ACCOUNT SCANCEL_BATCH SCANCEL_INTERACTIVE SCANCEL_NAME SCANCEL_PARTITION SCANCEL_QOS SCANCEL_STATE
exec scancel "$1"
"""


class SlurmCluster(Session):
    """A `Cluster` with Slurm. The session runs Slurm's commands on the login node."""

    profile: SlurmProfile

    def query_jobs(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """Read the state of these jobs of the user, by id; a job that Slurm does not know is absent.

        Accounting is asked only for jobs that have left the queue. Raises AccountingError if accounting does not
        answer, SlurmError if Slurm fails, and the errors of `Session.run`.
        """
        if not job_ids:
            return {}
        for job_id in job_ids:
            _check_id(job_id)
        jobs = read_jobs(ask(self, look_commands(job_ids)), job_ids)
        return {job_id: jobs[job_id] for job_id in job_ids if job_id in jobs}

    def bad_nodes(self, node_list: str) -> tuple[str, ...]:
        """The broken ones of these nodes, such as `cn003 is down: Not responding`.

        Raises SlurmError and the errors of `Session.run`.
        """
        nodes = one_line(node_list, "the node list")
        columns = SEPARATOR.join(("%N", "%T", "%E"))
        return parse_bad_nodes(run_program(self, "sinfo", sinfo("-a", "-N", "-n", nodes, "-o", columns)))

    def cancel(self, job_id: str) -> bool:
        """Cancel a job; False for one that has ended already.

        Raises CancelUnconfirmedError if the answer was lost, SlurmError if Slurm refuses, `ReadOnlyError`, and the
        errors of `Session.run` if nothing was sent.
        """
        self.require_changes()
        _check_id(job_id)
        try:
            result = self.run_script(_SCANCEL, [job_id], deadline_s=ONE_DEADLINE_S)
        except DeadlineError as late:
            raise CancelUnconfirmedError("Slurm", job_id, silence("scancel")) from late
        except DisconnectedError as broken:
            if broken.may_have_run:
                raise CancelUnconfirmedError("Slurm", job_id, broken) from broken
            raise
        if result.exit_code == 0:
            return True
        if _ALREADY_ENDED.search(result.stderr):
            return False
        error = slurm_error("scancel", Answer(result.exit_code, result.stderr))
        if _ANSWER_LOST.search(result.stderr):
            raise CancelUnconfirmedError("Slurm", job_id, error)
        raise error

    def suspend(self, job_id: str) -> NoReturn:  # noqa: ARG002 - part of `Cluster`
        """Raise SchedulerError: only administrators may suspend jobs."""
        raise SchedulerError(
            "Slurm does not let users suspend jobs.", fix="Ask the cluster's administrators.", exit_code=1
        )

    resume = suspend

    def accounting(self, job_ids: Sequence[str]) -> str:
        """Accounting of ended jobs: a heading, and one line for each start of each job.

        Empty until accounting has the end of all of them. Raises AccountingError and the errors of `Session.run`.
        """
        for job_id in job_ids:
            _check_id(job_id)
        return complete_records(run_program(self, "sacct", stored_records(job_ids, ENDED_WITHIN_S)), job_ids)

    def output(self, log: JobLog, job_id: str) -> LoginNodeOutput:
        """Open the files that a job writes."""
        return LoginNodeOutput(self, log, job_id)


def _check_id(job_id: str) -> None:
    if not JOB_ID.fullmatch(job_id):
        raise LlmbError(f"{clean_line(job_id)!r} is not a Slurm job id.", "", "Job ids are numbers.", exit_code=1)
