"""One look for many runs, over a real connection to the embedded cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llmb_tui.cluster.prompter import Unattended
from llmb_tui.cluster.session import Session
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import Places
from llmb_tui.watch.roster import look_at

SCRIPT = b"#!/bin/bash\nsleep 600\n"


def test_what_slurm_says_is_remembered_and_what_it_does_not_know_stays(
    tmp_path: Path, a_run: Callable[..., Run]
) -> None:
    runs = Runs(Places(tmp_path / "config", tmp_path / "state"))
    with DemoCluster(tmp_path / "cluster", speed=30.0) as demo:
        session = Session(demo.profile, Unattended())
        submit = ["sbatch", "--parsable", "-A", "demo", "-p", "batch", "-N", "1"]
        job_id = session.run(submit, stdin=SCRIPT).stdout.strip()
        session.run(["scancel", job_id])
        known = a_run("known", job_ids=(job_id,), job_state="PENDING")
        forgotten = a_run("forgotten", job_ids=("999999",), job_state="RUNNING")
        for run in (known, forgotten):
            runs.save(run)
        assert look_at(session, runs, [known, forgotten]) == 1
        assert look_at(session, runs, [runs.load("known"), forgotten]) == 0
        session.close()
    assert runs.load("known").job_state == "CANCELLED"
    assert runs.load("forgotten").job_state == "RUNNING"
