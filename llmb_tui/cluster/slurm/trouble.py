"""`SlurmTrouble`: a Slurm command that failed, and why as far as its words say."""

from __future__ import annotations

from collections.abc import Mapping

from llmb_tui.cluster.batch import TIMED_OUT, Answer
from llmb_tui.cluster.cluster import HalfAnswer, SchedulerTrouble
from llmb_tui.cluster.job import Job
from llmb_tui.diagnosis.rules import rules
from llmb_tui.language.text import clean


class SlurmTrouble(SchedulerTrouble):
    """Slurm did not answer, or refused. It says nothing about any job."""


class AccountingTrouble(SlurmTrouble, HalfAnswer):
    """Slurm's controller answered and its accounting did not, which alone knows the jobs that have left the queue."""

    def __init__(self, answer: Answer, queued: Mapping[str, Job]) -> None:
        """`queued`: what the controller said."""
        said = clean(answer.text.strip()).split("\n")[-1]
        super().__init__(
            "`sacct` failed on the cluster." if said else "`sacct` did not answer in time.",
            f"Slurm's accounting (slurmdbd) is down or hangs, and its controller answers. {said}".rstrip(),
            "Jobs go on. Wait, or ask the cluster's administrators.",
        )
        self.queued = queued


def slurm_trouble(command: str, answer: Answer) -> SlurmTrouble:
    """Why a Slurm command failed, in three parts."""
    if command == "sacct":  # which is asked after the controller has answered
        return AccountingTrouble(answer, {})
    if answer.exit_code == TIMED_OUT and not answer.text.strip():
        return silence(command)
    words = clean(answer.text.strip()) or f"It ended with exit code {answer.exit_code} and no message."
    match = rules("slurm").match(f"exit code {answer.exit_code}\n{answer.text}")
    fix = match.diagnosis().sentences if match else f"Run `{command}` on the login node to see more."
    return SlurmTrouble(f"`{command}` failed on the cluster.", words, fix)


def silence(command: str, why: str = "Slurm's controller hangs or is overloaded.") -> SlurmTrouble:
    """Of a command that gave no answer before its time was over."""
    return SlurmTrouble(
        f"`{command}` did not answer in time.",
        why,
        "Running jobs go on. Wait, or ask the cluster's administrators.",
    )
