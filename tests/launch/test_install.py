"""Install steps on the embedded cluster, with an enroot that waits for a signal to continue."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cluster.failures import DeadlineError
from llmb_tui.cluster.link import Completed
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.cluster.session import Session
from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.demo.cluster import DemoCluster
from llmb_tui.demo.slurm.store import Store
from llmb_tui.errors import LlmbError
from llmb_tui.launch.direct.install import direct_install, entry_path
from llmb_tui.launch.install import Installer
from llmb_tui.launch.step_state import StepState
from llmb_tui.request import RunRequest
from tests.kit.demo import drop_connections
from tests.kit.waiting import until
from tests.launch.launch_cases import PROFILE, ROWS, MakePlan, replace_command

ENROOT = """
echo "$@" >>"$STAGE/calls"
head -c 1000 /dev/zero >"$3"
printf 'Downloading 1 of 9\\rDownloading 5 of 9\\n'
while [ ! -e "$STAGE/go" ]; do sleep 0.02; done
[ ! -s "$STAGE/fail" ] || { echo "[ERROR] No space left \x1b[31m on device"; exit 1; }
head -c 64 /dev/zero >>"$3"
printf hsqs | dd of="$3" conv=notrunc 2>/dev/null
"""


class Stage:
    """A cluster with an install directory, and its enroot."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = DemoCluster(folder / "cluster")
        self.cluster.start()
        replace_command(self.cluster.root, "enroot", ENROOT)
        self.profile = self.cluster.profile
        self.install = Path(self.profile.install_dir)
        self.sessions: list[SlurmCluster] = []
        self.image = self.install / "images" / "nvidia+nemo+25.02.01.sqsh"
        self.step = self.install / ".llmb-tui" / "steps" / "image-nvidia+nemo+25.02.01"

    def go(self) -> None:
        (self.folder / "go").touch()

    def calls(self) -> int:
        path = self.folder / "calls"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def close(self) -> None:
        self.go()
        until(lambda: not list(self.install.glob(".llmb-tui/steps/*/lock")))
        for session in self.sessions:
            session.close()
        self.cluster.stop()

    def connect(self) -> SlurmCluster:
        session = SlurmCluster(self.profile)
        session.connect()
        self.sessions.append(session)
        return session


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.close()


MakeInstaller = Callable[[], Installer]


@pytest.fixture
def make_installer(stage: Stage, catalog: Catalog, make_plan: MakePlan) -> MakeInstaller:
    """New installer with its own connection, as in another process."""

    def make() -> Installer:
        row = ROWS["nemotron4-25.04"]
        wanted = direct_install(RunRequest(catalog.recipe(row[0]), make_plan(*row), stage.profile))
        return Installer(stage.connect(), stage.profile, wanted)

    return make


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llmb_tui.launch.install.LOOK_EVERY_S", 0.2)


class InBackground:
    """`Installer.run` in a thread."""

    def __init__(self, installer: Installer) -> None:
        self.stop = threading.Event()
        self.changes: list[tuple[StepState, ...]] = []
        self.ended: tuple[StepState, ...] | BaseException = ()
        self._thread = threading.Thread(target=self._run, args=(installer,))
        self._thread.start()

    def _run(self, installer: Installer) -> None:
        try:
            self.ended = installer.run(self.changes.append, self.stop)
        except BaseException as error:  # noqa: BLE001 - it is raised again in the test's own thread
            self.ended = error

    def status(self, index: int) -> str:
        return self.changes[-1][index].status if self.changes else "missing"

    def join(self) -> tuple[StepState, ...]:
        self._thread.join(20)
        assert not self._thread.is_alive()
        if isinstance(self.ended, BaseException):
            raise self.ended
        return self.ended


def test_at_first_all_steps_are_missing_with_their_sizes(make_installer: MakeInstaller) -> None:
    states = make_installer().probe()
    assert [state.status for state in states] == ["missing"] * 3
    assert [state.title for state in states] == ["Directories", "Container image nvidia/nemo:25.02.01", "Entry script"]
    assert states[1].size == "9.57 GB to download"


