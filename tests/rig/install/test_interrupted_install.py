"""Installs that are interrupted, on a real login node and a real Slurm: what was begun is found and finished, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from llmb_tui.errors import LlmbError
from llmb_tui.launch.step_state import StepState
from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.install.site import IMAGE, LAYERS, InBackground, Site, age, enroot_on_nodes_only
from tests.rig.line import Line

DONE = ["done", "done", "done"]


def statuses(states: tuple[StepState, ...]) -> list[str]:
    return [state.status for state in states]


def test_an_install_makes_everything_once(site: Site) -> None:
    states = site.run()
    assert statuses(states) == DONE
    assert site.image.read_bytes()[:4] == b"hsqs"
    assert site.images() == [f"{IMAGE}.sqsh"]
    assert not (site.step / "cache").exists()
    assert statuses(site.run()) == DONE
    assert site.attempts() == 1


def import_halfway(site: Site, run: InBackground | None = None) -> InBackground:
    """An import that has fetched some of its layers, and takes long to fetch the rest."""
    site.rig.set("import-s", "60")
    run = run or InBackground(site.installer())
    until(lambda: len(site.cached()) > 4, "some layers are there")
    return run


def kill_step(site: Site) -> None:
    """End the process group of the step, which `setsid` made its own."""
    owner = (site.step / "lock" / "owner").read_text().strip()
    site.rig.as_operator(["kill", "-9", "--", f"-{owner.split('.')[-2]}"], check=True)


def test_a_killed_step_leaves_no_image_and_is_found_dead_at_once(site: Site) -> None:
    run = import_halfway(site)
    run.stop.set()
    assert run.join()[1].status == "running"
    kill_step(site)
    state = site.installer().probe()[1]
    assert (state.status, state.detail) == (
        "missing",
        "An earlier attempt was killed from outside; its downloads are kept.",
    )
    assert not site.image.exists()


def test_a_killed_step_continues_where_it_stopped(site: Site) -> None:
    run = import_halfway(site)
    run.stop.set()
    run.join()
    kill_step(site)
    there = len(site.cached()) - 1  # one is no layer
    site.rig.set("import-s", "0")
    assert statuses(site.run()) == DONE
    assert f"Downloading {LAYERS - there} missing layers" in site.log()
    assert site.images() == [f"{IMAGE}.sqsh"]
    assert site.attempts() == 2


def test_a_watching_program_starts_a_killed_step_again(site: Site) -> None:
    run = import_halfway(site)
    site.rig.set("import-s", "0")
    kill_step(site)
    assert statuses(run.join()) == DONE
    assert site.attempts() == 2


def test_a_step_that_is_killed_again_and_again_is_given_up(site: Site) -> None:
    run = import_halfway(site)
    for _ in range(3):
        before = _owner(site)
        kill_step(site)
        _until_started_again(run, site, before)
    with pytest.raises(LlmbError, match="keeps killing the step"):
        run.join()


def _until_started_again(run: InBackground, site: Site, before: str) -> None:
    until(lambda: run.over or _owner(site) not in ("", before), "it is started again, or given up")


def _owner(site: Site) -> str:
    return _text(site.step / "lock" / "owner")


def _text(path: Path) -> str:
    """Of a file that comes and goes; empty where it is not there."""
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def test_a_login_node_that_is_started_again_loses_nothing(site: Site) -> None:
    run = import_halfway(site)
    site.rig.set("import-s", "0")
    site.end_operators_processes()
    assert statuses(run.join()) == DONE
    assert site.images() == [f"{IMAGE}.sqsh"]


def test_a_line_that_is_cut_again_and_again_stops_no_step(site: Site) -> None:
    site.rig.set("import-s", "6")
    with Line(site.rig.port("login")) as line:
        run = InBackground(site.installer(line.profile(site.profile)))
        for number in range(5):
            until(lambda least=number: len(site.cached()) > 2 + 4 * least, "some more layers")  # type: ignore[misc]
            line.cut()
        assert statuses(run.join()) == DONE
    assert line.cuts >= 1
    assert site.attempts() == 1


INSTALL = """
import sys, threading
from pathlib import Path
from llmb_tui.cli.clusters import install
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
services = Services(UserPaths(Path(sys.argv[1]), Path(sys.argv[2])))
chosen = plan(services.catalog, Selection("nemotron4", "25.04", "15b", "h100", "fp8", 16))
install(services, services.request(sys.argv[3], chosen), print)
"""


def test_a_step_outlives_our_program(site: Site) -> None:
    site.services().clusters.close()
    site.rig.set("import-s", "8")
    places = [str(site.places.config), str(site.places.state)]
    program = subprocess.Popen([sys.executable, "-c", INSTALL, *places, site.profile.name], stdout=subprocess.DEVNULL)
    until(lambda: len(site.cached()) > 4, "some layers are there")
    program.send_signal(signal.SIGKILL)
    program.wait()
    # The next installer finds it running, or over; of one that ended with the program it would make another attempt.
    assert statuses(site.run()) == DONE
    assert site.attempts() == 1


def stale_lock(site: Site, owner: str) -> Path:
    """A lock of somebody who is gone."""
    lock = site.step / "lock"
    site.rig.as_operator(f"mkdir -p {lock} && echo {owner} >{lock}/owner", check=True)
    return lock


def test_a_lock_of_another_node_is_believed_for_two_minutes(site: Site) -> None:
    lock = stale_lock(site, "operator@login02.4711.1700000000")
    assert site.installer().probe()[1].status == "running"
    age(lock, 3)
    assert statuses(site.run()) == DONE


def test_a_lock_of_a_dead_process_here_is_not(site: Site) -> None:
    stale_lock(site, "operator@login01.999999.1700000000")
    assert statuses(site.run()) == DONE


def test_two_programs_at_once_import_once(site: Site) -> None:
    site.rig.set("import-s", "3")
    both = [InBackground(site.installer()) for _ in range(2)]
    assert [statuses(run.join()) for run in both] == [DONE, DONE]
    assert site.attempts() == 1


# Without enroot on the login node


def job_of(site: Site) -> str:
    """The number of the job that imports."""
    return until(lambda: _text(site.step / "job").strip(), "the import is a job")


def test_without_enroot_here_the_import_is_a_job_of_the_cpu_partition(site: Site, rig: Rig) -> None:
    profile = rig.profile(install_dir=str(site.install), cpu_partition="cpu")
    with enroot_on_nodes_only(rig):
        assert statuses(site.run(profile)) == DONE
    assert b"Host: cpu001\n" in site.image.read_bytes()


def test_or_of_the_gpu_partition(site: Site, rig: Rig) -> None:
    with enroot_on_nodes_only(rig):
        assert statuses(site.run()) == DONE
    assert b"Host: cn00" in site.image.read_bytes()


@contextmanager
def bashrc(rig: Rig, *lines: str) -> Iterator[None]:
    """The operator's profile with these lines, within the block."""
    profile = rig.home / ".bashrc"
    before = profile.read_text() if profile.exists() else ""
    profile.write_text(before + "".join(f"{line}\n" for line in lines))
    try:
        yield
    finally:
        profile.write_text(before)


