"""A job that Slurm starts again writes a second log: both logs are copied, and the newest is watched."""

from __future__ import annotations

import threading
from pathlib import Path

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.job_poller import JobPoller
from llmb_tui.watch.monitor import Monitor
from llmb_tui.watch.state import RunState
from tests.kit.runs import direct_spec, make_run, make_spec
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.stream import log_writer

# Each start writes its number and one step more than the previous one, and then waits until it may end.
SCRIPT = """#!/bin/sh
#SBATCH --job-name={job_name}
#SBATCH --account=llmbench
#SBATCH --partition=batch
#SBATCH --requeue
#SBATCH --output={task_dir}/sbatch_{job_name}_%j.out
restart=${{SLURM_RESTART_COUNT:-0}}
sleep $((2 * restart))  # as an image takes time, and the log only begins after it
{{
    echo "start $restart"
    head -n "$((restart + 1))" {task_dir}/steps
}} > {task_dir}/log-{job_name}_${{SLURM_JOB_ID}}_$restart.out
until [ -e {task_dir}/end ]; do sleep 0.2; done
"""


class SubmittedJob:
    """The job and its run."""

    def __init__(self, rig: Rig, tmp_path: Path) -> None:
        self.rig = rig
        self.task_dir = rig.new_dir()
        spec = make_spec(task_dir=self.task_dir)
        steps = "".join(log_writer.STEP.format(i=i, seconds=2.0, samples=256 * i + 256) for i in range(9))
        (self.task_dir / "steps").write_text(steps)
        batch = SCRIPT.format(job_name=spec.job_name, task_dir=self.task_dir)
        self.job = rig.as_operator(["sbatch", "--parsable"], stdin=batch, check=True).stdout.strip()
        self.run = make_run("run1", self.task_dir, cluster="rig", job_ids=(self.job,), job_state=None)
        self.runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
        self.runs.save(self.run)

    def requeue(self) -> None:
        """Have Slurm start the job again soon; by default it waits two minutes; without any wait the start fails."""
        self.rig.as_operator(["scontrol", "requeue", self.job], check=True)
        waiting = ["squeue", "-h", "-j", self.job, "-t", "PENDING", "-o", "%r"]
        until(lambda: self.rig.as_operator(waiting).stdout.strip() == "BeginTime", "it waits")
        self.rig.as_operator(["scontrol", "update", f"jobid={self.job}", "StartTime=now+3"], check=True)

    def log(self, restart: int) -> Path:
        return Path(direct_spec(self.run).log.path(self.job, restart))


def test_both_logs_are_copied(rig: Rig, tmp_path: Path) -> None:
    submitted = SubmittedJob(rig, tmp_path)
    session = SlurmCluster(rig.profile())
    states: list[RunState] = []
    poller = JobPoller(session, every_s=0.5)
    monitor = Monitor(session, submitted.runs, submitted.run, poller)
    watching = threading.Thread(target=monitor.watch, args=(states.append, threading.Event()), daemon=True)
    watching.start()
    until(lambda: states and states[-1].progress.steps_done == 1, "the step of the first log")
    submitted.requeue()
    until(lambda: states[-1].log_name == "log.1" and states[-1].progress.steps_done == 2, "the steps of the second log")
    (submitted.task_dir / "end").touch()
    watching.join(60)
    poller.close()
    session.close()
    assert not watching.is_alive()
    assert states[-1].job is not None
    assert (states[-1].job.state, states[-1].job.restarts) == ("COMPLETED", 1)
    folder = submitted.runs.folder(submitted.run.id)
    for restart, name in enumerate(("log", "log.1")):
        assert (folder / name).read_bytes() == submitted.log(restart).read_bytes()
        assert (folder / name).read_text().startswith(f"start {restart}\n")
