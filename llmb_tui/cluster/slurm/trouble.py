"""`SlurmTrouble`: a Slurm command that failed, and why as far as its words say."""

from __future__ import annotations

import re

from llmb_tui.cluster.batch import Answer
from llmb_tui.errors import Trouble
from llmb_tui.text import clean

# A rule's pattern, and what to do. The first that fits speaks.
_FIXES = (
    (
        re.compile(r"Socket timed out|Unable to contact slurm|Connection (?:refused|timed out)|Zero Bytes were"),
        "Slurm's controller or its database hangs or is down: running jobs go on. "
        "Wait, or ask the cluster's administrators.",
    ),
    (
        re.compile(r"Access/permission denied"),
        "The job belongs to somebody else, or the account is locked: ask its owner or the cluster's administrators.",
    ),
)


_TIMED_OUT = 124
"""Exit code of `timeout` when it ended the command."""


class SlurmTrouble(Trouble):
    """Slurm did not answer, or refused. It says nothing about any job."""


def slurm_trouble(command: str, answer: Answer) -> SlurmTrouble:
    """Why a Slurm command failed, in three parts."""
    if answer.exit_code == _TIMED_OUT and not answer.text.strip():
        return silence(command)
    said = clean(answer.text.strip()) or f"It ended with exit code {answer.exit_code} and no message."
    fixes = [fix for pattern, fix in _FIXES if pattern.search(answer.text)]
    if answer.exit_code == 127:
        fix = (
            "Make Slurm's commands known to non-interactive shells, for example with `module load slurm` in ~/.bashrc."
        )
    else:
        fix = fixes[0] if fixes else f"Run `{command}` on the login node to see more."
    return SlurmTrouble(f"`{command}` failed on the cluster.", said, fix)


def silence(command: str) -> SlurmTrouble:
    """Of a command that gave no answer before its time was over."""
    return SlurmTrouble(
        f"`{command}` did not answer in time.",
        "Slurm's controller hangs or is overloaded.",
        "Running jobs go on. Wait, or ask the cluster's administrators.",
    )
