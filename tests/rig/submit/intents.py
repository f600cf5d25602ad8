"""Runs for submission on a rig, the stored runs of laptops, and Slurm's record of the jobs."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.direct.install import entry_path
from llmb_tui.launch.naming import image_path
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import UserPaths
from tests.kit.runs import NEMOTRON, direct_spec, intended_run, request_for
from tests.rig.cluster import Rig

HELD = "--hold"
"""Option of a job that never starts: it only takes a place in the queue."""


class Laptop:
    """The stored runs of one machine."""

    def __init__(self, folder: Path) -> None:
        places = UserPaths(folder / "config", folder / "state")
        self.runs = Runs(places)
        self.journal = Journal(places.journal)


class MakesRuns(Protocol):
    """A maker of runs of one launch method for one rig."""

    def new(self, **spec: object) -> Run:
        """Make a new run; `spec` are changed fields of its spec."""

    def script(self, run: Run, *lines: str) -> str:
        """The text to submit for a run; `lines` are further options of its job, if the method supports them."""

    def profile(self) -> SlurmProfile:
        """The profile of the rig."""

    def jobs(self, runs: Iterable[Run]) -> dict[str, list[str]]:
        """Slurm's job numbers of each run, by the run's id."""


class Intents:
    """A maker of runs by our script. Each may be submitted, and Slurm identifies its job by the run's id alone."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._numbers = itertools.count(1)
        self.install_dir = str(rig.new_dir())
        for path in (image_path(self.install_dir, "tiny"), entry_path(self.install_dir)):
            rig.as_operator(["sh", "-c", 'mkdir -p "${1%/*}" && echo hsqs, installed >"$1"', "sh", path], check=True)

    def new(self, **spec: object) -> Run:
        """Make a new small run with the recipe's names and paths; `spec` are changed fields of its spec."""
        run_id = f"{id(self):x}n{next(self._numbers)}"
        run = intended_run(request_for(NEMOTRON, self.profile()), run_id)
        # One small file: the submission then has each kind of remote call and stays quick.
        fields: dict[str, Any] = {"nodes": 1, "tasks_per_node": 1, "files": (("configs/plan.json", "{}"),), **spec}
        image = image_path(self.install_dir, "tiny")
        return replace(run, spec=replace(direct_spec(run), container_image=image, **fields))

    def profile(self) -> SlurmProfile:
        """The profile of the rig."""
        return self._rig.profile(install_dir=self.install_dir)

    def script(self, run: Run, *lines: str) -> str:
        """The text to submit for a run; `lines` are options of its job, which is held if there are none."""
        return script(direct_spec(run), *(lines or (HELD,)))

    def jobs(self, runs: Iterable[Run]) -> dict[str, list[str]]:
        """Job numbers of each run, by the run's id, from Slurm's queue and its accounting."""
        since = (datetime.date.today() - datetime.timedelta(days=2)).isoformat()
        output = self._rig.as_operator("squeue --me -h -t all -o '%A %j'", check=True).stdout
        if self._rig.accounting:
            query = f"sacct -X -n -P --delimiter=' ' -S {since} -o JobIDRaw,JobName"
            output += self._rig.as_operator(query, check=True).stdout
        numbers: dict[str, list[str]] = {}
        for job_id, name in sorted(
            {(int(number), name) for number, name in (line.split(maxsplit=1) for line in output.splitlines())}
        ):
            numbers.setdefault(name, []).append(str(job_id))
        return {run.id: numbers.get(run.job_name, []) for run in runs}


def script(spec: LaunchSpec, *lines: str, body: str = "true") -> str:
    """A batch script of a run that costs nearly nothing; other tests submit the rendered script."""
    options = [
        f"--job-name={spec.job_name}",
        f"--account={spec.account}",
        f"--partition={spec.partition}",
        f"--nodes={spec.nodes}",
        f"--time={spec.time_limit}",
        f"--output={spec.task_dir}/sbatch_{spec.job_name}_%j.out",
        "--no-requeue",
        *(name if value is None else f"{name}={value}" for name, value in ((f"--{n}", v) for n, v in spec.options)),
        *lines,
    ]
    return "".join(["#!/bin/sh\n", *(f"#SBATCH {option}\n" for option in options), f"{body}\n"])


@dataclass
class Tally:
    """Final outcomes of many submissions."""

    drops: int = 0
    submissions: int = 0
    were_unknown: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    twice: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def add(self, runs: Iterable[Run], jobs: dict[str, list[str]]) -> None:
        """Compare the stored state of each run with Slurm's jobs."""
        for run in runs:
            real = jobs[run.id]
            self.submissions += 1
            self.ended[run.submission] += 1
            if len(real) > 1:
                self.twice.append(f"{run.id}: {real}")
            if sorted(run.job_ids, key=int) != real:
                self.lost.append(f"{run.id}: {run.submission} {list(run.job_ids)}, but Slurm has {real}. {run.note}")

    def counts(self) -> dict[str, Any]:
        """The tally as plain values, for another process."""
        return {**asdict(self), "ended": dict(self.ended)}

    @classmethod
    def of(cls, counts: Any) -> Tally:
        """The tally with these counts."""
        return cls(**{**counts, "ended": Counter(counts["ended"])})

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.drops + other.drops,
            self.submissions + other.submissions,
            self.were_unknown + other.were_unknown,
            self.ended + other.ended,
            self.twice + other.twice,
            self.lost + other.lost,
        )

    def __str__(self) -> str:
        ended = ", ".join(f"{count} {state}" for state, count in sorted(self.ended.items()))
        return (
            f"{self.drops} drops in {self.submissions} submissions: {ended} ({self.were_unknown} were unknown and then"
            f" settled), {len(self.twice)} twice, {len(self.lost)} lost"
        )
