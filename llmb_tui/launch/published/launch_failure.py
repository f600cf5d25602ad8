"""`launch_failure`: what the output of a recipe's launch script means when no job came of it. Pure.

The words are those of the recipes' scripts, of bash, of NeMo and of NeMo-Run; `sbatch`'s own are for `refusal`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from llmb_tui.errors import Trouble

SBATCH = "sbatch: "
"""What a reason begins with that is sbatch's own."""
_SBATCH = re.compile(r"sbatch: (?:error: )?(\S.*)")
_CALLED = re.compile(r"Command: '?sbatch |'sbatch --")
# Where a traceback shows code, and a picture is drawn around it.
_FRAME = re.compile(r"[\s\W_]*|\s*File \".*|Traceback .*|\s+.*|[│╭╰].*")
_MOST_LINES = 3


@dataclass(frozen=True, slots=True)
class _Meaning:
    pattern: str
    what: str
    fix: str


_INSTALL = "Install the same selection again, then submit it."
# First match wins; `{}` is what the first group of the pattern has found.
_MEANINGS = (
    _Meaning(
        r"HF_TOKEN",
        "the launch script has no Hugging Face token.",
        "Give the token among the cluster's keys (`llmb-tui secrets CLUSTER --give hugging-face`), then submit again.",
    ),
    _Meaning(
        r"[Rr]equired variable (\w+)|(\w+) is a required variable",
        "the launch script misses the variable {}.",
        "Choose the direct procedure: this selection leaves something unsaid that the script needs.",
    ),
    _Meaning(
        r"(\w+): unbound variable",
        "the launch script does not know this selection: it has no {}.",
        "Choose another size or scale, or the direct procedure.",
    ),
    _Meaning(
        r"does not work with (\w+)",
        "the Python environment has a version of {} that the recipe does not work with.",
        _INSTALL,
    ),
    _Meaning(
        r"(?:ModuleNotFoundError|ImportError)\b.*?['\"]([\w.]+)['\"]",
        "the Python environment lacks {}, or has the wrong version of it.",
        _INSTALL,
    ),
    _Meaning(r"ModuleNotFoundError|ImportError", "the Python environment is not as the recipe needs it.", _INSTALL),
    _Meaning(
        r"unrecognized arguments: (\S+)",
        "NeMo does not know the option {}: its copy lacks the recipe's changes.",
        "Remove the recipe's folder on the cluster, install the same selection again, then submit it.",
    ),
    _Meaning(
        r"(\w+) is unsupported for this workload|not supported for (\w+)",
        "the launch script does not take {}.",
        "Choose another GPU type or scaling, or the direct procedure.",
    ),
    _Meaning(
        r"No space left on device|Disk quota exceeded",
        "there is no space left on the cluster.",
        "Free some space in the install directory and in the home directory, then submit again.",
    ),
    _Meaning(
        r"No such file or directory|can't cd to",
        "a file of the recipe is not there.",
        _INSTALL,
    ),
    _Meaning(
        r"[Pp]ermission denied",
        "a file of the recipe may not be read, written or run.",
        "Mend its permissions, or choose an install directory that is yours.",
    ),
    _Meaning(
        r"Another launch in the same folder",
        "another launch in the same folder is still at work.",
        "Look what it does on the cluster, end it if it hangs, and submit again.",
    ),
)
_ASKED_FIRST = re.compile(r"^(?:squeue: error: |slurm_load_jobs)", re.MULTILINE)


def sbatch_said(words: str) -> tuple[str, ...] | None:
    """What sbatch said in the output of a launch, a line each; None where sbatch was not called."""
    said = tuple(dict.fromkeys(line.strip() for line in _SBATCH.findall(words)))
    return said if said or _CALLED.search(words) else None


def launch_reason(script: str, exit_code: int | None, words: str) -> str:
    """Sbatch's words, as `sbatch: WORDS`, or the last lines of the output that say something."""
    if said := sbatch_said(words):
        return f"{SBATCH}{' '.join(said)}"
    lines = [line.strip() for line in words.split("\n") if not _FRAME.fullmatch(line)]
    ended = "was ended from outside" if exit_code is None else f"ended with exit code {exit_code}"
    return " ".join(lines[-_MOST_LINES:]) or f"{script} {ended} and said nothing."


def launch_failure(note: str) -> Trouble:
    """The error for a person, from the `launch_reason` that a refused run remembers."""
    said = f"Its last words: {note}"
    if _ASKED_FIRST.search(note):
        fix = "Wait until the controller answers (`scontrol ping`), and submit again."
        return Trouble("The job was not submitted: Slurm cannot be asked which jobs there are.", note, fix, 2)
    for meaning in _MEANINGS:
        if match := re.search(meaning.pattern, note):
            found = next((group for group in match.groups() if group), "")
            return Trouble(f"The job was not submitted: {meaning.what.format(found)}", said, meaning.fix, 1)
    return Trouble("The job was not submitted: the launch script failed.", said, "Run the command by hand to see more.")
