"""`DemoCluster`: its folder, its profile, and later starts."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest

from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.errors import LlmbError
from tests.demo.demo_client import SPEED, Client
from tests.kit.demo import end_jobs
from tests.kit.waiting import until


def test_the_profile_names_everything_that_a_client_needs(cluster: DemoCluster) -> None:
    profile = cluster.profile
    assert (profile.host, profile.account, profile.partition) == ("127.0.0.1", "demo", "batch")
    assert profile.notice == "simulated, clock x600"
    assert Path(profile.install_dir).is_relative_to(cluster.root)
    assert profile.identity_file
    assert stat.S_IMODE(Path(profile.identity_file).stat().st_mode) == 0o600


def test_the_user_of_the_profile_is_the_user_of_the_commands(cluster: DemoCluster, client: Client) -> None:
    assert client.run("id -un").out.strip() == cluster.profile.user


def test_a_restart_finds_the_same_keys_and_the_running_job(tmp_path: Path) -> None:
    with DemoCluster(tmp_path, speed=SPEED) as cluster:
        client = Client(cluster.profile)
        keys = {path.name: path.read_bytes() for path in (tmp_path / "keys").glob("*_ecdsa")}
        job = client.submit("#!/bin/sh\nsleep 60\n")
        client.wait_for_state(job, "RUNNING")
        client.ssh.close()
    with DemoCluster(tmp_path, speed=SPEED * 2) as cluster:
        client = Client(cluster.profile)  # known_hosts has the new port
        assert {path.name: path.read_bytes() for path in (tmp_path / "keys").glob("*_ecdsa")} == keys
        assert client.queue("JobID,State") == [f"{job}|RUNNING"]
        end_jobs(cluster)
        assert client.state(job) == "CANCELLED"
        client.ssh.close()


def test_jobs_of_another_version_are_put_aside(tmp_path: Path) -> None:
    with DemoCluster(tmp_path):
        pass
    (tmp_path / "slurm" / "jobs" / "1").mkdir()
    record = tmp_path / "slurm" / "jobs" / "1" / "job.json"
    record.write_text('{"id": 1, "colour": "blue", "steps": []}')
    with DemoCluster(tmp_path) as cluster:
        client = Client(cluster.profile)
        assert client.queue("JobID") == []
        client.ssh.close()
    (path,) = (tmp_path / "slurm").glob("jobs-put-aside-*")
    assert (path / "1" / "job.json").exists()


def test_a_second_cluster_in_the_same_folder_does_not_start(cluster: DemoCluster) -> None:
    with pytest.raises(LlmbError, match="already running"):
        DemoCluster(cluster.root).start()
    assert Client(cluster.profile).run("true").code == 0


def test_a_cluster_whose_programs_cannot_run_accepts_no_login_and_unlocks_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as noexec:
        noexec.setattr(os, "access", lambda *_: False)
        cluster = DemoCluster(tmp_path)
        with pytest.raises(LlmbError, match="cannot be run"):
            cluster.start()
        assert cluster.server is None
    with DemoCluster(tmp_path) as cluster:
        assert cluster.server is not None


def test_a_job_whose_process_vanished_is_a_node_failure(cluster: DemoCluster, client: Client) -> None:
    job = client.submit("#!/bin/sh\necho $PPID $$ >new\nmv new pids\nexec sleep 60\n")
    pids = cluster.root / "home" / "pids"
    until(pids.exists, "the job to run")
    for pid in pids.read_text().split():
        os.kill(int(pid), signal.SIGKILL)
    until(lambda: client.state(job) == "NODE_FAIL", "somebody to see that it is gone")


@pytest.mark.parametrize("speed", [0, -1, float("inf"), float("nan")])
def test_the_speed_is_a_positive_number(tmp_path: Path, speed: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        DemoCluster(tmp_path, speed=speed)


def test_there_is_no_profile_before_the_start(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not started"):
        _ = DemoCluster(tmp_path).profile
