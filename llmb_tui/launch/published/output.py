"""What a launch script says about its jobs. Pure: from text that nobody vouches for to checked values.

Text is that of `Traces.words`: clean, its lines ended by newlines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from llmb_tui.cluster.words import NAME, PATH, fits
from llmb_tui.text import clean_line

_BATCH = re.compile(r"^Submitted batch job (\d{1,12})(?: on cluster \S+)?$", re.MULTILINE | re.ASCII)
_TASK = re.compile(
    r"^Task \d+: (?P<name>\S+)$(?P<said>(?:\n(?!Task \d).*){0,8}?\n- Local Directory:[ \t]+(?P<folder>\S+)$)",
    re.MULTILINE | re.ASCII,
)
_JOB = re.compile(r"^- Job id:[ \t]+(\d{1,12})(?:;\S*)?$", re.MULTILINE | re.ASCII)
# Of NeMo-Run's own words, those that are no news: a picture of its own code, and rules.
_DULL = re.compile(r"[\s\W_]*|#.*|(?:nemo|cd) .*")


@dataclass(frozen=True, slots=True)
class Task:
    """One of NeMo-Run's tasks and its job."""

    name: str
    job_id: str
    folder: str
    """`<experiments>/<experiment>/<experiment>_<Unix time>/<task>`: logs, `code/`, `configs/`."""


def tasks(output: str, experiments: str) -> tuple[Task, ...]:
    """The tasks that NeMo-Run says it has submitted, whose folders are below `experiments`; each job once."""
    found: dict[str, Task] = {}
    for block in _TASK.finditer(output):
        job = _JOB.search(block["said"])
        if job and _is_task(block["name"], block["folder"], experiments):
            found[job[1]] = Task(block["name"], job[1], block["folder"])
    return tuple(found.values())


def batch_job(output: str) -> str:
    """The job that sbatch says it has submitted; empty where it says none, or more than one."""
    said = set(_BATCH.findall(output))
    return said.pop() if len(said) == 1 else ""


def indexed(lines: Iterable[str], experiments: str) -> tuple[Task, ...]:
    """The tasks in lines of NeMo-Run's `.slurm_jobs`: `ID = LOG FILES,FOLDER,TUNNEL,…`; others are left out."""
    found: dict[str, Task] = {}
    for line in lines:
        match = re.match(r"(\d{1,12})(?:;\S*)? = (/[^,]*)", line, re.ASCII)
        folder = match[2].rpartition("/")[0] if match else ""
        name = folder.rpartition("/")[2]
        if match and _is_task(name, folder, experiments):
            found[match[1]] = Task(name, match[1], folder)
    return tuple(found.values())


def of_script(job_id: str, path: str, experiments: str) -> Task | None:
    """The task of a batch script `<experiment folder>/<task>_sbatch.sh`; None for any other path."""
    folder, _, file = path.rpartition("/")
    name = file.removesuffix("_sbatch.sh")
    inside = f"{folder}/{name}"
    return Task(name, job_id, inside) if name != file and _is_task(name, inside, experiments) else None


def last_line(output: str) -> str:
    """The last line that says something, clean; empty where none does."""
    lines = (clean_line(line).strip() for line in reversed(output.split("\n")))
    return next((line for line in lines if not _DULL.fullmatch(line)), "")


def _is_task(name: str, folder: str, experiments: str) -> bool:
    """Where NeMo-Run puts a task of that name."""
    right = fits(NAME, name) and fits(PATH, folder) and folder.startswith(f"{experiments}/")
    return right and folder.removeprefix(f"{experiments}/").count("/") == 2 and folder.endswith(f"/{name}")
