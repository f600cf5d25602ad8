"""`SlurmCluster`: a Slurm that is asked on its login node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from llmb_tui.cluster.cluster import SchedulerTrouble
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.remotelog import LoginNodeOutput
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm import client


class SlurmCluster(Session):
    """A `Cluster`: its session, and what Slurm is asked through it."""

    def look(self, job_ids: Sequence[str]) -> dict[str, Job]:
        """What Slurm knows of these jobs; see `client.look`."""
        return client.look(self, job_ids)

    def bad_nodes(self, node_list: str) -> tuple[str, ...]:
        """Those of these nodes that do not work; see `client.bad_nodes`."""
        return client.bad_nodes(self, node_list)

    def cancel(self, job_id: str) -> bool:
        """Cancel a job; see `client.cancel`."""
        return client.cancel(self, job_id)

    def suspend(self, job_id: str) -> NoReturn:  # noqa: ARG002 - a `Cluster`'s
        """Raise SchedulerTrouble: only administrators may."""
        raise SchedulerTrouble("Slurm suspends no job for its user.", fix="Ask the cluster's administrators.")

    resume = suspend

    def accounting(self, job_ids: Sequence[str]) -> str:
        """What is written down of jobs that are over; see `client.accounting`."""
        return client.accounting(self, job_ids)

    def output(self, log: JobLog, job_id: str) -> LoginNodeOutput:
        """What a job writes."""
        return LoginNodeOutput(self, log, job_id)
