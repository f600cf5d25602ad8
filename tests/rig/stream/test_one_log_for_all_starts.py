"""A job whose starts all write to one file, as those of the Hydra recipes do, on a real Slurm."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.job_poller import JobPoller
from llmb_tui.watch.monitor import Monitor
from llmb_tui.watch.run_records import RunRecords
from llmb_tui.watch.state import RunState
from tests.kit.reasons import OUT_OF_GPU_MEMORY, training_reason
from tests.kit.runs import CATALOG, make_run
from tests.kit.waiting import until
from tests.rig.cluster import Rig

# Each start makes two steps more than the previous one, and begins them after a while, as a training does.
SCRIPT = """#!/bin/bash
#SBATCH --job-name=nemo_grok1
#SBATCH --requeue
restart=${{SLURM_RESTART_COUNT:-0}}
srun {options} --output {folder}/log_%j.out --error {folder}/log_%j.err \
    bash -c "echo start $restart; sleep $((2 * restart)); head -n $((2 * restart + 2)) {folder}/steps
        until [ -e {folder}/end ]; do sleep 0.2; done; [ ! -e {folder}/fail ] || {{ cat {folder}/fail >&2; exit 1; }}"
"""
FRAME = "\rEpoch 0: :  {n}%| {n}/50 [00:10<00:00, global_step={i}.000, train_step_timing in s={s}]\n"


@dataclass
class WatchedJob:
    """A job and its watching."""

    rig: Rig
    folder: Path
    runs: Runs
    run: Run
    states: list[RunState] = field(default_factory=list)

    def log(self, ending: str = "out") -> Path:
        return self.folder / f"log_{self.run.job_ids[-1]}.{ending}"

    def copy(self, restart: int = 0) -> Path:
        return self.runs.folder(self.run.id) / (f"log.{restart}" if restart else "log")

    def start(self) -> Callable[[], RunState]:
        """Watch in a thread; returns a function that ends the watching and returns the last state."""
        session = SlurmCluster(self.rig.profile())
        poller = JobPoller(session, every_s=0.5)
        stop = threading.Event()
        self.states = [RunState(self.run.id)]
        monitor = Monitor(session, self.runs, self.runs.load(self.run.id), poller)
        thread = threading.Thread(target=monitor.watch, args=(self.states.append, stop), daemon=True)
        thread.start()

        def leave() -> RunState:
            stop.set()
            thread.join(60)
            poller.close()
            session.close()
            assert not thread.is_alive()
            return self.states[-1]

        return leave

    def once(self) -> RunState:
        session = SlurmCluster(self.rig.profile())
        try:
            return Monitor(session, self.runs, self.runs.load(self.run.id), JobPoller(session)).once()
        finally:
            session.close()

    def wait_for(self, what: str, condition: Callable[[RunState], object]) -> RunState:
        until(lambda: condition(self.states[-1]), what)
        return self.states[-1]

    def requeue(self) -> None:
        """Have Slurm start the job again soon; by default it waits two minutes; without any wait the start fails."""
        job = self.run.job_ids[-1]
        self.rig.as_operator(["scontrol", "requeue", job], check=True)
        waiting = ["squeue", "-h", "-j", job, "-t", "PENDING", "-o", "%r"]
        until(lambda: self.rig.as_operator(waiting).stdout.strip() == "BeginTime", "it waits")
        self.rig.as_operator(["scontrol", "update", f"jobid={job}", "StartTime=now+3"], check=True)

    def end(self) -> None:
        """Let the job end."""
        (self.folder / "end").touch()
        until(lambda: self.run.job_ids[-1] not in self.rig.squeue(), "the job has ended")


Submit = Callable[..., WatchedJob]


@pytest.fixture
def submit(rig: Rig, tmp_path: Path) -> Submit:
    """A function that submits the job; `options` are options of its srun."""
    run_plan = plan(CATALOG, Selection("grok1", "25.02", "314b", "h100", "bf16", 8))

    def submit(options: str = "") -> WatchedJob:
        folder = rig.new_dir()
        (folder / "steps").write_text("".join(FRAME.format(n=i + 1, i=i, s=f"{2 + i}.0") for i in range(8)))
        script = SCRIPT.format(folder=folder, options=options)
        job = rig.as_operator(["sbatch", "--parsable"], stdin=script, cwd=str(folder), check=True).stdout.strip()
        log = JobLog(f"{folder}/log_%j.out", (f"{folder}/log_%j.err", f"{folder}/slurm-%j.out"))
        run = make_run(
            plan=run_plan, spec=None, log_format="hydra", procedure="upstream", cluster="rig", log=log, job_ids=(job,),
            job_state=None,
        )  # fmt: skip
        runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))
        runs.save(run)
        return WatchedJob(rig, folder, runs, run)

    return submit


@pytest.fixture(autouse=True)
def _quick(rig: Rig) -> Iterator[None]:
    yield
    rig.cancel_jobs()


def test_an_overwritten_log_continues_in_a_second_copy(submit: Submit) -> None:
    watched = submit()
    leave = watched.start()
    watched.wait_for("the first start's steps", lambda state: state.progress.steps_done == 2)
    first_log = watched.log().read_bytes()
    watched.requeue()
    state = watched.wait_for("the second start's steps", lambda state: state.progress.steps_done == 4)
    assert (state.log_name, state.job and state.job.restarts) == ("log.1", 1)
    assert "log began anew, which is usual when a job is started again" in state.link_note
    assert f"keeps its {len(first_log):,} copied bytes" in state.link_note
    watched.end()
    watched.wait_for("the run is done", lambda state: state.stage == "done")
    leave()
    assert watched.copy().read_bytes() == first_log
    assert watched.copy(1).read_bytes() == watched.log().read_bytes()
    again = RunRecords(watched.runs).record(watched.runs.load(watched.run.id)).state
    assert (again.log_name, again.progress.steps_done) == ("log.1", 4)


def test_both_logs_are_copied_if_the_job_restarted_while_the_program_was_closed(submit: Submit) -> None:
    watched = submit()
    leave = watched.start()
    watched.wait_for("the first start's steps", lambda state: state.progress.steps_done == 2)
    leave()
    first_copy = watched.copy().read_bytes()
    watched.requeue()
    until(lambda: b"start 1" in watched.log().read_bytes(), "the second start writes")
    until(lambda: watched.once().progress.steps_done == 4, "a single look reads its steps")
    watched.end()
    state = watched.once()
    assert (state.stage, state.log_name) == ("done", "log.1")
    assert watched.copy().read_bytes() == first_copy
    assert watched.copy(1).read_bytes() == watched.log().read_bytes()


def test_a_log_that_two_starts_append_to_is_copied_into_one_file(submit: Submit) -> None:
    """The site configures Slurm to append."""
    watched = submit("--open-mode=append")
    leave = watched.start()
    watched.wait_for("the first start's steps", lambda state: state.progress.steps_done == 2)
    watched.requeue()
    state = watched.wait_for("the second start's steps", lambda state: state.progress.steps_done == 4)
    assert (state.log_name, state.link_note) == ("log", "")
    assert [index for index, _ in state.progress.step_times_s] == [0, 1, 2, 3]
    watched.end()
    watched.wait_for("the run is done", lambda state: state.stage == "done")
    leave()
    assert not watched.copy(1).exists()
    assert watched.copy().read_bytes() == watched.log().read_bytes()
    assert watched.copy().read_bytes().count(b"start") == 2


def test_the_reason_of_a_failure_is_in_the_file_next_to_the_log(submit: Submit) -> None:
    watched = submit()
    (watched.folder / "fail").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n")
    (watched.folder / "end").touch()
    leave = watched.start()
    state = watched.wait_for("the run has failed", lambda state: state.progress.failure)
    leave()
    assert state.stage == "failed"
    assert b"memory" not in watched.copy().read_bytes()
    assert state.progress.failure is not None
    assert state.progress.failure.line == "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
    assert state.why_failed == training_reason(OUT_OF_GPU_MEMORY)
