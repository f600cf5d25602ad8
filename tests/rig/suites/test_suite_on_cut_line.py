"""A dozen jobs of one suite on a real OpenSSH server and a real Slurm: each submitted once, despite cuts and kills."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llmb_tui.cluster.profiles import save_profile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.runs import Runs
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.suites.suite import Suite
from tests.journey.test_rig_journey import brought_image
from tests.kit import verbs
from tests.kit.waiting import until
from tests.rig.campaign import TIMES, seed
from tests.rig.cluster import Rig
from tests.rig.line import Line
from tests.rig.suites.program import QUICK

FILE = """
cluster = "rig"
workloads = ["nemotron4@25.04"]
sizes = ["15b"]
precisions = ["fp8"]
scales = [16, 32]
repeats = 6
"""
CHAIN = FILE.replace("16, 32", "16").replace("repeats = 6", "repeats = 3\nchain = true")
KILLS = (1, 4, 8) * TIMES
"""Numbers of stored rows: a moment after each is reached, the program is killed."""


@pytest.fixture
def line(rig: Rig) -> Iterator[Line]:
    with Line(rig.port("login")) as between:
        yield between


@pytest.fixture(scope="module")
def installed(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> SlurmProfile:
    """The profile of the rig, with the recipe installed."""
    home = tmp_path_factory.mktemp("installs")
    profile = rig.profile(install_dir=str(brought_image(rig)), name="rig")
    save_profile(home / "config" / "clusters", profile)
    selection = ("-w", "nemotron4@25.04", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "16")
    done = verbs.run(("install", "rig", *selection), verbs.environment(home))
    assert done.returncode == 0, done.stderr
    return profile


@pytest.fixture
def home(installed: SlurmProfile, line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home directory of an operator whose cluster is the rig over a line."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr("llmb_tui.services.Timing", lambda: QUICK)
    monkeypatch.setattr("llmb_tui.launch.login_node.TAKEN_WITHIN_S", 10.0)
    save_profile(tmp_path / "config" / "clusters", line.profile(installed))
    return tmp_path


@contextmanager
def cut_again_and_again(line: Line, chance: random.Random) -> Iterator[None]:
    """Break the line every second or so within the block, sometimes for a longer time."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(chance.uniform(0.5, 3.0)):
            if chance.random() < 0.3:
                line.refuse()
            line.cut()
            ended.wait(chance.uniform(0.0, 0.3))
            line.accept()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        line.accept()


def services_of(home: Path) -> Services:
    return Services(UserPaths(home / "config", home / "state"), timing=QUICK)


def keep(home: Path, text: str = FILE) -> Suite:
    """The confirmed suite of a file."""
    from llmb_tui.suites.suite_file import read_suite

    file = home / "dozen.toml"
    file.write_text(text)
    services = services_of(home)
    return services.suites.keep(read_suite(file, services.catalog))


def program(home: Path, suite: Suite) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.rig.suites.program", str(home), suite.id]
    with (home / "told").open("ab") as output:
        return subprocess.Popen(command, stdout=output, stderr=output)


def submit_the_rest(home: Path, suite: Suite) -> None:
    """Let programs submit the remaining rows: if one gives up because the line is cut, another follows."""
    submitting = program(home, suite)

    def is_done() -> bool:
        nonlocal submitting
        if submitting.poll():
            submitting = program(home, suite)
        return submitting.poll() == 0

    try:
        until(is_done, "a program has submitted the rest", deadline_s=300)
    finally:
        submitting.kill()
        submitting.wait()


def stored(home: Path) -> list[str]:
    """Ids of the runs on the disk."""
    folder = home / "state" / "runs"
    return os.listdir(folder) if folder.is_dir() else []


def jobs_of(rig: Rig, runs: Runs) -> dict[str, int]:
    """Number of jobs in Slurm's accounting for each stored run."""
    query = ["sacct", "-X", "-n", "-P", "-S", "now-1days", "-o", "JobName%200"]
    names = rig.as_root(query, check=True).stdout.split()
    return {run.id: sum(name == run.job_name for name in names) for run in runs.all()}


def test_each_job_is_submitted_once_despite_cuts_and_kills(
    rig: Rig, home: Path, line: Line, print_at_end: Callable[[str], None]
) -> None:
    chance = random.Random(seed(print_at_end))
    suite, runs = keep(home), Runs(UserPaths(home / "config", home / "state"))
    killed = 0
    with cut_again_and_again(line, chance):
        for rows in KILLS:
            submitting = program(home, suite)
            until(lambda: len(stored(home)) >= rows or submitting.poll() is not None)  # noqa: B023 - called at once
            with contextlib.suppress(subprocess.TimeoutExpired):
                submitting.wait(chance.uniform(0.0, 0.7))
            killed += submitting.poll() is None
            submitting.kill()
            submitting.wait()
        submit_the_rest(home, suite)
    suite = services_of(home).suites.load(suite.id)
    watched = verbs.run(("suite", "watch", suite.id, "--json"), verbs.environment(home))
    document = json.loads(watched.stdout.splitlines()[-1])
    until(lambda: sum(jobs_of(rig, runs).values()) >= 12, "accounting has the jobs")
    jobs = jobs_of(rig, runs)
    assert {run_id: jobs[run_id] for run_id in suite.run_ids} == dict.fromkeys(suite.run_ids, 1)
    assert sum(jobs.values()) == 12
    assert {run.submission for run in runs.all()} <= {"submitted", "withdrawn"}
    assert (watched.returncode, document["counts"]["done"], document["over"]) == (0, 12, True)
    print_at_end(
        f"a suite of 12: {line.cuts} cuts, {killed} kills, {len(jobs) - 12} sent again, {sum(jobs.values())} jobs"
    )


def test_slurm_runs_the_jobs_of_a_chain_in_order(rig: Rig, home: Path) -> None:
    suite = keep(home, CHAIN)
    submitted = verbs.run(("suite", "submit", suite.id, "--yes"), verbs.environment(home))
    assert submitted.returncode == 0, submitted.stderr
    watched = verbs.run(("suite", "watch", suite.id), verbs.environment(home))
    assert watched.returncode == 0, watched.stdout
    runs = services_of(home).runs
    ids = [runs.load(run_id).job_ids[0] for run_id in suite.run_ids]
    query = ["sacct", "-X", "-n", "-P", "-S", "now-1days", "-j", ",".join(ids), "-o", "JobID,Start,End"]

    def all_times() -> dict[str, list[str]]:
        rows = (line.split("|") for line in rig.as_root(query).stdout.split())
        times = {job_id: cells for job_id, *cells in rows if "Unknown" not in cells}
        return times if times.keys() >= set(ids) else {}

    times = until(all_times, "accounting has all ends")
    for index in range(1, len(ids)):
        assert times[ids[index - 1]][1] <= times[ids[index]][0]


def test_slurm_ends_a_chain_when_one_job_fails(rig: Rig, home: Path) -> None:
    rig.set("faults/fail-at-step", "3")
    suite = keep(home, CHAIN + "stop_after = 1")
    submitted = verbs.run(("suite", "submit", suite.id, "--yes"), verbs.environment(home))
    assert submitted.returncode in (0, 1), submitted.stderr
    document = json.loads(
        verbs.run(("suite", "watch", suite.id, "--json"), verbs.environment(home)).stdout.splitlines()[-1]
    )
    assert document["counts"]["failed"] == 1
    assert document["counts"]["done"] == 0