def test_a_run_makes_everything_once(stage: Stage, make_installer: MakeInstaller) -> None:
    stage.go()
    states = make_installer().run(lambda _: None, threading.Event())
    assert [state.status for state in states] == ["done"] * 3
    assert stage.image.stat().st_size == 1064
    assert (stage.install / "workloads/pretrain_nemotron4/experiments").is_dir()
    assert Path(entry_path(str(stage.install))).read_text() == remote_text("pretrain.py")
    assert list(stage.image.parent.iterdir()) == [stage.image]
    assert make_installer().run(lambda _: None, threading.Event()) == states
    assert stage.calls() == 1


@pytest.mark.parametrize(("group_writable", "umask", "forbidden"), [(False, 0, 0o022), (True, 0o077, 0o002)])
def test_the_profile_decides_who_may_write_to_installed_files(
    stage: Stage, make_installer: MakeInstaller, group_writable: bool, umask: int, forbidden: int
) -> None:
    """The login's umask has no influence."""
    stage.profile = replace(stage.profile, group_writable=group_writable)
    stage.go()
    before = os.umask(umask)
    try:
        states = make_installer().run(lambda _: None, threading.Event())
    finally:
        os.umask(before)
    assert [state.status for state in states] == ["done"] * 3
    paths = [path for path in stage.install.rglob("*") if not path.is_symlink()]
    assert [path for path in paths if path.stat().st_mode & forbidden] == []
    assert stage.image.parent.stat().st_mode & 0o070 == (0o070 if group_writable else 0o050)


def test_progress_is_the_last_line_of_the_log_and_the_bytes_so_far(stage: Stage, make_installer: MakeInstaller) -> None:
    run = InBackground(make_installer())
    # A check reads the size first, then the log.
    until(lambda: run.status(1) == "running" and run.changes[-1][1].size.endswith("B written"))
    assert run.changes[-1][1].detail == "Downloading 5 of 9"
    stage.go()
    assert [state.status for state in run.join()] == ["done"] * 3


def test_a_broken_connection_does_not_stop_a_step(stage: Stage, make_installer: MakeInstaller) -> None:
    run = InBackground(make_installer())
    until(lambda: run.status(1) == "running")
    drop_connections(stage.cluster)
    stage.go()
    assert [state.status for state in run.join()] == ["done"] * 3
    assert stage.calls() == 1


def test_a_second_run_picks_a_running_step_up(stage: Stage, make_installer: MakeInstaller) -> None:
    first = InBackground(make_installer())
    until(lambda: first.status(1) == "running")
    first.stop.set()
    assert first.join()[1].status == "running"
    second = InBackground(make_installer())
    until(lambda: second.status(1) == "running")
    stage.go()
    assert [state.status for state in second.join()] == ["done"] * 3
    assert stage.calls() == 1


def test_two_runs_at_once_import_once(stage: Stage, make_installer: MakeInstaller) -> None:
    both = [InBackground(installer) for installer in (make_installer(), make_installer())]
    until(lambda: all(run.status(1) == "running" for run in both))
    stage.go()
    assert [[state.status for state in run.join()] for run in both] == [["done"] * 3] * 2
    assert stage.calls() == 1


def test_a_failed_step_has_a_reason_and_can_be_retried(stage: Stage, make_installer: MakeInstaller) -> None:
    (stage.folder / "fail").write_text("yes")
    stage.go()
    states = make_installer().run(lambda _: None, threading.Event())
    assert [state.status for state in states] == ["done", "failed", "missing"]
    assert states[1].detail == "[ERROR] No space left  on device"
    assert states[1].fix == "Read the step's log on the cluster. Install again: the step continues."
    assert list(stage.image.parent.iterdir()) == []
    assert make_installer().probe() == states
    (stage.folder / "fail").unlink()
    assert [state.status for state in make_installer().run(lambda _: None, threading.Event())] == ["done"] * 3
    assert stage.calls() == 2


def test_an_attempt_without_disk_space_is_reported(stage: Stage, make_installer: MakeInstaller) -> None:
    (stage.step / "ended.full").mkdir(parents=True)
    state = make_installer().probe()[1]
    assert (state.status, state.detail) == ("failed", "No space left on device")
    assert state.reason == "The file system of the install directory is full."


