"""`JobLog`: where a job writes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobLog:
    """Absolute paths on the cluster. In them `%j` stands for the job's id, `%r` for how often it was restarted."""

    training: str
    """The log of the training. Without `%r` every start of the job writes to the same file."""
    beside: tuple[str, ...] = ()
    """Files that may say why the job failed, such as the output of its batch script."""

    @classmethod
    def of_nemo_run(cls, folder: str, job_name: str) -> JobLog:
        """Where a job of NeMo-Run's writes, by its own names for the files in a task's folder."""
        return cls(f"{folder}/log-{job_name}_%j_%r.out", (f"{folder}/sbatch_{job_name}_%j.out",))

    @property
    def one_for_all(self) -> bool:
        """Every start of the job writes to the same file."""
        return "%r" not in self.training

    @property
    def folder(self) -> str:
        """Where the training logs are."""
        return self.training.rpartition("/")[0]

    def path(self, job_id: str, restart: int = 0) -> str:
        """The training log of one start of a job."""
        return self.training.replace("%j", job_id).replace("%r", str(restart))

    def beside_of(self, job_id: str) -> tuple[str, ...]:
        """The files beside the training log of a job."""
        return tuple(path.replace("%j", job_id) for path in self.beside)

    def restarts(self, job_id: str, names: Iterable[str]) -> list[int]:
        """The restarts of a job whose logs are among these names of files in `folder`, ascending."""
        name = re.escape(self.training.rpartition("/")[2]).replace("%j", re.escape(job_id)).replace("%r", r"(\d+)")
        matches = (re.fullmatch(name, one) for one in names)
        return sorted(int(one[1]) if one.groups() else 0 for one in matches if one)
