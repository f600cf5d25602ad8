"""Ends of jobs on a real Slurm, and the monitor's report of each: the reason with the line of the log."""

from __future__ import annotations

from llmb_tui.watch.state import RunState
from tests.kit.reasons import TIME_LIMIT, training_reason
from tests.kit.waiting import until
from tests.rig.jobs.watched import Site, WatchedRun

TWO_TASKS = ("-N", "1", "-n", "2")


def failure(state: RunState) -> tuple[str, str]:
    assert state.progress.failure is not None, state
    return state.progress.failure.reason, state.progress.failure.line


def update(site: Site, watched: WatchedRun, change: str) -> bool:
    """Return whether the controller accepts a change to a job."""
    return site.rig.as_root(["scontrol", "update", f"JobId={watched.job_id}", change]).returncode == 0


def accounting(site: Site) -> list[dict[str, str]]:
    """Stored accounting of the first watched run, line by line.

    Slurm's database may learn of an end late; the monitor asks it again at each look at the run.
    """
    path, monitor = site.runs.folder("rigrun1") / "accounting.txt", site.watched[0].monitor
    until(lambda: path.exists() or not monitor.once(), "accounting has the end of the job")
    heading, *lines = path.read_text().splitlines()
    return [dict(zip(heading.split("|"), line.split("|"), strict=True)) for line in lines]


def test_a_node_that_fails_is_named(site: Site) -> None:
    watched = site.watch("echo begins; sleep 600", "-w", "cn003", "--no-requeue")
    watched.running()
    site.rig.as_root("scontrol update NodeName=cn003 State=DRAIN Reason=xid79", check=True)
    with site.rig.node_down("cn003"):
        final = watched.end()
    assert final.job is not None
    assert (final.stage, final.job.state, final.job.node_list) == ("node_fail", "NODE_FAIL", "cn003")
    assert any("cn003" in node and "xid79" in node for node in final.job.bad_nodes)
    reason, line = failure(final)
    assert reason == "A node of the job failed."
    assert "cn003" in line or "NODE FAILURE" in line


def test_a_requeued_job_continues_in_a_second_log(site: Site) -> None:
    watched = site.watch("echo start ${SLURM_RESTART_COUNT:-0}; [ ${SLURM_RESTART_COUNT:-0} = 1 ] || sleep 600")
    watched.running()
    site.rig.as_operator(["scontrol", "requeue", watched.job_id], check=True)
    again = watched.wait_for(lambda state: state.job and state.job.restarts == 1 and state.job.state == "PENDING")
    assert again.stage == "queued"
    # A node refuses a start within a second after the end of the previous one ("already killed, do not launch").
    until(lambda: update(site, watched, "StartTime=now+3"), "the job can be updated")
    final = watched.end()
    assert final.job is not None
    assert (final.job.state, final.job.restarts, final.log_name) == ("COMPLETED", 1, "log.1")
    folder = site.runs.folder("rigrun1")
    assert (folder / "log").read_text().startswith("start 0\n")
    assert (folder / "log.1").read_text() == "start 1\n"
    lines = accounting(site)
    assert [(line["JobID"], line["State"]) for line in lines] == [
        (watched.job_id, "REQUEUED"),
        (watched.job_id, "COMPLETED"),
    ]
    assert 0 <= float(lines[1]["End"]) - float(lines[1]["Start"]) < 60, "the times are not Unix times"
    # For a very short job the database may receive the end before the start, and only the start has the partition.
    assert (lines[0]["Partition"], lines[1]["NodeList"]) == ("batch", final.job.node_list)


def test_the_time_limit(site: Site) -> None:
    watched = site.watch("echo begins; sleep 600")
    watched.running()
    # The controller refuses a past time, and `now` is past if a second ends before the request arrives.
    until(lambda: update(site, watched, "EndTime=now"), "the controller accepts the new end")
    final = watched.end()
    assert final.job is not None
    assert (final.stage, final.job.state) == ("timeout", "TIMEOUT")
    reason, line = failure(final)
    assert reason == training_reason(TIME_LIMIT)
    assert "DUE TO TIME LIMIT" in line or line == "Slurm: TIMEOUT"


def test_out_of_host_memory(site: Site) -> None:
    greedy = "echo begins; exec /usr/bin/python3 -c 'import time; x = bytes(1) * (400 << 20); time.sleep(600)'"
    final = site.watch(greedy, "--mem=100M").end()
    assert final.stage == "failed"
    reason, line = failure(final)
    assert reason == "A node ran out of host memory, and the kernel or Slurm killed the task."
    # With cgroups the kernel kills the process, otherwise Slurm's own sampling.
    assert "oom-kill event" in line or "exceeded memory limit" in line


def test_one_rank_that_fails_ends_the_others(site: Site) -> None:
    line = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    command = f"if [ $SLURM_PROCID = 1 ]; then sleep 1; echo '{line}'; exit 1; fi; sleep 600"
    final = site.watch(command, *TWO_TASKS).end()
    assert final.job is not None
    assert (final.stage, final.job.state) == ("failed", "FAILED")
    assert final.job.exit_code != "0:0"
    assert failure(final) == (training_reason(line), line.removeprefix("[rank1]: "))


def test_a_rank_that_is_killed_from_outside(site: Site) -> None:
    final = site.watch("if [ $SLURM_PROCID = 1 ]; then sleep 1; kill -9 $$; fi; sleep 600", *TWO_TASKS).end()
    assert final.stage == "failed"
    reason, line = failure(final)
    assert reason == "A task was killed from outside."
    assert "task 1: Killed" in line


def test_a_missing_program_is_reported(site: Site) -> None:
    final = site.watch("exec /no/such/program").end()
    assert final.stage == "failed"
    assert failure(final)[1]


def test_an_output_file_that_cannot_be_written(site: Site) -> None:
    final = site.watch("true", "--output=/no/such/folder/%j.out").end()
    assert final.job is not None
    assert (final.stage, final.job.state) == ("failed", "FAILED")
    assert final.job.exit_code in ("0:53", "15:53"), "exit code 15 if Slurm had begun to end the job"
    assert failure(final) == (
        "Slurm could not write the job's output file.",
        f"Slurm: FAILED, exit code {final.job.exit_code}",
    )


def test_the_user_who_cancelled_a_job_is_named(site: Site) -> None:
    watched = site.watch("echo begins; sleep 600")
    watched.running()
    site.rig.as_root(["scancel", watched.job_id], check=True)
    final = watched.end()
    assert final.job is not None
    assert (final.stage, final.job.state) == ("cancelled", "CANCELLED")
    assert final.job.reason == "cancelled by an administrator (root)"
    assert final.progress.failure is None
