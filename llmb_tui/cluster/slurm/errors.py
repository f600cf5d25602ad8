"""`SlurmError`: the error of a failed Slurm command, with Slurm's message and the kind of the failure.

`presets/failures/slurm.toml` has the known messages and their kinds: `temporary`, `refused`, `absent`, `misconfigured`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from llmb_tui.cluster.batch import NO_ANSWER, TIMED_OUT, Answer
from llmb_tui.cluster.cluster import PartialAnswerError, SchedulerError
from llmb_tui.cluster.job import Job
from llmb_tui.diagnosis.rule import CommandFailure, Diagnosis
from llmb_tui.diagnosis.rule_set import Match
from llmb_tui.diagnosis.rules import rules
from llmb_tui.language.redact import server_words
from llmb_tui.language.text import short_line

_LATER = "Running jobs continue. Try again later, or ask the cluster's administrators."
_SERVERS = {"sacct": "accounting (slurmdbd)", "Slurm": "controller or its accounting (slurmdbd)"}
"""Servers that commands ask; the others ask the controller."""
_LONGEST = 1 << 14
"""Most characters of an output that are searched for Slurm's message."""
_LONGEST_QUOTATION = 400


class SlurmError(SchedulerError):
    """Slurm did not answer, or refused a request. The error implies nothing about any job."""


class AccountingError(SlurmError, PartialAnswerError):
    """Slurm's controller answered, but not its accounting, which alone has the jobs that have left the queue."""

    def __init__(self, answer: Answer, queued: Mapping[str, Job]) -> None:
        """`queued`: jobs in the controller's answer."""
        error = slurm_error("sacct", answer)
        # A refusal is an answer.
        silent = (
            "" if accounting_is_closed(answer) else "Slurm's controller answers, its accounting (slurmdbd) does not."
        )
        super().__init__(error.what, f"{error.why} {silent}".strip(), error.fix)
        self.queued = queued


class FailedCommand(NamedTuple):
    """The explanation of a failed Slurm command."""

    words: str
    """The line of its output that gives the reason, clean."""
    reason: str
    """Meaning of the words; empty if they are unknown."""
    fix: str

    @property
    def sentences(self) -> str:
        """Meaning and remedy as one text."""
        return f"{self.reason} {self.fix}".strip()


def failure_kind(answer: Answer) -> CommandFailure | None:
    """Kind of a failed Slurm command's failure; None if it succeeded, or if its message is unknown."""
    if answer.exit_code == 0:
        return None
    if not answer.text.strip() and answer.exit_code in (TIMED_OUT, NO_ANSWER.exit_code):
        return "temporary"
    match = _match(answer)
    return match.rule.kind if match else None


def accounting_is_closed(answer: Answer) -> bool:
    """Whether the answer of `sacct` or `sacctmgr` shows that the user cannot query accounting, now or later."""
    return failure_kind(answer) in ("refused", "absent", "misconfigured")


def explain(command: str, answer: Answer) -> FailedCommand:
    """Explain a failed Slurm command."""
    if not answer.text.strip() and answer.exit_code in (TIMED_OUT, NO_ANSWER.exit_code):
        server = _SERVERS.get(command, "controller (slurmctld)")
        return FailedCommand("no answer in time", f"Slurm's {server} hangs or is overloaded.", _LATER)
    match = _match(answer)
    diagnosis = match.diagnosis() if match else Diagnosis("", "", f"Run `{command}` on the login node for details.")
    return FailedCommand(_quotation(answer), diagnosis.reason, diagnosis.fix)


def slurm_error(command: str, answer: Answer) -> SlurmError:
    """Make the error of a failed Slurm command: its own words, their meaning, and a remedy if a rule has one."""
    if not answer.text.strip() and answer.exit_code == TIMED_OUT:
        return silence(command)
    failed = explain(command, answer)
    why = f"{failed.words.rstrip('.')}. {failed.reason}".rstrip()
    return SlurmError(f"`{command}` failed on the cluster.", why, failed.fix)


def silence(command: str) -> SlurmError:
    """Make the error of a command that did not answer in time."""
    failed = explain(command, Answer(TIMED_OUT, ""))
    return SlurmError(f"`{command}` did not answer in time.", failed.reason, failed.fix)


def _quotation(answer: Answer) -> str:
    """The line of a failed command's output that gives the reason, clean; its exit code if it printed nothing."""
    lines = [line.strip() for line in server_words(answer.text[-_LONGEST:]).split("\n") if line.strip()]
    if not lines:
        return f"It returned exit code {answer.exit_code} and no message."
    known = (line for line in lines if rules("slurm").match(f"exit code {answer.exit_code}\n{line}"))
    errors = (line for line in reversed(lines) if "error" in line.lower())
    return short_line(next(known, None) or next(errors, lines[-1]), _LONGEST_QUOTATION)


def _match(answer: Answer) -> Match | None:
    return rules("slurm").match(f"exit code {answer.exit_code}\n{server_words(answer.text[-_LONGEST:], _LONGEST)}")
