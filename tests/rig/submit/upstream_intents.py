"""Runs by NVIDIA's scripts for submission on a rig, and an sbatch wrapper that records the calling launch.

The recipes name the jobs, so Slurm alone cannot assign jobs to runs. The wrapper in front of the real sbatch sets each
job's comment to the process group of its launch, with which the tests compare at the end.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.run import Run
from llmb_tui.launch.spec import UpstreamSpec
from llmb_tui.launch.upstream.procedure import upstream_spec
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.request import RunRequest
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.install.upstream_site import UpstreamSite
from tests.rig.submit.trial import Trial

SELECTIONS = {
    "nemotron4-25.04": Selection("nemotron4", "25.04", "15b", "h100", "fp8", 16),
    "grok1-25.02": Selection("grok1", "25.02", "314b", "h100", "bf16", 8),
}
# The wrapper waits while the file hold/MOMENT exists; sacct waits only if a launch calls it.
_AT = r"""
at() {
    while [ -e "/run/rig/hold/$1" ]; do
        touch "/run/rig/hold/$1.reached"
        sleep 0.05
    done
}
"""
# Jobs are held: they only take a place in the queue.
_SBATCH = r"""
[ "$1" != --version ] || exec /usr/bin/sbatch --version
group=$(ps -o pgid= -p $$)
at before
said=$(/usr/bin/sbatch --comment="${group##* }" --hold "$@")
code=$?
at after
[ -z "$said" ] || echo "$said"
exit $code
"""
_SACCT = r"""
case $* in *--parsable2*) at status ;; esac
exec /usr/bin/sacct "$@"
"""


class UpstreamIntents:
    """A maker of runs of one recipe, which is installed once."""

    def __init__(self, rig: Rig, catalog: Catalog, name: str) -> None:
        self._rig = rig
        self.site = UpstreamSite(rig, catalog, name)
        self.site.plan = self._plan = plan(catalog, SELECTIONS[name])
        states = self.site.run()
        bad = {kind: self.site.log(kind) for kind, state in states.items() if state.status != "done"}
        assert not bad, bad
        self._numbers = itertools.count(1)

    def new(self, **spec: object) -> Run:
        """Make a new run of the same selection."""
        request = RunRequest(self.site.recipe, self._plan, self.profile(), "upstream")
        launch_spec = upstream_spec(request, f"{id(self):x}p{next(self._numbers)}")
        return Run.of(request, replace(launch_spec, **spec), 0.0)  # type: ignore[arg-type] # fields of the spec

    def script(self, run: Run, *lines: str) -> str:
        """The text of a run's submission, as it was shown; it accepts no further options."""
        assert not lines
        return spec_of(run).command

    def profile(self) -> SlurmProfile:
        """The profile of the rig."""
        return self.site.profile

    def jobs(self, runs: Iterable[Run]) -> dict[str, list[str]]:
        """Numbers of the jobs that each run's launch has submitted, by the run's id."""
        output = self._rig.as_operator("squeue --me -h -t all -O JobID:20,Comment:20", check=True).stdout
        by_group: dict[str, list[str]] = {}
        for job_id, *group in sorted((line.split() for line in output.splitlines()), key=lambda row: int(row[0])):
            by_group.setdefault("".join(group), []).append(job_id)
        return {run.id: by_group.get(group_of(run), []) for run in runs}


def spec_of(run: Run) -> UpstreamSpec:
    """Spec of a run by NVIDIA's scripts."""
    assert isinstance(run.spec, UpstreamSpec)
    return run.spec


def folder_of(run: Run) -> Path:
    """Folder of a launch, at the same path on this machine as on the cluster."""
    return Path(spec_of(run).folder)


def group_of(run: Run) -> str:
    """Process group of a launch; a dash if it never began, or was withdrawn."""
    claim = folder_of(run) / "claim"
    return ([*str(claim.readlink()).split(), "-"])[1] if claim.is_symlink() else "-"


@contextlib.contextmanager
def recorded_sbatch(rig: Rig) -> Iterator[None]:
    """Make sbatch record in each job which launch called it, and hold the job, within the block."""
    programs = {rig.directory / "bin" / name: text for name, text in (("sbatch", _SBATCH), ("sacct", _SACCT))}
    before = {path: path.read_text() if path.exists() else "" for path in programs}
    for path, text in programs.items():
        path.write_text(f"#!/bin/sh\n{_AT}{text}")
        path.chmod(0o755)
    try:
        yield
    finally:
        for path, text in before.items():
            if text:
                path.write_text(text)
            else:
                path.unlink()


class LaunchHold:
    """A moment at which launches stop: `before` sbatch, `after` it, or when NeMo-Run asks for the `status` of the job.

    At `status` the job is in Slurm and in NeMo-Run's own list, and nothing is printed yet.
    """

    def __init__(self, rig: Rig, moment: str) -> None:
        self._file = rig.knobs / "hold" / moment
        self._reached = rig.knobs / "hold" / f"{moment}.reached"
        self._knob = rig.knob(f"hold/{moment}", "")

    def __enter__(self) -> LaunchHold:
        self._reached.unlink(missing_ok=True)
        self._knob.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._knob.__exit__(None, None, None)

    def release(self) -> None:
        """Let the launch continue."""
        self._file.unlink()

    def wait(self) -> None:
        """Wait until a launch has reached the moment."""
        until(self._reached.exists, "the launch waits")


ONLY_LAUNCH_SH, WITH_ALL = "", "-"


def kill(trial: Trial, run: Run, whom: str) -> None:
    """End launch.sh alone, or launch.sh and all its children."""
    until(lambda: group_of(run) != "-", "the launch has begun")
    trial.rig.as_root(["kill", "-9", "--", f"{whom}{group_of(run)}"], check=True)
    trial.tally.drops += 1
