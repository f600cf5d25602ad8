"""`TrainingLog`: a log of any training, on this machine or on a cluster, with the files next to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from llmb_tui.launch.llmb.llmb_run import LlmbRun

# The Hydra recipes' names end with the number of GPUs and the job: `log-nemo_grok1_314b_512_48123.out`.
_LLMB_LOG = re.compile(r"log-(?!nemo_).*_(\d+)_(\d+)\.out")
_SLURM_LOG = re.compile(r"slurm-(\d+)\.out")


@dataclass(frozen=True, slots=True)
class TrainingLog:
    """One log. Its texts may be remote."""

    path: str
    """Absolute."""
    name: str
    """As the person who asked names it."""
    open: Callable[[], BinaryIO]
    """Raises OSError."""
    run: LlmbRun | None = None
    """The run as llmb-run describes it next to the log."""
    plan: str = ""
    """Text of the plan file that the direct procedure leaves next to the log."""
    note: str = ""
    """Why what was read of it is not all."""

    @property
    def file_name(self) -> str:
        """Without the folder."""
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """Where it lies."""
        return self.path.rpartition("/")[0]

    @property
    def job_id(self) -> str:
        """Job id by the file's name; empty if the name has none."""
        known = job_and_start(self.file_name)
        return known[0] if known else ""


def job_and_start(name: str) -> tuple[str, int] | None:
    """(job id, how often the job was restarted) of a log's name, as llmb-run reads it; None for another name.

    The log with the highest number counts. `slurm-<job>.out` counts only for a job without another log.
    """
    if match := _LLMB_LOG.fullmatch(name):
        return match[1], int(match[2])
    return (match[1], -1) if (match := _SLURM_LOG.fullmatch(name)) else None


def trains(name: str) -> bool:
    """Whether a file of this name is the log of a training, and not NeMo-Run's batch output, a boost or a trace."""
    return not any(word in name for word in ("sbatch_", "vboost", "nccltrace"))


def newest_of_jobs(logs: Sequence[TrainingLog]) -> list[tuple[TrainingLog, tuple[str, ...]]]:
    """Of each job the log of its last start, with the names of the earlier ones; a log of no job stands for itself."""
    starts: dict[tuple[str, str], list[tuple[int, TrainingLog]]] = {}
    for log in logs:
        job_id, start = job_and_start(log.file_name) or (log.file_name, 0)
        starts.setdefault((log.folder, job_id), []).append((start, log))
    ordered = ([log for _, log in sorted(group, key=lambda one: one[0])] for group in starts.values())
    return [(newest, tuple(log.name for log in earlier)) for *earlier, newest in ordered]
