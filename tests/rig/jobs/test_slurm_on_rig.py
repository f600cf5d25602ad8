"""Queries and cancels on a real Slurm, also while the controller or the accounting is down or hangs."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast

import pytest

from llmb_tui.cluster.cluster import CancelUnconfirmedError
from llmb_tui.cluster.job import LEFT_QUEUE, Job
from llmb_tui.cluster.slurm.accounting import DEFAULT_ACCOUNT
from llmb_tui.cluster.slurm.client import find_jobs, own_jobs, partitions
from llmb_tui.cluster.slurm.errors import AccountingError, SlurmError
from llmb_tui.store.journal import Journal
from llmb_tui.watch.events import JobUpdated, PollFailed, WatchEvent
from llmb_tui.watch.job_poller import JobPoller
from llmb_tui.watch.runs_feed import RunsFeed
from llmb_tui.watch.timing import Timing
from tests.kit.runs import make_run
from tests.kit.waiting import until
from tests.rig.jobs.watched import Site
from tests.rig.line import Line
from tests.rig.recorded_calls import recorded_calls
from tests.rig.submit.cut_session import Cut, CutSession

SLEEPS = "#!/bin/sh\nsleep 600\n"
WHOLE = ("--exclusive", "-N")


def submitted(site: Site, *options: str, script: str = SLEEPS) -> str:
    done = site.submit(script, "--output=/dev/null", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def in_state(site: Site, job_id: str, condition: Callable[[Job], object]) -> Job:
    jobs: list[Job] = []

    def fits() -> bool:
        jobs[:] = site.session.query_jobs([job_id]).values()
        return bool(jobs) and bool(condition(jobs[0]))

    until(fits, f"job {job_id} is as expected")
    return jobs[0]


def test_one_query_returns_jobs_in_every_state(site: Site) -> None:
    runs = submitted(site, *WHOLE, "4", "-t", "10", "-J", "grö ße|with pipe")
    in_state(site, runs, lambda job: job.state == "RUNNING")
    waits = submitted(site, *WHOLE, "4", "-J", "waits")
    held_job = submitted(site, "--hold", "-J", "held")
    after = submitted(site, "-d", f"afterok:{waits}", "-J", "after")
    fails = submitted(site, "-p", "cpu", "-J", "fails", script="#!/bin/sh\nexit 3\n")
    in_state(site, fails, lambda job: job.finished)
    in_state(site, waits, lambda job: job.starts_at)
    jobs = site.session.query_jobs([runs, waits, held_job, after, fails, "999999"])
    assert jobs.keys() == {runs, waits, held_job, after, fails}
    assert (jobs[runs].name, jobs[runs].nodes, jobs[runs].node_list) == ("grö ße|with pipe", 4, "cn[001-004]")
    assert (jobs[waits].state, jobs[waits].reason) == ("PENDING", "Resources")
    assert jobs[waits].starts_at == pytest.approx(time.time() + 600, abs=120)
    assert (jobs[held_job].reason, jobs[after].reason) == ("JobHeldUser", "Dependency")
    assert (jobs[fails].state, jobs[fails].exit_code, jobs[fails].node_list) == ("FAILED", "3:0", "cpu001")


def test_slurm_variables_in_the_users_bashrc_change_no_answer(site: Site) -> None:
    job_id = submitted(site, "-J", "mine")
    names = (
        "SQUEUE_PARTITION=cpu",
        "SQUEUE_ACCOUNT=other",
        "SQUEUE_FORMAT=%i",
        "SCANCEL_NAME=x",
        "SCANCEL_STATE=SUSPENDED",
        "SINFO_PARTITION=cpu",
    )
    profile = site.rig.home / ".bashrc"
    before = profile.read_text() if profile.exists() else ""
    profile.write_text(before + "".join(f"export {name}\n" for name in names) + "export SLURM_TIME_FORMAT=relative\n")
    try:
        assert site.session.run(["printenv", "SQUEUE_PARTITION"]).stdout == "cpu\n"
        assert {"batch", "cpu"} <= {partition.name for partition in partitions(site.session)}
        in_state(site, job_id, lambda job: job.state == "RUNNING")
        site.session.cancel(job_id)
        assert in_state(site, job_id, lambda job: job.finished).state == "CANCELLED"
    finally:
        profile.write_text(before)


def test_cancelling(site: Site) -> None:
    job_id = submitted(site)
    site.session.cancel(job_id)
    job = in_state(site, job_id, lambda job: job.finished and job.reason)
    assert (job.state, job.reason) == ("CANCELLED", "cancelled by its owner")
    site.session.cancel(job_id)
    site.session.cancel("999999")


def test_a_cancel_whose_answer_is_lost_with_the_line_is_settled_by_the_next_look(site: Site) -> None:
    job_id = submitted(site)
    run = make_run("lost", cluster="rig", job_ids=(job_id,))
    site.runs.save(run)
    with Line(site.rig.port()) as line:
        uncut = CutSession(site.profile, line)
        for _ in range(2):  # the first call of a connection transfers more bytes
            uncut.cancel("999999")
        uncut.close()
        # The first call asks the queue; the second is the cancel, and half of its answer is cut off.
        session = CutSession(site.profile, line, Cut(2, down=uncut.sizes[1][1] // 2, stays=True))
        clusters = SimpleNamespace(cluster=lambda _: session, poller=lambda _: SimpleNamespace(poll_soon=lambda: None))
        journal = Journal(site.runs.folder("lost") / "journal")
        feed = RunsFeed(site.runs, journal, cast("Any", clusters), threshold=0.95, timing=Timing())
        with pytest.raises(CancelUnconfirmedError):
            feed.cancel(run)
        assert "it may still cancel it" in site.runs.load("lost").cancel_note
        line.accept()

        def settled() -> bool:
            # A line that refused connections a moment ago may not be back yet.
            return not feed.poll() and not site.runs.load("lost").is_active

        until(settled, "the run is no longer active")
        assert "was carried out" in site.runs.load("lost").cancel_note
        session.close()


def test_a_job_of_another_user_is_not_cancelled(site: Site) -> None:
    site.rig.as_root(["sacctmgr", "-i", "add", "user", "root", "account=llmbench"])
    command = ["sbatch", "--parsable", "-A", "llmbench", "-o", "/dev/null", "--wrap", "sleep 600"]
    job_id = site.rig.as_root(command, check=True).stdout.strip()
    with pytest.raises(SlurmError) as caught:
        site.session.cancel(job_id)
    assert "denied" in caught.value.why
    assert "another user" in caught.value.why
    assert job_id in site.rig.squeue()
    # The queue lists only the operator's own jobs; accounting may already have the other user's job.
    assert all("queue no longer has it" in job.reason for job in site.session.query_jobs([job_id]).values())


def test_jobs_are_found_by_name_after_their_end_too(site: Site) -> None:
    name = "llmbench-llmbench.x_abc"
    first_job = submitted(site, "-J", name, script="#!/bin/sh\ntrue\n")
    in_state(site, first_job, lambda job: job.finished)
    second = submitted(site, "-J", name)
    submitted(site, "-J", f"{name}d")
    assert [job.id for job in find_jobs(site.session, name)] == [first_job, second]


def test_a_hanging_controller_costs_one_timeout_and_changes_no_job(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, look = list[Sequence[str]](), site.session.query_jobs

    def counted(job_ids: Sequence[str]) -> dict[str, Job]:
        looks.append(job_ids)
        return look(job_ids)

    monkeypatch.setattr(site.session, "query_jobs", counted)
    with recorded_calls(site.rig, "squeue", "sacct", "scontrol", "sinfo") as calls:
        watched = site.watch("echo begins; sleep 600")
        watched.running()
        with site.rig.controller_hung():
            state_count = len(watched.states)
            with pytest.raises(SlurmError) as caught:
                site.session.query_jobs([watched.job_id, "999999"])
            state = watched.wait_for(lambda state: state.slurm_note, after=state_count)
        commands = calls()
    assert "timed out" in caught.value.why
    # Each look is one squeue, also a failed look; the last look may not have started its squeue yet.
    assert {call.split()[0] for call in commands} == {"squeue"}
    assert len(commands) <= len(looks)
    assert (state.link, state.job and state.job.state) == ("live", "RUNNING")
    assert "timed out" in state.slurm_note
    mended = watched.wait_for(lambda state: not state.slurm_note, after=watched.states.index(state))
    assert mended.stage == state.stage


def test_the_queue_works_without_its_database(site: Site) -> None:
    runs = submitted(site)
    ended_job = submitted(site, script="#!/bin/sh\nexit 4\n")
    in_state(site, runs, lambda job: job.state == "RUNNING")
    in_state(site, ended_job, lambda job: job.finished)
    with site.rig.database_down():
        jobs = site.session.query_jobs([runs, ended_job])
        assert (jobs[runs].state, jobs[ended_job].state, jobs[ended_job].exit_code) == ("RUNNING", "FAILED", "4:0")
        with pytest.raises(SlurmError, match="sacct"):
            site.session.query_jobs([runs, "999999"])


def test_hung_accounting_is_distinguished_from_the_controller_and_delays_no_run(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb_tui.cluster.slurm.client.ENDED_WITHIN_S", 1)
    monkeypatch.setattr("llmb_tui.cluster.slurm.accounting.DEFAULT_ACCOUNT", DEFAULT_ACCOUNT.replace("6", "1"))
    queued = submitted(site, "--hold", "-J", "queued")
    steps = "for step in {0..49}; do echo Training epoch 0, iteration $step/49 '| train_step_timing in s: 5.0'; done"
    may_end = site.rig.new_dir() / "may-end"
    with site.rig.database_hung():
        assert [job.id for job in find_jobs(site.session, "queued")] == [queued]
        for ask in (
            lambda: site.session.query_jobs([queued, "999999"]),
            lambda: find_jobs(site.session, "nosuchname"),
            lambda: own_jobs(site.session, time.time() - 60.0),
        ):
            with pytest.raises(AccountingError, match="did not answer in time") as caught:
                ask()
            assert "Slurm's controller answers" in caught.value.why
        # A job that neither lists soon counts as ended; until accounting has all its jobs, the queue decides.
        watched = site.watch(f"{steps}; until [ -e {may_end} ]; do sleep 0.1; done", gone_after_s=2.0)
        watched.wait_for(lambda state: state.progress.steps_done == 50)
        with queue_forgets(site):
            may_end.touch()
            final = watched.end()
    assert (final.stage, final.progress.steps_done) == ("done", 50)
    assert final.verdict is not None


@contextlib.contextmanager
def queue_forgets(site: Site) -> Iterator[None]:
    """Make Slurm's queue forget all jobs, as it does some minutes after a job's end."""
    program = site.rig.directory / "bin" / "squeue"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    try:
        yield
    finally:
        program.unlink()


def test_a_cluster_without_accounting(site_without_accounting: Site) -> None:
    site = site_without_accounting
    job_id = submitted(site, "-J", "quiet", script="#!/bin/sh\nexit 4\n")
    job = in_state(site, job_id, lambda job: job.finished)
    assert (job.state, job.exit_code) == ("FAILED", "4:0")
    states = {key: job.state for key, job in site.session.query_jobs([job_id, "999999"]).items()}
    assert states == {job_id: "FAILED", "999999": LEFT_QUEUE}
    assert job_id in [job.id for job in find_jobs(site.session, "quiet")]


def test_nodes_that_do_not_work(site: Site) -> None:
    assert site.session.bad_nodes("cn[001-004]") == ()
    site.rig.as_root("scontrol update NodeName=cn002 State=DRAIN Reason='fan broken'", check=True)
    try:
        assert site.session.bad_nodes("cn[001-004]") == ("cn002 is drained: fan broken",)
    finally:
        site.rig.as_root("scontrol update NodeName=cn002 State=RESUME", check=True)


def test_forty_jobs_need_one_call_for_each_poll(site: Site) -> None:
    job_ids = [submitted(site, "-p", "cpu", "--hold") for _ in range(40)]
    news: SimpleQueue[WatchEvent] = SimpleQueue()
    poller = JobPoller(site.session, every_s=600.0)
    calls = site.session.calls_last_minute
    poller.follow_all(job_ids, news.put)
    events = [news.get(timeout=60) for _ in job_ids]
    assert {event.job.id for event in events if isinstance(event, JobUpdated) and event.job} == set(job_ids)
    assert (poller.calls_last_minute, site.session.calls_last_minute - calls) == (1, 1)
    poller.close()
    assert not any(isinstance(event, PollFailed) for event in events)
