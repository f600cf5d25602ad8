"""Small jobs on the rig that are watched like runs: their scripts start tasks as NeMo-Run's scripts do."""

from __future__ import annotations

import shlex
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.job_poller import JobPoller
from llmb_tui.watch.monitor import Monitor
from llmb_tui.watch.state import RunState
from tests.kit.runs import NEMOTRON, direct_spec, intended_run, request_for
from tests.kit.watching import BackgroundWatch
from tests.rig.cluster import Rig

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --output={folder}/sbatch_{name}_%j.out
#SBATCH --open-mode=append
srun --output {folder}/log-{name}_%j_${{SLURM_RESTART_COUNT:-0}}.out --kill-on-bad-exit=1 bash -c {command}
"""


class WatchedRun(BackgroundWatch):
    """A watched run with the poller of its job."""

    def __init__(self, monitor: Monitor, poller: JobPoller, job_id: str) -> None:
        super().__init__(monitor, deadline_s=120.0)
        self.poller, self.job_id = poller, job_id

    def running(self) -> RunState:
        return self.wait_for(lambda state: state.job and state.job.state == "RUNNING" and state.log_bytes)

    def leave(self) -> None:
        self.stop.set()
        self.poller.close()
        self.end()


class Site:
    """One operator's stored runs on the rig."""

    def __init__(self, rig: Rig, folder: Path) -> None:
        self.rig = rig
        self.profile = rig.profile(install_dir=str(rig.new_dir()))
        self.session = SlurmCluster(self.profile)
        self.runs = Runs(UserPaths(folder / "config", folder / "state"))
        self.watched: list[WatchedRun] = []

    def watch(self, command: str, *options: str, **settings: float) -> WatchedRun:
        """Submit a job whose tasks run a line of bash, and watch it with a monitor that has these settings."""
        run = intended_run(request_for(NEMOTRON, self.profile), f"rigrun{len(self.watched) + 1}")
        spec = direct_spec(run)
        self.rig.as_operator(["mkdir", "-p", spec.task_dir], check=True)
        script = SCRIPT.format(name=spec.job_name, folder=spec.task_dir, command=shlex.quote(command))
        submitted = self.submit(script, *options)
        assert submitted.returncode == 0, submitted.stderr
        job_id = submitted.stdout.strip()
        now = time.time()
        run = replace(run, created_at=now, submission="submitted", job_ids=(job_id,), submitted_at=now)
        poller = JobPoller(self.session, every_s=1.0)
        monitor = Monitor(self.session, self.runs, run, poller, **settings)
        self.watched.append(WatchedRun(monitor, poller, job_id))
        return self.watched[-1]

    def submit(self, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        return self.rig.as_operator(["sbatch", "--parsable", *options], stdin=script)

    def close(self) -> None:
        for watched in self.watched:
            watched.leave()
        self.session.close()
