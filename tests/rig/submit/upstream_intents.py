"""Runs by NVIDIA's scripts to submit on a rig, and an sbatch that says which launch called it.

The names of their jobs are the recipes', so Slurm alone does not tell what became of which run. In front of the real
sbatch stands one that gives each job the process group of its launch as the comment: that is the truth at the end.
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
# While the file hold/MOMENT is there, it waits; of sacct only what a launch calls.
_AT = r"""
at() {
    while [ -e "/run/rig/hold/$1" ]; do
        touch "/run/rig/hold/$1.reached"
        sleep 0.05
    done
}
"""
# Jobs are held: they cost nothing but their place in the queue.
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
    """Makes runs of one recipe, which is installed once."""

    def __init__(self, rig: Rig, catalog: Catalog, name: str) -> None:
        self._rig = rig
        self.site = UpstreamSite(rig, catalog, name)
        self.site.plan = self._plan = plan(catalog, SELECTIONS[name])
        states = self.site.run()
        bad = {kind: self.site.log(kind) for kind, state in states.items() if state.status != "done"}
        assert not bad, bad
        self._numbers = itertools.count(1)

    def new(self, **spec: object) -> Run:
        """One more run of the same selection."""
        request = RunRequest(self.site.recipe, self._plan, self.profile(), "upstream")
        made = upstream_spec(request, f"{id(self):x}p{next(self._numbers)}")
        return Run.of(request, replace(made, **spec), 0.0)  # type: ignore[arg-type] # fields of the spec

    def script(self, run: Run, *lines: str) -> str:
        """What is submitted of a run, as it was shown; it takes no more options."""
        assert not lines
        return spec_of(run).command

    def profile(self) -> SlurmProfile:
        """How to reach the rig."""
        return self.site.profile

    def jobs(self, runs: Iterable[Run]) -> dict[str, list[str]]:
        """Numbers of the jobs that each run's launch has submitted, by the run's id."""
        listed = self._rig.as_operator("squeue --me -h -t all -O JobID:20,Comment:20", check=True).stdout
        by_group: dict[str, list[str]] = {}
        for job_id, *group in sorted((line.split() for line in listed.splitlines()), key=lambda row: int(row[0])):
            by_group.setdefault("".join(group), []).append(job_id)
        return {run.id: by_group.get(group_of(run), []) for run in runs}


def spec_of(run: Run) -> UpstreamSpec:
    """Of a run by NVIDIA's scripts."""
    assert isinstance(run.spec, UpstreamSpec)
    return run.spec


def folder_of(run: Run) -> Path:
    """Of a launch, as this machine sees it: where the cluster does."""
    return Path(spec_of(run).folder)


def group_of(run: Run) -> str:
    """Process group of a launch; a dash where it never began, or was withdrawn."""
    claim = folder_of(run) / "claim"
    return ([*str(claim.readlink()).split(), "-"])[1] if claim.is_symlink() else "-"


@contextlib.contextmanager
def recorded_sbatch(rig: Rig) -> Iterator[None]:
    """Within the block sbatch says in each job which launch called it, and holds the job."""
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


class Held:
    """A moment that launches stop at: `before` sbatch, `after` it, or when NeMo-Run asks for the `status` of the job.

    By then the job is in Slurm and in NeMo-Run's own list, and nothing was printed.
    """

    def __init__(self, rig: Rig, moment: str) -> None:
        self._file = rig.knobs / "hold" / moment
        self._reached = rig.knobs / "hold" / f"{moment}.reached"
        self._knob = rig.knob(f"hold/{moment}", "")

    def __enter__(self) -> Held:
        self._reached.unlink(missing_ok=True)
        self._knob.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._knob.__exit__(None, None, None)

    def release(self) -> None:
        """Let it go on."""
        self._file.unlink()

    def wait(self) -> None:
        """Until a launch has come to it."""
        until(self._reached.exists, "the launch waits")


ONLY_LAUNCH_SH, WITH_ALL = "", "-"


def kill(trial: Trial, run: Run, whom: str) -> None:
    """End launch.sh alone, or all that it has started too."""
    until(lambda: group_of(run) != "-", "the launch has begun")
    trial.rig.as_root(["kill", "-9", "--", f"{whom}{group_of(run)}"], check=True)
    trial.tally.drops += 1
