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
    """One log. Its texts may come from a remote machine."""

    path: str
    """Absolute path."""
    name: str
    """Name of the log as the user gave it."""
    open: Callable[[], BinaryIO]
    """Opens the log; raises OSError."""
    run: LlmbRun | None = None
    """The run as llmb-run describes it next to the log."""
    plan: str = ""
    """Text of the plan file that our script leaves next to the log."""
    note: str = ""
    """Reason why the log was only read in part; empty if it was read whole."""

    @property
    def file_name(self) -> str:
        """File name without the folder."""
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """Path of the folder that holds the log."""
        return self.path.rpartition("/")[0]

    @property
    def job_id(self) -> str:
        """Job id in the file name; empty if the name has none."""
        known = job_and_start(self.file_name)
        return known[0] if known else ""


def job_and_start(name: str) -> tuple[str, int] | None:
    """(job id, number of restarts) of a log's name, as llmb-run reads it; None for another name.

    The log with the highest number counts. `slurm-<job>.out` counts only for a job without another log.
    """
    if match := _LLMB_LOG.fullmatch(name):
        return match[1], int(match[2])
    return (match[1], -1) if (match := _SLURM_LOG.fullmatch(name)) else None


def is_training_log(name: str) -> bool:
    """Whether a file of this name is a training log, and not NeMo-Run's batch output, a boost log or a trace."""
    return not any(word in name for word in ("sbatch_", "vboost", "nccltrace"))


def newest_of_jobs(logs: Sequence[TrainingLog]) -> list[tuple[TrainingLog, tuple[str, ...]]]:
    """The log of each job's last start, with the names of its earlier logs; a log without a job id is its own job."""
    starts: dict[tuple[str, str], list[tuple[int, TrainingLog]]] = {}
    for log in logs:
        job_id, start = job_and_start(log.file_name) or (log.file_name, 0)
        starts.setdefault((log.folder, job_id), []).append((start, log))
    ordered = (
        [log for _, log in sorted(group, key=lambda start_and_log: start_and_log[0])] for group in starts.values()
    )
    return [(newest, tuple(log.name for log in earlier)) for *earlier, newest in ordered]