def test_an_image_that_was_removed_is_missing_again(stage: Stage, make_installer: MakeInstaller) -> None:
    stage.go()
    make_installer().run(lambda _: None, threading.Event())
    stage.image.unlink()
    assert make_installer().probe()[1].status == "missing"


def _abandon(stage: Stage) -> None:
    """Kill a step as a reboot of the login node would: only its folder remains."""
    pid = int((stage.step / "lock/owner").read_text().split(".")[-2])
    os.kill(pid, signal.SIGSTOP)  # prevents that it cleans up after its children
    for each in (pid, *_descendants(pid)):
        with contextlib.suppress(ProcessLookupError):  # the sleep of the lock's refresh may have ended
            os.kill(each, signal.SIGKILL)
    minutes_ago = time.time() - 600
    os.utime(stage.step / "lock", (minutes_ago, minutes_ago))


def _descendants(pid: int) -> list[int]:
    children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    return [each for child in map(int, children) for each in (child, *_descendants(child))]


def test_a_step_whose_machine_died_is_taken_over(stage: Stage, make_installer: MakeInstaller) -> None:
    first = InBackground(make_installer())
    until(lambda: first.status(1) == "running" and stage.calls() == 1)
    first.stop.set()
    first.join()
    _abandon(stage)
    state = make_installer().probe()[1]
    assert state.status == "missing"
    assert state.detail == "An earlier attempt was killed from outside; its downloads are kept."
    stage.go()
    states = make_installer().run(lambda _: None, threading.Event())
    assert [state.status for state in states] == ["done"] * 3
    assert stage.calls() == 2
    assert list(stage.image.parent.iterdir()) == [stage.image]


def test_only_one_process_takes_over_a_dead_lock(stage: Stage, make_installer: MakeInstaller) -> None:
    first = InBackground(make_installer())
    until(lambda: first.status(1) == "running" and stage.calls() == 1)
    first.stop.set()
    first.join()
    _abandon(stage)
    both = [InBackground(installer) for installer in (make_installer(), make_installer())]
    until(lambda: all(run.status(1) == "running" for run in both))
    stage.go()
    assert [[state.status for state in run.join()] for run in both] == [["done"] * 3] * 2
    assert stage.calls() == 2


def test_a_check_that_is_killed_on_the_login_node_is_repeated(
    stage: Stage, make_installer: MakeInstaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Completed] = []
    run = SlurmCluster.run

    def once_ended(session: SlurmCluster, argv: Sequence[str], **options: Any) -> Completed:
        if not ended and "look ask" in options.get("stdin", b"").decode():
            ended.append(Completed(-1, "", ""))
            return ended[0]
        return run(session, argv, **options)

    monkeypatch.setattr(SlurmCluster, "run", once_ended)
    stage.go()
    silences: list[LlmbError] = []
    states = make_installer().run(lambda _: None, threading.Event(), silences.append)
    assert [state.status for state in states] == ["done"] * 3
    assert [silence.what for silence in silences] == ["The install steps could not be checked."]


def test_an_image_that_another_user_put_there_is_used(stage: Stage, make_installer: MakeInstaller) -> None:
    stage.image.parent.mkdir(parents=True)
    stage.image.write_bytes(b"hsqs")
    states = make_installer().run(lambda _: None, threading.Event())
    assert [state.status for state in states] == ["done"] * 3
    assert stage.calls() == 0


def test_an_empty_image_file_does_not_count(stage: Stage, make_installer: MakeInstaller) -> None:
    stage.image.parent.mkdir(parents=True)
    stage.image.touch()
    assert make_installer().probe()[1].status == "missing"


def test_a_directory_that_cannot_be_made_is_reported(stage: Stage, make_installer: MakeInstaller) -> None:
    stage.install.write_text("a file is in the way")
    with pytest.raises(LlmbError, match="cannot be written"):
        make_installer().run(lambda _: None, threading.Event())


