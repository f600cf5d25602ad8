"""One query for many runs, over a real connection to the embedded cluster."""

from __future__ import annotations

from pathlib import Path

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.runs_feed import poll_jobs
from tests.kit.runs import make_run

SCRIPT = b"#!/bin/bash\nsleep 600\n"


def test_job_states_from_slurm_are_saved_and_unknown_jobs_keep_theirs(tmp_path: Path) -> None:
    runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
    with DemoCluster(tmp_path / "cluster", speed=30.0) as demo:
        session = SlurmCluster(demo.profile)
        submit = ["sbatch", "--parsable", "--account=demo", "--partition=batch", "--nodes=1"]
        job_id = session.run(submit, stdin=SCRIPT).stdout.strip()
        session.run(["scancel", job_id])
        known = make_run("known", job_ids=(job_id,), job_state="PENDING")
        forgotten = make_run("forgotten", job_ids=("999999",), job_state="RUNNING")
        for run in (known, forgotten):
            runs.save(run)
        assert poll_jobs(session, runs, [known, forgotten]) == 1
        assert poll_jobs(session, runs, [runs.load("known"), forgotten]) == 0
        session.close()
    assert runs.load("known").job_state == "CANCELLED"
    assert runs.load("forgotten").job_state == "RUNNING"
