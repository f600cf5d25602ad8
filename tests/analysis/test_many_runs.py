"""Several hundred runs in the history: reads of their files are counted, not timed."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster_files.prune import local_logs, remove_log
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from tests.kit import verbs
from tests.kit.runs import make_run

MANY = 300
LONG_AGO = 1_700_000_000
LOG = "".join(
    f"Training epoch 0, iteration {step}/49 | global_step: {step} | train_step_timing in s: 2.0\n" for step in (40, 49)
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("many")
    places = UserPaths(root / "config", root / "state")
    run = asdict(make_run("before", job_state="COMPLETED", log_read=True))
    for number in range(MANY):
        folder = places.runs / f"run{number}"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({**run, "id": folder.name, "created_at": float(number)}))
        (folder / "log").write_text(LOG)
        for file in folder.iterdir():
            os.utime(file, (LONG_AGO, LONG_AGO))
    return root


@pytest.fixture
def places(made: Path, tmp_path: Path) -> UserPaths:
    """All runs are completed and old."""
    root = shutil.copytree(made, tmp_path / "many")
    return UserPaths(root / "config", root / "state")


@contextmanager
def read_below(places: UserPaths) -> Iterator[Counter[str]]:
    """Number of opened files in the runs' folders, by file name."""
    names: Counter[str] = Counter()
    path_open, os_open = Path.open, os.open

    def count(path: Any) -> None:
        if isinstance(path, Path) and path.parent.parent == places.runs:
            names[path.name] += 1

    def of_path(path: Path, *how: Any, **more: Any) -> Any:
        file = path_open(path, *how, **more)
        count(path)
        return file

    def of_os(path: Any, *how: Any, **more: Any) -> int:
        handle = os_open(path, *how, **more)
        count(path)
        return handle

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Path, "open", of_path)
        monkeypatch.setattr(os, "open", of_os)
        yield names


def jobs(places: UserPaths) -> list[dict[str, Any]]:
    result = verbs.run(("jobs", "--json"), verbs.environment(places.state.parent))
    assert (result.returncode, result.stderr) == (0, "")
    documents: list[dict[str, Any]] = json.loads(result.stdout)
    return documents


def test_each_run_is_read_once_and_then_only_changed_files(places: UserPaths) -> None:
    with read_below(places) as names:
        first = jobs(places)
    assert names == {"run.json": MANY, "log": MANY}
    assert [first[0]["id"], len(first), {one["state"] for one in first}] == [f"run{MANY - 1}", MANY, {"done"}]
    with read_below(places) as names:
        assert jobs(places) == first
    assert names == {}
    Services(places).notes.change("run7", "said")
    with read_below(places) as names:
        assert {job["id"]: job["note"] for job in jobs(places) if job["note"]} == {"run7": "said"}
    assert names == {"run.json": 1, "log": 1, "note.json": 1}


def test_the_history_reads_nothing_again(places: UserPaths) -> None:
    services = Services(places)
    with read_below(places) as names:
        before = services.history.all()
    assert names == {"run.json": MANY, "log": MANY}
    with read_below(places) as names:
        assert services.history.all() == before
        assert services.notes.all() == {}
    assert names["run.json"] == names["log"] == 0


def test_removable_logs_are_found_without_reading_a_log_and_removed_ones_are_not_opened(places: UserPaths) -> None:
    runs = Services(places).runs
    with read_below(places) as names:
        logs = local_logs(runs, time.time(), {}).removable
    assert names == {"run.json": MANY}
    assert len(logs) == MANY
    for log in logs[:3]:
        remove_log(runs, log)
    with read_below(places) as names:
        assert len(local_logs(runs, time.time(), {}).removable) == MANY - 3
    assert names == {"run.json": MANY - 3}
