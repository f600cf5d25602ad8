"""What a launch script says: of its jobs, or why none came of it. Pure: from text that nobody vouches for to values.

Text is that of `SubmissionStatus.words`: clean, its lines ended by newlines. Its words are those of the recipes'
scripts, of bash, of NeMo and of NeMo-Run; `sbatch`'s own are for `refusal`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from llmb_tui.cluster.validation import NAME, PATH, matches
from llmb_tui.diagnosis.rules import rules
from llmb_tui.errors import Trouble
from llmb_tui.language.text import short_line
from llmb_tui.launch.refusal import NOT_SUBMITTED, SBATCH, SIGNALS, may_have_been_accepted

_BATCH = re.compile(r"^Submitted batch job (\d{1,12})(?: on cluster \S+)?$", re.MULTILINE | re.ASCII)
_TASK = re.compile(
    r"^Task \d+: (?P<name>\S+)$(?P<said>(?:\n(?!Task \d).*){0,8}?\n- Local Directory:[ \t]+(?P<folder>\S+)$)",
    re.MULTILINE | re.ASCII,
)
_JOB = re.compile(r"^- Job id:[ \t]+(\d{1,12})(?:;\S*)?$", re.MULTILINE | re.ASCII)
# Of NeMo-Run's own words, those that are no news: a picture of its own code, and rules.
_DULL = re.compile(r"[\s\W_]*|#.*|(?:nemo|cd) .*")
_SBATCH = re.compile(r"sbatch: (?:error: )?(\S.*)")
_CALLED = re.compile(r"Command: '?sbatch |'sbatch --")
# Where a traceback shows code, and a picture is drawn around it.
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
    """The tasks that NeMo-Run says it has submitted, whose folders are below `experiments`; each job once."""
    by_job: dict[str, Task] = {}
    for block in _TASK.finditer(output):
        job = _JOB.search(block["said"])
        if job and _is_task(block["name"], block["folder"], experiments):
            by_job[job[1]] = Task(block["name"], job[1], block["folder"])
    return tuple(by_job.values())


def batch_job(output: str) -> str:
    """The job that sbatch says it has submitted; empty where it says none, or more than one."""
    ids = set(_BATCH.findall(output))
    return ids.pop() if len(ids) == 1 else ""


def indexed_tasks(lines: Iterable[str], experiments: str) -> tuple[Task, ...]:
    """The tasks in lines of NeMo-Run's `.slurm_jobs`: `ID = LOG FILES,FOLDER,TUNNEL,…`; others are left out."""
    by_job: dict[str, Task] = {}
    for line in lines:
        match = re.match(r"(\d{1,12})(?:;\S*)? = (/[^,]*)", line, re.ASCII)
        folder = match[2].rpartition("/")[0] if match else ""
        name = folder.rpartition("/")[2]
        if match and _is_task(name, folder, experiments):
            by_job[match[1]] = Task(name, match[1], folder)
    return tuple(by_job.values())


def of_script(job_id: str, path: str, experiments: str) -> Task | None:
    """The task of a batch script `<experiment folder>/<task>_sbatch.sh`; None for any other path."""
    folder, _, file = path.rpartition("/")
    name = file.removesuffix("_sbatch.sh")
    inside = f"{folder}/{name}"
    return Task(name, job_id, inside) if name != file and _is_task(name, inside, experiments) else None


def last_line(output: str) -> str:
    """The last line that says something, clean and cut where it is too long; empty where none does."""
    lines = (short_line(line) for line in reversed(output.split("\n")))
    return next((line for line in lines if not _DULL.fullmatch(line)), "")


def _is_task(name: str, folder: str, experiments: str) -> bool:
    """Where NeMo-Run puts a task of that name."""
    right = matches(NAME, name) and matches(PATH, folder) and folder.startswith(f"{experiments}/")
    return right and folder.removeprefix(f"{experiments}/").count("/") == 2 and folder.endswith(f"/{name}")


def sbatch_lines(words: str) -> tuple[str, ...] | None:
    """What sbatch said in the output of a launch, a line each; None where sbatch was not called."""
    lines = tuple(dict.fromkeys(line.strip() for line in _SBATCH.findall(words)))
    return lines if lines or _CALLED.search(words) else None


def may_have_been_submitted(exit_code: int, words: str) -> bool:
    """True unless sbatch was not called, or certainly refused, by the whole output of a launch script."""
    lines = sbatch_lines(words)
    if exit_code == 0 or exit_code in SIGNALS or lines == ():
        return True
    return lines is not None and may_have_been_accepted(exit_code, "\n".join(lines))


def launch_reason(script: str, exit_code: int | None, words: str) -> str:
    """Sbatch's words, as `sbatch: WORDS`, or the last lines of the output that say something."""
    if answers := sbatch_lines(words):
        return f"{SBATCH}{' '.join(answers)}"
    lines = [line.strip() for line in words.split("\n") if not _FRAME.fullmatch(line)]
    ended = "was ended from outside" if exit_code is None else f"ended with exit code {exit_code}"
    return " ".join(lines[-_MOST_LINES:]) or f"{script} {ended} and said nothing."


def launch_failure(note: str) -> Trouble:
    """The error for a person, from the `launch_reason` that a refused run remembers."""
    match = rules("launch").match(note)
    if match is None:
        what, fix = "the launch script failed.", "Run the command by hand to see more."
        return Trouble(f"{NOT_SUBMITTED}{what}", f"Its last words: {note}", fix)
    why = note if match.rule.unreachable else f"Its last words: {note}"
    diagnosis = match.diagnosis()
    return Trouble(f"{NOT_SUBMITTED}{diagnosis.reason}", why, diagnosis.fix, match.rule.exit_code)
