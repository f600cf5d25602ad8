"""`SlurmCluster`: a Slurm that is asked on its login node."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from llmb_tui.cluster.batch import Answer
from llmb_tui.cluster.cluster import CancelOpen, SchedulerTrouble
from llmb_tui.cluster.failures import DeadlinePassed, Disconnected
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.quoting import one_line
from llmb_tui.cluster.remotelog import LoginNodeOutput
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.accounting import kept, kept_text
from llmb_tui.cluster.slurm.client import (
    ENDED_WITHIN_S,
    ONE_DEADLINE_S,
    ask,
    look_commands,
    parse_bad_nodes,
    read_jobs,
    said,
)
from llmb_tui.cluster.slurm.partition import sinfo
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.slurm.queue import JOB_ID, SEPARATOR
from llmb_tui.cluster.slurm.trouble import silence, slurm_trouble
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line

_ALREADY_ENDED = re.compile(r"already completing or completed|Invalid job id specified", re.IGNORECASE)
# scancel lost the controller while it was talking to it; a failure to connect is not among them.
_ANSWER_LOST = re.compile(
    r"timed out|timeout|zero bytes|connection reset|broken pipe|(?:send|receive|shutdown) failure|transport endpoint",
    re.I,
)
# A person's profile may restrict `scancel` to some jobs, or make it ask.
_SCANCEL = """\
unset SCANCEL_ACCOUNT SCANCEL_BATCH SCANCEL_INTERACTIVE SCANCEL_NAME SCANCEL_PARTITION SCANCEL_QOS SCANCEL_STATE
exec scancel "$1"
"""


class SlurmCluster(Session):
    """A `Cluster`: its session, and what Slurm is asked through it."""

    profile: SlurmProfile

    def look(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """What Slurm knows of these jobs of the user, by id; a job that it does not know is absent.

        Accounting is asked only about jobs that the queue has let go. Raises AccountingTrouble when that does not
        answer, SlurmTrouble when Slurm cannot say, and what `Session.run` raises.
        """
        if not job_ids:
            return {}
        for job_id in job_ids:
            _check_id(job_id)
        jobs = read_jobs(ask(self, look_commands(job_ids)), job_ids)
        return {job_id: jobs[job_id] for job_id in job_ids if job_id in jobs}

    def bad_nodes(self, node_list: str) -> tuple[str, ...]:
        """Those of these nodes that do not work, such as `cn003 is down: Not responding`.

        Raises SlurmTrouble when Slurm cannot say, and what `Session.run` raises.
        """
        nodes = one_line(node_list, "the node list")
        columns = SEPARATOR.join(("%N", "%T", "%E"))
        return parse_bad_nodes(said(self, "sinfo", sinfo("-a", "-N", "-n", nodes, "-o", columns)))

    def cancel(self, job_id: str) -> bool:
        """Cancel a job; False for one that has ended already.

        Raises CancelOpen where Slurm may do so although it has not said so, SlurmTrouble when it refuses,
        `ObserverMode`, and what `Session.run` raises where nothing was sent.
        """
        self.require_changes()
        _check_id(job_id)
        try:
            result = self.run_script(_SCANCEL, [job_id], deadline_s=ONE_DEADLINE_S)
        except DeadlinePassed as late:
            raise CancelOpen("Slurm", job_id, silence("scancel")) from late
        except Disconnected as broken:
            if broken.may_have_run:
                raise CancelOpen("Slurm", job_id, broken) from broken
            raise
        if result.exit_code == 0:
            return True
        if _ALREADY_ENDED.search(result.stderr):
            return False
        trouble = slurm_trouble("scancel", Answer(result.exit_code, result.stderr))
        if _ANSWER_LOST.search(result.stderr):
            raise CancelOpen("Slurm", job_id, trouble)
        raise trouble

    def suspend(self, job_id: str) -> NoReturn:  # noqa: ARG002 - a `Cluster`'s
        """Raise SchedulerTrouble: only administrators may."""
        raise SchedulerTrouble(
            "Slurm suspends no job for its user.", fix="Ask the cluster's administrators.", exit_code=1
        )

    resume = suspend

    def accounting(self, job_ids: Sequence[str]) -> str:
        """What accounting has written down of jobs that are over: the heading, and a line for each start of each.

        Empty as long as it has not heard of the end of all of them. Raises AccountingTrouble when it cannot say, and
        what `Session.run` raises.
        """
        for job_id in job_ids:
            _check_id(job_id)
        return kept_text(said(self, "sacct", kept(job_ids, ENDED_WITHIN_S)), job_ids)

    def output(self, log: JobLog, job_id: str) -> LoginNodeOutput:
        """What a job writes."""
        return LoginNodeOutput(self, log, job_id)


def _check_id(job_id: str) -> None:
    if not JOB_ID.fullmatch(job_id):
        raise Trouble(f"{clean_line(job_id)!r} is no Slurm job id.", "", "Job ids are numbers.", exit_code=1)
