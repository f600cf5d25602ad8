"""The whole package `cluster` against the embedded cluster, through real SSH."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.slurm.client import find_jobs, partitions
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.errors import SlurmError
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.errors import LlmbError
from llmb_tui.preflight.kinds import cluster_checks
from llmb_tui.preflight.needs import Needs
from llmb_tui.preflight.run import run_preflight
from tests.cluster.examples import PLAN
from tests.kit.demo import end_jobs, fault
from tests.kit.waiting import until


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DemoCluster]:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with DemoCluster(tmp_path / "demo", speed=100) as cluster:
        yield cluster
        end_jobs(cluster)


@pytest.fixture
def session(demo: DemoCluster) -> Iterator[SlurmCluster]:
    session = SlurmCluster(demo.profile)
    yield session
    session.close()


def submit(session: SlurmCluster, name: str, *options: str, script: str = "sleep 600") -> str:
    argv = ["sbatch", "--parsable", "--account=demo", f"--job-name={name}", "--output=/dev/null", *options]
    result = session.run(argv, stdin=f"#!/bin/sh\n{script}\n".encode())
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


def test_a_job_from_submission_to_its_end(session: SlurmCluster) -> None:
    job_id = submit(session, "llmb-a.run one", "--nodes=2", "--gpus-per-node=8", "--time=01:00:00")
    assert session.query_jobs([job_id])[job_id].name == "llmb-a.run one"
    until(lambda: session.query_jobs([job_id])[job_id].state == "RUNNING")
    job = session.query_jobs([job_id, "999999"])[job_id]
    assert (job.nodes, job.finished, job.exit_code) == (2, False, None)

    session.cancel(job_id)
    until(lambda: session.query_jobs([job_id])[job_id].finished)
    job = session.query_jobs([job_id])[job_id]
    assert job.state == "CANCELLED"
    assert job.exit_code is not None
    session.cancel(job_id)


def test_a_job_has_a_start_time_while_pending_and_nodes_while_running(demo: DemoCluster, session: SlurmCluster) -> None:
    fault(demo, "queue-wait", "1e6")
    waits = session.query_jobs([submit(session, "waits", "--nodes=2")])
    assert [job.starts_at for job in waits.values()] == [pytest.approx(time.time() + 1e6, abs=1e5)]
    fault(demo, "queue-wait", "0")
    job_id = submit(session, "runs", "--nodes=2")
    until(lambda: session.query_jobs([job_id])[job_id].state == "RUNNING")
    job = session.query_jobs([job_id])[job_id]
    assert (job.starts_at, job.node_list) == (None, "demo[001-002]")


def test_a_failed_job_has_its_exit_code(session: SlurmCluster) -> None:
    job_id = submit(session, "fails", "--nodes=1", script="exit 3")
    until(lambda: session.query_jobs([job_id])[job_id].finished)
    job = session.query_jobs([job_id])[job_id]
    assert (job.state, job.exit_code) == ("FAILED", "3:0")


def test_unknown_jobs_are_absent_and_a_query_for_no_jobs_does_not_connect(session: SlurmCluster) -> None:
    assert session.query_jobs([]) == {}
    assert session.state != "live"
    assert session.query_jobs(["424242"]) == {}


def test_active_and_ended_jobs_are_found_by_their_exact_name(session: SlurmCluster) -> None:
    ended = submit(session, "acct-acct.x_abc", "--nodes=1", script="true")
    until(lambda: session.query_jobs([ended])[ended].finished)
    active = submit(session, "acct-acct.x_abc", "--nodes=1")
    submit(session, "acct-acct.x_abcd", "--nodes=1")
    assert [job.id for job in find_jobs(session, "acct-acct.x_abc")] == [ended, active]
    assert find_jobs(session, "acct-acct.x") == []


def test_accounting_may_be_off(demo: DemoCluster, session: SlurmCluster) -> None:
    fault(demo, "no-accounting")
    job_id = submit(session, "quiet", "--nodes=1", script="exit 3")
    until(lambda: session.query_jobs([job_id])[job_id].finished)
    job = session.query_jobs([job_id, "424242"])[job_id]
    assert (job.state, job.exit_code) == ("FAILED", "3:0")
    assert [job.id for job in find_jobs(session, "quiet")] == [job_id]


@pytest.mark.parametrize("job_id", ["", "1; rm -rf /", "-1", "1 2", "1\n2"])
def test_an_invalid_job_id_never_reaches_the_cluster(session: SlurmCluster, job_id: str) -> None:
    for refused in (lambda: session.query_jobs([job_id]), lambda: session.cancel(job_id)):
        with pytest.raises(LlmbError, match="not a Slurm job id"):
            refused()
    assert session.state != "live"


def test_partitions(session: SlurmCluster) -> None:
    found = {partition.name: partition for partition in partitions(session)}
    assert found["batch"].is_default
    assert found["batch"].groups[0].gpus[0].type == "h100"


def test_the_demo_cluster_passes_its_preflight(demo: DemoCluster, session: SlurmCluster) -> None:
    report = run_preflight(session, cluster_checks(Needs(demo.profile, PLAN)))
    assert {check.id: check.status for check in report.checks if check.status != "ok" and check.id != "disk"} == {}


def test_a_missing_partition_lists_the_others(demo: DemoCluster, session: SlurmCluster) -> None:
    report = run_preflight(session, cluster_checks(Needs(replace(demo.profile, partition="$(reboot)"), PLAN)))
    check = next(check for check in report.checks if check.id == "partition")
    assert (check.status, check.found) == ("failed", "batch, debug")
    assert not report.passed


def test_a_cluster_without_slurm(demo: DemoCluster, session: SlurmCluster) -> None:
    for name in ("squeue", "sinfo"):
        (demo.root / "bin" / name).unlink()
    with pytest.raises(SlurmError, match="squeue"):
        session.query_jobs(["1"])
    with pytest.raises(SlurmError):
        partitions(session)
    assert not run_preflight(session, cluster_checks(Needs(demo.profile, PLAN))).passed
