"""A run of several jobs, as a launch of NeMo-Run may make them, on a real Slurm: the last is watched, all are seen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.launch.run import Run
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.runs_feed import poll_jobs
from llmb_tui.watch.state import RunState
from tests.kit.runs import make_run
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.stream import log_writer

NAMES = ("profile", "plain")
SCRIPT = """#!/bin/sh
#SBATCH --job-name=llmbench-llmbench.{name}
#SBATCH --output={folder}/sbatch_{name}_%j.out
cp {folder}/steps {folder}/log-{name}_"$SLURM_JOB_ID"_0.out
until [ -e {folder}/end-{name} ]; do sleep 0.2; done
"""


@dataclass
class Launched:
    """The run's two jobs."""

    services: Services
    folder: Path
    run_id: str

    @property
    def run(self) -> Run:
        return self.services.runs.load(self.run_id)

    def is_active(self) -> bool:
        return self.run.is_active

    def end(self, name: str) -> None:
        """Let a job end."""
        (self.folder / f"end-{name}").touch()

    def over(self) -> bool:
        """Ask Slurm once whether both have ended: a job is COMPLETING before that, which is no end yet."""
        poll_jobs(self.services.clusters.cluster("rig"), self.services.runs, [self.run])
        return not self.is_active()


@pytest.fixture
def launched(rig: Rig, tmp_path: Path) -> Iterator[Launched]:
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    services.clusters.save(rig.profile(name="rig"))
    folder = rig.new_dir()
    steps = "".join(log_writer.STEP.format(i=i, seconds=2.0, samples=256 * i + 256) for i in range(3))
    (folder / "steps").write_text(steps)
    sbatch = ["sbatch", "--parsable"]
    scripts = [SCRIPT.format(name=name, folder=folder) for name in NAMES]
    jobs = tuple(rig.as_operator(sbatch, stdin=script, check=True).stdout.strip() for script in scripts)
    log = JobLog(f"{folder}/log-plain_%j_%r.out", (f"{folder}/sbatch_plain_%j.out",))
    run = make_run(spec=None, procedure="upstream", cluster="rig", log=log, job_ids=jobs, job_state=None)
    services.runs.save(run)
    yield Launched(services, folder, run.id)
    services.clusters.close()
    rig.cancel_jobs()


@pytest.fixture
def watch(launched: Launched) -> Callable[[], RunState]:
    """Watch the run to the end of the job that counts."""
    return lambda: launched.services.feed.monitor(launched.run_id).watch(lambda _: None, threading.Event())


def states(run: Run) -> dict[str, str | None]:
    return dict(zip(NAMES, map(run.state_of, run.job_ids), strict=True))


def test_the_last_job_is_watched_and_the_other_is_seen(launched: Launched, watch: Callable[[], RunState]) -> None:
    launched.end("plain")
    final = watch()
    profile, plain = launched.run.job_ids
    assert (final.job and (final.job.id, final.job.state), final.progress.steps_done) == ((plain, "COMPLETED"), 3)
    assert [(job.id, job.state) for job in final.others] == [(profile, "RUNNING")]
    assert states(launched.run) == {"profile": "RUNNING", "plain": "COMPLETED"}
    assert launched.is_active(), "a job of it has not ended"

    launched.end("profile")
    until(launched.over, "its end is seen")
    assert states(launched.run) == {"profile": "COMPLETED", "plain": "COMPLETED"}
    assert [job.state for job in watch().others] == ["COMPLETED"]


def test_the_other_job_may_end_first(launched: Launched) -> None:
    launched.end("profile")
    monitor = launched.services.feed.monitor(launched.run_id)
    seen = [monitor.once()]

    def over() -> bool:
        seen.append(monitor.once())
        job, other = seen[-1].job, seen[-1].others[0]
        return other.finished and job is not None and not job.waiting

    until(over, "its end is seen, and the start of the one that is watched")
    job = seen[-1].job
    assert job is not None
    assert (job.state, seen[-1].others[0].state) == ("RUNNING", "COMPLETED")
    assert states(launched.run) == {"profile": "COMPLETED", "plain": "RUNNING"}
    assert launched.is_active()


def test_cancelling_ends_them_all(launched: Launched, watch: Callable[[], RunState]) -> None:
    launched.services.feed.cancel(launched.run)
    assert watch().stage == "cancelled"
    until(launched.over, "both are known to have ended")
    assert states(launched.run) == {"profile": "CANCELLED", "plain": "CANCELLED"}