def test_a_second_start_finds_the_running_job(site: Site, rig: Rig) -> None:
    """Whatever the operator's own squeue leaves out."""
    filters = bashrc(rig, "export SQUEUE_PARTITION=cpu SQUEUE_STATES=PENDING SQUEUE_ACCOUNT=other")
    with filters, enroot_on_nodes_only(rig), Line(rig.port("login")) as line:
        first = import_halfway(site, InBackground(site.installer(line.profile(site.profile))))
        job = job_of(site)
        line.cut()
        line.refuse()
        first.stop.set()
        second = InBackground(site.installer())
        second.until_running()
        rig.set("import-s", "0")
        state = second.image()
        assert state
        assert state.detail.startswith(f"Job {job}: ")
        assert rig.squeue() == [job]
        # The stand-in sleeps as long as it was told to when it began: another attempt takes what there is.
        rig.as_root(["scancel", job], check=True)
        assert second.join()[1].status == "failed"
        assert statuses(site.run()) == DONE
    assert site.attempts() == 2


def test_a_job_whose_number_was_lost_is_found_by_its_name(site: Site, rig: Rig) -> None:
    profile = rig.profile(install_dir=str(site.install), cpu_partition="cpu")
    with enroot_on_nodes_only(rig):
        blocker = rig.as_operator("sbatch --parsable -p cpu -A llmbench --exclusive --wrap 'sleep 300'", check=True)
        first = InBackground(site.installer(profile))
        job = job_of(site)
        first.stop.set()
        first.join()
        (site.step / "job").unlink()
        second = InBackground(site.installer(profile))
        assert job_of(site) == job
        until(lambda: f"Job {job} is waiting in the queue" in second.detail(), "it waits")
        assert sorted(rig.squeue()) == sorted([blocker.stdout.strip(), job])
        rig.as_root(["scancel", blocker.stdout.strip()], check=True)
        assert statuses(second.join()) == DONE
    assert site.attempts() == 1


def test_a_cancelled_job_is_reported_and_resumed(site: Site, rig: Rig) -> None:
    with enroot_on_nodes_only(rig):
        run = import_halfway(site)
        rig.as_root(["scancel", job_of(site)], check=True)
        state = run.join()[1]
        assert state.status == "failed"
        assert "CANCELLED AT" in state.detail
        assert state.reason == "The job of this step was cancelled."
        assert state.fix == "Install again: the step continues."
        assert not site.image.exists()
        there = len(site.cached()) - 1
        rig.set("import-s", "0")
        assert statuses(site.run()) == DONE
    assert f"Downloading {LAYERS - there} missing layers" in site.log()


def test_a_job_whose_node_fails_is_reported_and_resumed(site: Site, rig: Rig) -> None:
    with enroot_on_nodes_only(rig):
        run = import_halfway(site)
        node = rig.as_root(["squeue", "--noheader", "--format=%N"]).stdout.strip()
        with rig.node_down(node):
            state = run.join()[1]
            assert state.status == "failed"
            assert state.reason
            assert state.fix
            assert not site.image.exists()
            rig.set("import-s", "0")
            assert statuses(site.run()) == DONE
    assert site.images() == [f"{IMAGE}.sqsh"]


def test_a_hung_controller_changes_nothing(site: Site, rig: Rig) -> None:
    with enroot_on_nodes_only(rig):
        rig.set("import-s", "12")
        run = InBackground(site.installer())
        job_of(site)
        run.until_running()
        with rig.controller_hung():
            assert site.installer().probe()[1].status in ("running", "done")
        assert statuses(run.join()) == DONE
    assert site.attempts() == 1


def test_a_stop_leaves_the_step_running(site: Site) -> None:
    site.rig.set("import-s", "5")
    stop = threading.Event()
    states = site.installer().run(lambda s: stop.set() if s[1].status == "running" else None, stop)
    assert states[1].status == "running"
    until(site.image.exists, "it is done by itself")


def test_nothing_of_a_finished_install_runs_on(site: Site) -> None:
    site.run()
    until(lambda: not any("step.sh" in line for line in site.rig.operator_processes()), "nothing of ours runs")
    assert os.listdir(site.step / "ended.0") == ["owner"]