def test_a_step_that_does_not_start_is_reported(
    stage: Stage, make_installer: MakeInstaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb_tui.launch.install.STARTS_WITHIN_S", 0.5)
    replace_command(stage.cluster.root, "nohup", "")
    with pytest.raises(LlmbError, match="Directories: the step did not start"):
        make_installer().run(lambda _: None, threading.Event())


def test_without_enroot_on_the_login_node_the_import_is_a_job(stage: Stage, make_installer: MakeInstaller) -> None:
    node_bin = stage.cluster.root / "node-bin"
    (stage.cluster.root / "bin/enroot").rename(node_bin / "enroot")
    stage.go()
    run = InBackground(make_installer())
    assert [state.status for state in run.join()] == ["done"] * 3
    assert stage.calls() == 1
    assert any(states[1].detail.startswith("Job 1") for states in run.changes)


def test_a_completing_job_is_not_taken_for_the_next_attempt(stage: Stage, make_installer: MakeInstaller) -> None:
    node_bin = stage.cluster.root / "node-bin"
    (stage.cluster.root / "bin/enroot").rename(node_bin / "enroot")
    (stage.folder / "fail").write_text("yes")
    stage.go()
    assert make_installer().run(lambda _: None, threading.Event())[1].status == "failed"
    jobs = Store(stage.cluster.root / "slurm")
    with jobs.change(1) as job:
        job.completing, job.closed = True, None
    handle = os.open(jobs.folder(1) / "alive", os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)  # the job's process, which its node cannot end
    (stage.folder / "fail").unlink()
    run = InBackground(make_installer())
    try:
        assert [state.status for state in run.join()] == ["done"] * 3
    finally:
        run.stop.set()
        os.close(handle)
    assert [job.name for job in jobs.all()] == [jobs.read(1).name] * 2


def options(profile: SlurmProfile, catalog: Catalog, make_plan: MakePlan) -> tuple[str, ...]:
    row = ROWS["nemotron4-25.04"]
    in_job = direct_install(RunRequest(catalog.recipe(row[0]), make_plan(*row), profile))[1].in_job
    assert in_job
    assert in_job.command == "enroot"
    return in_job.options


COMMON = ("--account=research_llm_bench", "--nodes=1", "--ntasks=1", "--exclusive", "--time=01:00:00")


def test_the_import_job_uses_the_cpu_partition_without_gpu_options(catalog: Catalog, make_plan: MakePlan) -> None:
    profile = replace(PROFILE, cpu_partition="cpu", qos="gpu-qos", reservation="bench")
    assert options(profile, catalog, make_plan) == (*COMMON, "--partition=cpu", "--mem=0")


def test_without_a_cpu_partition_the_import_requests_the_same_node_as_the_run(
    catalog: Catalog, make_plan: MakePlan
) -> None:
    profile = replace(PROFILE, gpu_request="gres", qos="short", segment=4, slurm_params="comment=mine", memory="900G")
    expected = ("--partition=batch", "--mem=900G", "--gres=gpu:8", "--qos=short", "--comment=mine")
    assert options(profile, catalog, make_plan) == (*COMMON, *expected)
    assert "--gpus-per-node=8" in options(PROFILE, catalog, make_plan)
    assert not any("gpu" in word for word in options(replace(PROFILE, gpu_request="none"), catalog, make_plan))


def test_a_hydra_recipe_needs_no_more_than_its_image(catalog: Catalog, make_plan: MakePlan) -> None:
    row = ROWS["grok1-25.02"]
    directories, image = direct_install(RunRequest(catalog.recipe(row[0]), make_plan(*row), PROFILE))
    assert (directories.title, image.title) == ("Directories", "Container image nvidia/nemo:24.12")
    assert directories.results == tuple(
        f"/lustre/llmb/{name}" for name in ("images", "venvs", "workloads/pretrain_grok1/experiments", ".llmb-tui/code")
    )


def test_an_unanswered_start_is_reported_and_finally_given_up(
    make_installer: MakeInstaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster can be read, but not written to."""
    monkeypatch.setattr("llmb_tui.launch.install.LINK_PATIENCE_S", 0.2)

    def unanswered(*_: object, **__: object) -> None:
        raise DeadlineError("No answer in time.")

    monkeypatch.setattr(Session, "run_script", unanswered)
    silences: list[LlmbError] = []
    with pytest.raises(DeadlineError):
        make_installer().run(lambda _: None, threading.Event(), silences.append)
    assert len(silences) > 1
