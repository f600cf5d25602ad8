from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.launch.spec import LaunchSpec, UpstreamSpec
from llmb_tui.launch.upstream.procedure import upstream_spec
from llmb_tui.plan.resolved import selections
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.request import RunRequest
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.follow import LocalCopy
from tests.kit.runs import CATALOG, request_for
from tests.launch.launch_cases import MakeRun

MakeSpec = Callable[[RunRequest, str], LaunchSpec | UpstreamSpec]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(UserPaths(tmp_path / "config", tmp_path / "state"))


def test_a_run_is_read_back_as_it_was(runs: Runs, make_run: MakeRun) -> None:
    run = replace(make_run(), submission="submitted", job_ids=("48123",), submitted_at=2.5, note="é")
    runs.save(run)
    assert runs.load(run.id) == run


@pytest.mark.parametrize("recipe", CATALOG.recipes, ids=lambda recipe: recipe.id)
def test_a_stored_run_makes_the_same_job_again(runs: Runs, recipe: Recipe) -> None:
    """An intent that is submitted later relies on this, by our script and by NVIDIA's scripts."""
    profile = SlurmProfile("eos", "eos-login", "acct", "batch", "/lustre", qos="long", vboost=True)
    procedures: tuple[tuple[ProcedureId, MakeSpec], ...] = (("direct", launch_spec), ("upstream", upstream_spec))
    selection = next(iter(selections(recipe)))
    for procedure, make_spec in procedures:
        request = request_for(selection, profile, procedure)
        runs.save(Run.of(request, make_spec(request, "a1"), 0.0))
        stored = runs.load("a1")
        assert make_spec(RunRequest(recipe, stored.plan, profile, stored.procedure), "a1") == stored.spec


def test_runs_are_listed_newest_first(runs: Runs, make_run: MakeRun) -> None:
    for run_id, created_at in (("a1", 10.0), ("b1", 30.0), ("c1", 20.0)):
        runs.save(replace(make_run(), id=run_id, created_at=created_at))
    assert [run.id for run in runs.all()] == ["b1", "c1", "a1"]


def test_a_restarted_job_has_an_unread_log_and_no_data_of_its_end(runs: Runs, make_run: MakeRun) -> None:
    run = replace(make_run(), submission="submitted", job_ids=("17",), job_state="FAILED", log_read=True)
    runs.save(run)
    path = runs.folder(run.id) / "accounting.txt"
    path.write_text("FAILED")
    network = path.with_name("network.txt")
    network.write_text("== cn001\n")
    ended = Job(run.job_ids[-1], "", "FAILED", exit_code="1:0")
    runs.save_states(run, [ended])
    assert (runs.load(run.id).log_read, path.exists(), network.exists()) == (True, True, True)
    runs.save_states(runs.load(run.id), [replace(ended, state="PENDING", exit_code=None, restarts=1)])
    assert (runs.load(run.id).log_read, path.exists(), network.exists()) == (False, False, False)


def test_there_are_no_runs_at_first(runs: Runs) -> None:
    assert runs.all() == ()
    assert runs.unreadable() == ()


def test_a_damaged_run_is_reported_and_does_not_hide_other_runs(runs: Runs, make_run: MakeRun) -> None:
    runs.save(make_run())
    runs.save(replace(make_run(), id="broken"))
    (runs.folder("broken") / "run.json").write_text('{"id": "broken"}')
    assert [run.id for run in runs.all()] == [make_run().id]
    (error,) = runs.unreadable()
    assert "broken" in error.what


def test_an_unknown_run_is_the_callers_mistake(runs: Runs) -> None:
    with pytest.raises(LlmbError) as caught:
        runs.load("nosuchrun")
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("run_id", ["", "..", "a/b", "../../etc", "A", "a b", "a\n", "a" * 65])
def test_only_ids_name_folders(runs: Runs, run_id: str) -> None:
    with pytest.raises(LlmbError) as caught:
        runs.folder(run_id)
    assert caught.value.exit_code == 1


def test_scripts_are_private(runs: Runs) -> None:
    runs.save_script("a1", "#!/bin/bash\n")
    path = runs.folder("a1") / "script.sh"
    assert path.read_text() == "#!/bin/bash\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_lock_keeps_others_out_until_it_is_let_go(runs: Runs) -> None:
    entered = threading.Event()

    def second() -> None:
        with runs.lock("a1"):
            entered.set()

    thread = threading.Thread(target=second)
    with runs.lock("a1") as mine:
        assert mine
        thread.start()
        with runs.lock("a1", wait=False) as theirs:
            assert not theirs
        assert not entered.wait(0.1)
    assert entered.wait(5)
    thread.join()


def test_locks_of_two_runs_are_two(runs: Runs) -> None:
    with runs.lock("a1"), runs.lock("b1", wait=False) as mine:
        assert mine


@pytest.mark.parametrize("name", ["run.json", "script.sh", "log", "log.1", "lock", "beside.json", "notes"])
def test_a_link_in_a_runs_folder_is_an_error_and_its_target_stays_unchanged(
    runs: Runs, make_run: MakeRun, tmp_path: Path, name: str
) -> None:
    for run_id in ("a1", "sound"):
        runs.save(replace(make_run(), id=run_id, submission="submitted", job_ids=("7",)))
    assert {run.id for run in runs.all()} == {"a1", "sound"}
    outside = tmp_path / "outside"
    path = runs.folder("a1") / name
    outside.write_bytes(path.read_bytes() if path.exists() else b"theirs")
    before = outside.read_bytes(), os.stat(outside).st_mtime_ns
    path.unlink(missing_ok=True)
    path.symlink_to(outside)
    assert [run.id for run in runs.all()] == ["sound"]
    (error,) = runs.unreadable()
    assert error.what == f"{path} is a symbolic link, which this program never makes in a run's folder."
    assert str(outside) in error.why
    for use in (runs.load, lambda run_id: runs.lock(run_id).__enter__(), runs.save_log_read):
        with pytest.raises(LlmbError, match="symbolic link"):
            use("a1")
    with pytest.raises(LlmbError, match="Could not write"):
        LocalCopy(path).take()
    assert (outside.read_bytes(), os.stat(outside).st_mtime_ns) == before
    path.unlink()
    assert ("a1" in {run.id for run in runs.all()}) == (name != "run.json")


def test_a_runs_folder_that_is_a_link_is_refused(runs: Runs, make_run: MakeRun, tmp_path: Path) -> None:
    runs.save(make_run())
    real = runs.folder(make_run().id)
    elsewhere = real.rename(tmp_path / "elsewhere")
    real.symlink_to(elsewhere)
    (real.parent / "nowhere").symlink_to(tmp_path / "gone")
    held = sorted(path.name for path in elsewhere.iterdir())
    assert runs.all() == ()
    assert len(runs.unreadable()) == 2
    for use in (runs.load, lambda run_id: runs.lock(run_id).__enter__()):
        with pytest.raises(LlmbError, match="symbolic link"):
            use(real.name)
    assert sorted(path.name for path in elsewhere.iterdir()) == held


def test_the_directory_of_all_runs_may_be_elsewhere(runs: Runs, make_run: MakeRun, tmp_path: Path) -> None:
    runs.save(make_run())
    directory = runs.folder("a1").parent
    directory.symlink_to(directory.rename(tmp_path / "scratch"))
    with runs.lock(make_run().id):
        assert [run.id for run in runs.all()] == [make_run().id]
