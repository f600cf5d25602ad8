"""`SlurmError`: the error of a failed Slurm command, with Slurm's message."""

from __future__ import annotations

from collections.abc import Mapping

from llmb_tui.cluster.batch import TIMED_OUT, Answer
from llmb_tui.cluster.cluster import PartialAnswerError, SchedulerError
from llmb_tui.cluster.job import Job
from llmb_tui.diagnosis.rules import rules
from llmb_tui.language.redact import server_words


class SlurmError(SchedulerError):
    """Slurm did not answer, or refused a request. The error implies nothing about any job."""


class AccountingError(SlurmError, PartialAnswerError):
    """Slurm's controller answered, but not its accounting, which alone has the jobs that have left the queue."""

    def __init__(self, answer: Answer, queued: Mapping[str, Job]) -> None:
        """`queued`: jobs in the controller's answer."""
        words = server_words(answer.text).split("\n")[-1].rstrip(".")
        quotation = f"{words}. " if words else ""
        super().__init__(
            "`sacct` failed on the cluster." if words else "`sacct` did not answer in time.",
            f"{quotation}Slurm's controller answers, but its accounting (slurmdbd) is down or hangs.",
            "Running jobs continue. Try again later, or ask the cluster's administrators.",
        )
        self.queued = queued


def slurm_error(command: str, answer: Answer) -> SlurmError:
    """Make the error of a failed Slurm command, with a remedy if a rule matches its output."""
    if command == "sacct":  # it runs after the controller has answered
        return AccountingError(answer, {})
    if answer.exit_code == TIMED_OUT and not answer.text.strip():
        return silence(command)
    words = server_words(answer.text)
    match = rules("slurm").match(f"exit code {answer.exit_code}\n{words}")
    fix = match.diagnosis().sentences if match else f"Run `{command}` on the login node for details."
    why = words or f"It returned exit code {answer.exit_code} and no message."
    return SlurmError(f"`{command}` failed on the cluster.", why, fix)


def silence(command: str, why: str = "Slurm's controller hangs or is overloaded.") -> SlurmError:
    """Make the error of a command that did not answer in time."""
    return SlurmError(
        f"`{command}` did not answer in time.",
        why,
        "Running jobs continue. Try again later, or ask the cluster's administrators.",
    )
