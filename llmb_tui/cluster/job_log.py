"""`JobLog`: paths of the files that a job writes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobLog:
    """Absolute paths on the cluster, in which `%j` is the job's id and `%r` its number of restarts."""

    training: str
    """Path of the training log. Without `%r` all starts of the job write to the same file."""
    beside: tuple[str, ...] = ()
    """Other files that may contain the reason of a failure, such as the output of the batch script."""

    @classmethod
    def of_nemo_run(cls, folder: str, job_name: str) -> JobLog:
        """Log paths of a job of NeMo-Run, which names the files in a task's folder."""
        return cls(f"{folder}/log-{job_name}_%j_%r.out", (f"{folder}/sbatch_{job_name}_%j.out",))

    @property
    def one_for_all(self) -> bool:
        """True if all starts of the job write to the same file."""
        return "%r" not in self.training

    @property
    def folder(self) -> str:
        """Directory of the training logs."""
        return self.training.rpartition("/")[0]

    def path(self, job_id: str, restart: int = 0) -> str:
        """Path of the training log of one start of a job."""
        return self.training.replace("%j", job_id).replace("%r", str(restart))

    def beside_of(self, job_id: str) -> tuple[str, ...]:
        """Paths of a job's other files."""
        return tuple(path.replace("%j", job_id) for path in self.beside)

    def restarts(self, job_id: str, names: Iterable[str]) -> list[int]:
        """Restarts of a job whose logs are among the file names in `folder`, ascending."""
        name = re.escape(self.training.rpartition("/")[2]).replace("%j", re.escape(job_id)).replace("%r", r"(\d+)")
        matches = (re.fullmatch(name, file) for file in names)
        return sorted(int(match[1]) if match.groups() else 0 for match in matches if match)
