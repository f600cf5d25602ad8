"""`jobs` reads a finished run once, and again if it has changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import UserPaths
from tests.kit import verbs
from tests.kit.runs import make_run

LONG_AGO = 1_700_000_000
LOG = "".join(
    f"Training epoch 0, iteration {step}/49 | global_step: {step} | train_step_timing in s: {2 + step % 3}.5\n"
    for step in range(50)
)


@pytest.fixture
def places(tmp_path: Path) -> UserPaths:
    return UserPaths(tmp_path / "config", tmp_path / "state")


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the runs that were read."""
    ids: list[str] = []
    load = Runs.load

    def counted(runs: Runs, run_id: str) -> Run:
        ids.append(run_id)
        return load(runs, run_id)

    monkeypatch.setattr(Runs, "load", counted)
    return ids


def remember(places: UserPaths, run: Run, log: str = LOG) -> Path:
    """Store a run with old time stamps."""
    Runs(places).save(run)
    folder = places.runs / run.id
    (folder / "log").write_text(log)
    for file in folder.iterdir():
        os.utime(file, (LONG_AGO, LONG_AGO))
    return folder


def done(run_id: str = "done", **fields: Any) -> Run:
    run = make_run(run_id, job_ids=("7",), submission="submitted", job_state="COMPLETED")
    return replace(run, **{"log_read": True, **fields})


def jobs(places: UserPaths, *words: str) -> str:
    printed = verbs.run(("jobs", *words), verbs.environment(places.state.parent))
    assert (printed.returncode, printed.stderr) == (0, "")
    return printed.stdout


def test_a_finished_run_is_read_once(places: UserPaths, loaded: list[str]) -> None:
    remember(places, done("old", created_at=1.0))
    remember(places, done("new", created_at=2.0))
    first, table = jobs(places, "--json"), jobs(places)
    assert [entry["id"] for entry in json.loads(first)] == ["new", "old"]
    assert {entry["steps_done"] for entry in json.loads(first)} == {50}
    assert sorted(loaded) == ["new", "old"]
    assert jobs(places, "--json") == first
    assert jobs(places) == table
    assert sorted(loaded) == ["new", "old"]


def longer_log(folder: Path) -> None:
    (folder / "log").write_text(LOG + "and one line\n")


def other_file(folder: Path) -> None:
    (folder / "beside.json").write_text("{}")


def saved_again(folder: Path) -> None:
    (folder / "run.json").write_bytes((folder / "run.json").read_bytes())


@pytest.mark.parametrize("change", [longer_log, other_file, saved_again])
def test_a_changed_run_is_read_again(places: UserPaths, loaded: list[str], change: Callable[[Path], None]) -> None:
    folder = remember(places, done())
    jobs(places)
    change(folder)
    jobs(places)
    assert loaded == ["done", "done"]


def test_a_removed_run_is_forgotten(places: UserPaths) -> None:
    folder = remember(places, done())
    jobs(places)
    folder.rename(places.state / "elsewhere")
    assert json.loads(jobs(places, "--json")) == []
    assert json.loads(places.runs_done.read_text())["runs"] == {}


@pytest.mark.parametrize(
    "run",
    [
        done("failed", job_state="FAILED"),
        done("cut", job_state="TIMEOUT"),
        make_run("intended", submission="intended"),
    ],
    ids=lambda run: run.id,
)
def test_only_finished_runs_are_cached(places: UserPaths, run: Run) -> None:
    remember(places, run, LOG[:1000])
    verbs.run(("jobs",), verbs.environment(places.state.parent))
    assert not places.runs_done.exists()


def test_a_run_that_may_change_within_its_time_stamp_is_not_cached(
    places: UserPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmb_tui.watch.run_cache.SETTLED_NS", 3600 * 10**9)
    Runs(places).save(done())
    (places.runs / "done" / "log").write_text(LOG)
    jobs(places)
    assert not places.runs_done.exists()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"maker": 1}', None])
def test_a_damaged_or_foreign_cache_is_ignored(places: UserPaths, loaded: list[str], text: str | None) -> None:
    remember(places, done())
    first, output_text = jobs(places, "--json"), places.runs_done.read_text()
    places.runs_done.write_text(output_text.replace('"maker": ["', '"maker": ["0') if text is None else text)
    assert jobs(places, "--json") == first
    assert loaded == ["done", "done"]
    assert places.runs_done.read_text() == output_text


def test_another_threshold_reads_the_runs_again(places: UserPaths, loaded: list[str]) -> None:
    remember(places, done())
    jobs(places)
    jobs(places, "--set", "verdict.threshold=0.5")
    assert loaded == ["done", "done"]
