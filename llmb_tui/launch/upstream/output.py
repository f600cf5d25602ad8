"""Parse a launch script's output, which is untrusted text: its jobs, or why it submitted none. Pure.

The text is that of `SubmissionStatus.output`: clean, with newlines as line ends. The patterns match messages of the
recipes' scripts, bash, NeMo and NeMo-Run; `refusal` handles the messages of `sbatch`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from llmb_tui.cluster.validation import NAME, PATH, matches
from llmb_tui.diagnosis.rules import rules
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import quotation, short_line
from llmb_tui.launch.refusal import NOT_SUBMITTED, SBATCH, SIGNALS, may_have_been_accepted

_BATCH = re.compile(r"^Submitted batch job (\d{1,12})(?: on cluster \S+)?$", re.MULTILINE | re.ASCII)
_TASK = re.compile(
    r"^Task \d+: (?P<name>\S+)$(?P<details>(?:\n(?!Task \d).*){0,8}?\n- Local Directory:[ \t]+(?P<folder>\S+)$)",
    re.MULTILINE | re.ASCII,
)
_JOB = re.compile(r"^- Job id:[ \t]+(\d{1,12})(?:;\S*)?$", re.MULTILINE | re.ASCII)
# Output of NeMo-Run without information: a listing of its own code, and rules.
_DULL = re.compile(r"[\s\W_]*|#.*|(?:nemo|cd) .*")
_SBATCH = re.compile(r"sbatch: (?:error: )?(\S.*)")
_CALLED = re.compile(r"Command: '?sbatch |'sbatch --")
# Lines of a traceback that show code, and the frame that is drawn around it.
_FRAME = re.compile(r"[\s\W_]*|\s*File \".*|Traceback .*|\s+.*|[│╭╰].*")
_MOST_LINES = 3


@dataclass(frozen=True, slots=True)
class Task:
    """One of NeMo-Run's tasks and its job."""

    name: str
    job_id: str
    folder: str
    """`<experiments>/<experiment>/<experiment>_<Unix time>/<task>`: logs, `code/`, `configs/`."""


def tasks(output: str, experiments: str) -> tuple[Task, ...]:
    """Tasks that NeMo-Run reports as submitted, with folders below `experiments`; each job once."""
    by_job: dict[str, Task] = {}
    for block in _TASK.finditer(output):
        job = _JOB.search(block["details"])
        if job and _is_task(block["name"], block["folder"], experiments):
            by_job[job[1]] = Task(block["name"], job[1], block["folder"])
    return tuple(by_job.values())


def batch_job(output: str) -> str:
    """Id of the job that sbatch reports as submitted; empty if it reports none, or more than one."""
    ids = set(_BATCH.findall(output))
    return ids.pop() if len(ids) == 1 else ""


def indexed_tasks(lines: Iterable[str], experiments: str) -> tuple[Task, ...]:
    """Tasks in lines of NeMo-Run's `.slurm_jobs`: `ID = LOG FILES,FOLDER,TUNNEL,…`; other lines are ignored."""
    by_job: dict[str, Task] = {}
    for line in lines:
        match = re.match(r"(\d{1,12})(?:;\S*)? = (/[^,]*)", line, re.ASCII)
        folder = match[2].rpartition("/")[0] if match else ""
        name = folder.rpartition("/")[2]
        if match and _is_task(name, folder, experiments):
            by_job[match[1]] = Task(name, match[1], folder)
    return tuple(by_job.values())


def task_from_script(job_id: str, path: str, experiments: str) -> Task | None:
    """Task of a batch script `<experiment folder>/<task>_sbatch.sh`; None for any other path."""
    folder, _, file = path.rpartition("/")
    name = file.removesuffix("_sbatch.sh")
    inside = f"{folder}/{name}"
    return Task(name, job_id, inside) if name != file and _is_task(name, inside, experiments) else None


def last_line(output: str) -> str:
    """Last informative line, clean and shortened if it is too long; empty if there is none."""
    lines = (short_line(line) for line in reversed(output.split("\n")))
    return next((line for line in lines if not _DULL.fullmatch(line)), "")


def _is_task(name: str, folder: str, experiments: str) -> bool:
    """True if NeMo-Run would use the folder for a task of that name."""
    right = matches(NAME, name) and matches(PATH, folder) and folder.startswith(f"{experiments}/")
    return right and folder.removeprefix(f"{experiments}/").count("/") == 2 and folder.endswith(f"/{name}")


def sbatch_lines(words: str) -> tuple[str, ...] | None:
    """Sbatch's messages in the output of a launch, one line each; None if sbatch was not called."""
    lines = tuple(dict.fromkeys(line.strip() for line in _SBATCH.findall(words)))
    return lines if lines or _CALLED.search(words) else None


def may_have_been_submitted(exit_code: int, words: str) -> bool:
    """True unless a launch script's complete output shows that sbatch was not called or certainly rejected the job."""
    lines = sbatch_lines(words)
    if exit_code == 0 or exit_code in SIGNALS or lines == ():
        return True
    return lines is not None and may_have_been_accepted(exit_code, "\n".join(lines))


def launch_reason(script: str, exit_code: int | None, words: str) -> str:
    """Sbatch's message, as `sbatch: MESSAGE`, or the last informative lines of the output."""
    if answers := sbatch_lines(words):
        return f"{SBATCH}{' '.join(answers)}"
    lines = [line.strip() for line in words.split("\n") if not _FRAME.fullmatch(line)]
    end = "was killed from outside" if exit_code is None else f"ended with exit code {exit_code}"
    return " ".join(lines[-_MOST_LINES:]) or f"{script} {end} and printed no message."


def launch_failure(note: str) -> LlmbError:
    """The error for the user, from the `launch_reason` in the record of a rejected run."""
    match = rules("launch").match(note)
    if match is None:
        what, fix = "the launch script failed.", "Run the command yourself on the login node to see more."
        return LlmbError(f"{NOT_SUBMITTED}{what}", f"Its last output: {quotation(note)}", fix)
    why = quotation(note) if match.rule.unreachable else f"Its last output: {quotation(note)}"
    diagnosis = match.diagnosis()
    return LlmbError(f"{NOT_SUBMITTED}{diagnosis.reason}", why, diagnosis.fix, match.rule.exit_code)
