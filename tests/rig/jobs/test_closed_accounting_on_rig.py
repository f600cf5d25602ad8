"""A real Slurm whose accounting the user cannot query, with a queue that forgets ended jobs at once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llmb_tui.cluster.failures import AnswerTooLongError
from llmb_tui.cluster.job import END_UNKNOWN, LEFT_QUEUE
from llmb_tui.cluster.job_words import wait_word
from llmb_tui.cluster.slurm.client import find_jobs
from llmb_tui.watch.runs_feed import poll_jobs
from tests.kit.runs import make_run
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.jobs.watched import Site

SITES = Path(__file__).parents[2] / "cluster" / "sites"
LAST_STEP = (
    "Training epoch 0, iteration 49/49 | lr: 0.0003 | global_batch_size: 64 | global_step: 49 | "
    "reduced_train_loss: 10.0 | train_step_timing in s: 2.0 | consumed_samples: 3200"
)


@contextmanager
def program(rig: Rig, name: str, text: str) -> Iterator[None]:
    """A program before Slurm's own in the user's PATH."""
    path = rig.directory / "bin" / name
    path.write_text(text)
    path.chmod(0o755)
    try:
        yield
    finally:
        path.unlink()


@contextmanager
def refused_by_a_wrapper(rig: Rig) -> Iterator[None]:
    with program(rig, "sacct", (SITES / "09-not-permitted.sacct").read_text()):
        yield


@contextmanager
def not_executable(rig: Rig) -> Iterator[None]:
    """Slurm's own `sacct`, which only root may run."""
    copy = rig.directory / "sacct-of-root"
    shutil.copy("/usr/bin/sacct", copy)
    copy.chmod(0o700)
    rig.as_root(["mount", "--bind", str(copy), "/usr/bin/sacct"], check=True)
    try:
        yield
    finally:
        rig.as_root(["umount", "--lazy", "/usr/bin/sacct"], check=True)


@contextmanager
def absent(rig: Rig) -> Iterator[None]:
    """A PATH with every program but `sacct`."""
    link = "mkdir -p programs && ln -sf /usr/bin/* /usr/local/bin/* programs/ && rm programs/sacct"
    rig.as_operator(f"{link} && echo 'PATH=$HOME/programs' >.bashrc", check=True)
    try:
        yield
    finally:
        rig.as_operator("rm -rf programs .bashrc", check=True)


@pytest.mark.parametrize("closed", [refused_by_a_wrapper, not_executable, absent])
def test_runs_end_by_the_queue_and_their_logs(closed: object, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(closed)
    monkeypatch.setattr("llmb_tui.launch.run.GONE_AFTER_S", 2.0)
    monkeypatch.setattr("llmb_tui.watch.job_poller.GONE_AFTER_S", 2.0)
    with program(site.rig, "squeue", (SITES / "08-purging.squeue").read_text()), closed(site.rig):
        done = site.watch(f"echo '{LAST_STEP}'", gone_after_s=2.0)
        failed = site.watch("echo starting; sleep 1; exit 3", gone_after_s=2.0)
        ends = {watched: watched.end() for watched in (done, failed)}
        assert [state.stage for state in ends.values()] == ["done", "failed"]
        notes = " ".join(state.slurm_note for watched in ends for state in watched.states)
        assert "accounting cannot be queried" in notes
        assert "down" not in notes
        assert "hangs" not in notes
        run = make_run(job_ids=(done.job_id,), log_read=False)
        site.runs.save(run)
        until(lambda: poll_jobs(site.session, site.runs, [run]) and not site.runs.load(run.id).is_active)
        assert site.runs.load(run.id).job_state == END_UNKNOWN
        assert [job.state for job in site.session.query_jobs([done.job_id]).values()] == [LEFT_QUEUE]
        assert find_jobs(site.session, "no-such-job") == []


def test_a_squeue_that_prints_without_end_is_named_at_once(site: Site) -> None:
    with (
        program(site.rig, "squeue", "#!/bin/sh\nexec yes\n"),
        pytest.raises(AnswerTooLongError, match="`squeue`") as caught,
    ):
        site.session.query_jobs(["1"])
    assert "16 MiB" in caught.value.what


def test_a_job_that_is_too_small_for_its_qos_has_that_reason(site: Site) -> None:
    rig = site.rig
    change = "sacctmgr -i add qos bigonly MinTRES=node=4 && sacctmgr -i modify user operator set qos+=bigonly"
    rig.as_root(change, check=True)
    try:
        job = site.submit("#!/bin/sh\nsleep 60\n", "--qos=bigonly", "--nodes=2", "--output=/dev/null")
        assert job.returncode == 0, job.stderr
        job_id = job.stdout.strip()
        word = until(lambda: wait_word(site.session.query_jobs([job_id])[job_id]), "Slurm has a reason")
        assert word == "QOSMinNode"
    finally:
        rig.cancel_jobs()
        rig.as_root("sacctmgr -i modify user operator set qos-=bigonly; sacctmgr -i delete qos bigonly")
