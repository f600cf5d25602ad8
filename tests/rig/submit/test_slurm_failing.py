"""Submissions while Slurm's controller or its database hangs, is down, or has forgotten jobs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.launch.direct.delivery import DirectDelivery
from llmb_tui.launch.run import Run
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.submit.intents import Intents, Laptop, Tally
from tests.rig.submit.trial import Trial

AT_ONCE = 9
_READY_WITHIN_S = 180.0
_LISTENS = "0A"
"""State of a listening socket; its receive queue is the number of waiting connections, not a number of bytes."""


def test_the_controller_hangs_when_sbatch_submits(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of nine submissions are killed while they wait, three lose their SSH session, and all time out."""
    monkeypatch.setattr(DirectDelivery, "answers_within_s", 1.0)
    monkeypatch.setattr("llmb_tui.launch.login_node.TAKEN_WITHIN_S", 40.0)
    # An sbatch gives up after ten seconds: none starts before every submission has its session and its files.
    together, begin = threading.Barrier(AT_ONCE + 1), DirectDelivery.begin

    def begin_together(delivery: DirectDelivery) -> None:
        together.wait(_READY_WITHIN_S)
        begin(delivery)

    monkeypatch.setattr(DirectDelivery, "begin", begin_together)
    runs = [trial.new() for _ in range(AT_ONCE)]
    with trial.rig.controller_hung():
        threads = [threading.Thread(target=_submit, args=(trial, run)) for run in runs]
        for thread in threads:
            thread.start()
        together.wait(_READY_WITHIN_S)
        until(lambda: len(_sbatches(trial.rig)) == AT_ONCE, "every sbatch waits for an answer")
        until(lambda: waiting_connections(trial.rig) >= AT_ONCE, "every sbatch has sent its job")
        trial.rig.as_root(["kill", "-9", "--", *(f"-{trial.group(run)}" for run in runs[:3])])
        trial.rig.servers.end_sessions("login")
        trial.tally.drops += 3 + AT_ONCE
        for thread in threads:
            thread.join()
        assert {trial.remembered(run).submission for run in runs} == {"unknown"}
        until(lambda: not _sbatches(trial.rig), "sbatch has given up")
        for run in runs[3:]:
            assert "Socket timed out" in (trial.traces(run) / "refusal").read_text()
    trial.settle()
    assert trial.tally.ended == {"submitted": AT_ONCE}


def _submit(trial: Trial, run: Run) -> None:
    with trial.session() as session, contextlib.suppress(LlmbError):
        trial.submit(session, run)


def _sbatches(rig: Rig) -> list[str]:
    return [command for command in rig.operator_processes() if command.startswith("sbatch --parsable")]


def waiting_connections(rig: Rig) -> int:
    """Number of connections on which the controller has unread data."""
    conf = (rig.directory / "etc/slurm/slurm.conf").read_text()
    port = int(conf.partition("SlurmctldPort=")[2].split()[0])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    controller_rows = [row for row in rows if row[1].endswith(f":{port:04X}") and row[3] != _LISTENS]
    return sum(not row[4].endswith(":00000000") for row in controller_rows)


def test_without_a_controller_nothing_is_submitted(trial: Trial) -> None:
    run = trial.new()
    with trial.rig.controller_down(), trial.session() as session, pytest.raises(LlmbError) as caught:
        trial.submit(session, run)
    assert "controller cannot be reached" in caught.value.what
    assert "Unable to contact slurm controller" in caught.value.why
    assert caught.value.exit_code == 2
    trial.settle()
    assert trial.tally.ended == {"refused": 1}


def test_without_the_database_a_job_is_found_in_the_queue(trial: Trial) -> None:
    run = trial.new()
    with trial.rig.database_down(), trial.session() as session:
        assert trial.submit(session, run).submission == "submitted"
        _forget(trial, run)
        assert trial.reconcile(session, run).submission == "submitted"
    trial.settle()


def test_an_ended_job_is_found_after_its_record_is_lost(trial: Trial) -> None:
    _check_ended_job(trial)


def test_a_job_that_ended_is_found_without_accounting(
    rig_without_accounting: Rig, laptop: Laptop, tally: Tally
) -> None:
    trial = Trial(rig_without_accounting, Intents(rig_without_accounting), laptop, tally)
    _check_ended_job(trial)


def _check_ended_job(trial: Trial) -> None:
    run = trial.new()
    with trial.session() as session:
        trial.submit(session, run, "--comment=short")
        until(lambda: not trial.rig.squeue(), "the job has ended")
        _forget(trial, run)
        assert trial.reconcile(session, run).submission == "submitted"
        # Slurm does not even have its name any more; its output file exists.
        _forget(trial, run)
        with _no_jobs_known(trial.rig):
            assert trial.reconcile(session, run).submission == "submitted"
    trial.settle()


@contextlib.contextmanager
def _no_jobs_known(rig: Rig) -> Iterator[None]:
    """Slurm answers, but has no jobs any more."""
    programs = [rig.directory / "bin" / name for name in ("squeue", "sacct")]
    for program in programs:
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    try:
        yield
    finally:
        for program in programs:
            program.unlink()


def _forget(trial: Trial, run: Run) -> None:
    """Reset a run to the state after submit.sh is killed at the moment when Slurm accepts the job."""
    trial.laptop.runs.save(replace(run, submission="unknown"))
    for name in ("answer", "exit"):
        (trial.traces(run) / name).unlink(missing_ok=True)
