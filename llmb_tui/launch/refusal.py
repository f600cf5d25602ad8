"""`refusal`: what Slurm's words mean when it did not take a job, and what to do about it."""

from __future__ import annotations

import re

from llmb_tui.errors import Trouble

NEVER_SENT = "It never reached Slurm: the connection broke, and the submission was withdrawn."

# sbatch lost the controller while it was talking to it: the job may have been accepted nevertheless.
_LOST = re.compile(
    r"timed out|zero bytes were transmitted|connection reset|transport endpoint|unexpected message|"
    r"communication connection failure|controller not responding",
    re.IGNORECASE,
)

# (pattern, mend, exit code), first match wins.
_MENDS: tuple[tuple[str, str, int], ...] = (
    (re.escape(NEVER_SENT), "Submit the same selection again.", 2),
    (r"contact slurm controller", "Wait until the controller answers (`scontrol ping`), and submit again.", 2),
    (
        r"gpu specification|generic resource|gres",
        "Change how the profile requests GPUs: gres, gpus-per-node or none. Sites accept different ones.",
        1,
    ),
    (r"qos|policy", "Choose a smaller scale or another account: a limit of your account or QOS is in the way.", 1),
    (r"account", "Correct the account in the cluster's profile: `sacctmgr show assoc user=$USER` lists yours.", 1),
    (r"partition", "Choose another partition: `sinfo` lists them.", 1),
    (r"time ?limit", "Lower the time limit, or choose a partition that allows it: `sinfo -o '%P %l'` lists them.", 1),
    (
        r"node configuration|node count|more processors|not available",
        "Choose a smaller scale or another partition, or change how the profile requests GPUs.",
        1,
    ),
    (r"not found", "Make sbatch known to shells that are not interactive (PATH in ~/.bashrc).", 2),
)


def may_have_been_accepted(exit_code: int, words: str) -> bool:
    """True when sbatch ended in a way that leaves open whether Slurm has the job."""
    killed = exit_code >= 128
    return exit_code == 0 or killed or _LOST.search(words) is not None


def reason(exit_code: int, words: str) -> str:
    """Slurm's words without the program's name in front of each line; the exit code where it said nothing."""
    lines = [line.removeprefix("sbatch: ").removeprefix("error: ").strip() for line in words.splitlines()]
    return " ".join(line for line in lines if line) or f"sbatch ended with exit code {exit_code} and said nothing."


def refusal(note: str) -> Trouble:
    """The error for a person, from the `reason` that the run remembers."""
    what = "The job was not submitted." if note == NEVER_SENT else "Slurm refused the job."
    for pattern, mend, exit_code in _MENDS:
        if re.search(pattern, note, re.IGNORECASE):
            return Trouble(what, note, mend, exit_code)
    return Trouble(what, note, "Show these words to the cluster's administrators.")
