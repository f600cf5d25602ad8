"""State of runs according to their files; only changed files are read again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.job_log import JobLog
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.store import documents
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch import locallog
from llmb_tui.watch.locallog import LocalLog
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.report import document
from llmb_tui.watch.run_records import RunRecords
from llmb_tui.watch.state import Step

MakeRun = Callable[..., Run]
Line = Callable[..., str]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(UserPaths(tmp_path / "config", tmp_path / "state"))


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the parsed pieces of logs, in bytes."""
    sizes: list[int] = []

    class Parser(StepParser):
        def feed(self, data: bytes) -> list[Step]:
            sizes.append(len(data))
            return super().feed(data)

    monkeypatch.setattr(locallog, "StepParser", Parser)
    return sizes


def write(runs: Runs, run: Run, lines: list[str], name: str = "log") -> int:
    path = runs.folder(run.id) / name
    with path.open("a") as file:
        file.writelines(lines)
    return path.stat().st_size


def test_nothing_is_read_again_while_nothing_changes(
    runs: Runs, make_run: MakeRun, nemo_line: Line, fed: list[int]
) -> None:
    run = make_run(job_state="COMPLETED")
    runs.save(run)
    size = write(runs, run, [nemo_line(i) for i in range(50)])
    records = RunRecords(runs)
    (first,) = records.all()
    assert (first.state.stage, first.state.progress.steps_done) == ("done", 50)
    assert sum(fed) == size
    (again,) = records.all()
    assert again is first
    assert sum(fed) == size


def test_only_appended_data_of_an_active_run_is_read(
    runs: Runs, make_run: MakeRun, nemo_line: Line, fed: list[int]
) -> None:
    run = make_run(job_state="RUNNING")
    runs.save(run)
    records = RunRecords(runs)
    assert records.record(run).state.progress.steps_done == 0
    for steps in (10, 20, 30):
        size = write(runs, run, [nemo_line(i) for i in range(steps - 10, steps)])
        assert records.record(run).state.progress.steps_done == steps
    assert sum(fed) == size


@pytest.mark.parametrize(
    ("training", "names", "said"),
    [
        ("log_%j_%r.out", ["log", "log.1"], "The job was started again; `log` is the log of its previous start."),
        ("log_%j_%r.out", ["log", "log-1"], "The log was replaced while it was copied; `log` has the earlier lines."),
        (
            "log_%j_%r.out",
            ["log.1", "log.1-1"],
            "The log was replaced while it was copied; `log.1` has the earlier lines.",
        ),
        (
            "log_%j_%r.out",
            ["log", "log-1", "log-2", "log-3"],
            "The log was replaced while it was copied; `log`, `log-1` and `log-2` have the earlier lines.",
        ),
        (
            "log_%j_%r.out",
            ["log", "log-1", "log.1"],
            "The job was started again; `log-1` is the log of its previous start.",
        ),
        ("log_%j.out", ["log", "log.1"], "The log was replaced while it was copied; `log` has the earlier lines."),
    ],
)
def test_the_earlier_copy_is_named_as_a_replacement_or_a_previous_start(
    runs: Runs, make_run: MakeRun, training: str, names: list[str], said: str
) -> None:
    run = make_run(job_state="FAILED", log=JobLog(f"/x/{training}"), log_read=True)
    runs.save(run)
    for name in names:
        write(runs, run, ["x\n"], name)
    assert RunRecords(runs).record(run).state.no_verdict == f"No verdict: the run ended before its first step. {said}"


@pytest.mark.parametrize(
    ("training", "logs", "starts"),
    [
        ("log_%j_%r.out", {"log": (0, 30), "log.1": (20, 50)}, 2),
        ("log_%j_%r.out", {"log": (0, 0), "log.1": (0, 50)}, 1),
        ("log_%j_%r.out", {"log": (0, 9), "log.1": (0, 9), "log.2": (0, 50)}, 3),
        ("log_%j.out", {"log": (0, 30), "log-1": (0, 50)}, 2),  # the next start overwrites the log
        ("log_%j.out", {"log": (0, 30), "log-1": (30, 50)}, 1),  # the log was rotated
    ],
)
def test_starts_are_counted_over_all_logs_of_a_job(
    runs: Runs, make_run: MakeRun, training: str, logs: dict[str, tuple[int, int]], starts: int
) -> None:
    step = "Training epoch 0, iteration {0}/49 | global_step: {0} | train_step_timing in s: 2.0\n"
    run = make_run(job_state="COMPLETED", log=JobLog(f"/x/{training}"), log_read=True)
    runs.save(run)
    for name, (first, end) in logs.items():
        write(runs, run, ["x\n", *(step.format(i) for i in range(first, end))], name)
    assert document(run, RunRecords(runs).record(run).state)["starts"] == starts


def test_the_files_of_a_run_are_evidence_as_soon_as_they_are_here(
    runs: Runs, make_run: MakeRun, nemo_line: Line
) -> None:
    run = make_run(job_state="COMPLETED", log_read=True)
    runs.save(run)
    write(runs, run, [nemo_line(i, seconds=2.0) for i in range(50)])
    records = RunRecords(runs)

    def outcomes() -> dict[str, str]:
        return {check.id: check.outcome for check in records.record(run).state.validity}

    assert (outcomes()["transport"], outcomes()["gpu"]) == ("unknown", "unknown")
    write(runs, run, ["a:1:1 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/Socket/0\n"], "network.txt")
    write(runs, run, ["JobID|AllocTRES|JobName\n", "42|gres/gpu:h100=64|x\n"], "accounting.txt")
    assert (outcomes()["transport"], outcomes()["gpu"]) == ("failed", "ok")
    verdict = records.record(run).state.verdict
    assert verdict is not None
    assert verdict.result == "WARN"


@pytest.mark.parametrize("cut", [0, 2, 8, 20])
def test_an_incomplete_line_of_the_container_is_not_a_start(tmp_path: Path, make_run: MakeRun, cut: int) -> None:
    log, line = LocalLog(make_run(), tmp_path / "log"), "srun: pyxis: importing docker image: x\n"
    started = []
    for text in (line + line[:cut], line[cut:], "[NeMo I] x", "\n"):
        with log.path.open("a") as file:
            file.write(text)
        log.read()
        started.append(log.reading.started)
    assert started == [False, False, False, True]


def test_steps_that_a_copy_has_lost_again_do_not_count(tmp_path: Path, make_run: MakeRun, nemo_line: Line) -> None:
    """The follower removes bytes that were damaged on their way."""
    log = LocalLog(make_run(), tmp_path / "log")
    log.path.write_text("".join(nemo_line(i) for i in range(20)))
    log.read()
    assert log.progress.steps_done == 20
    log.path.write_text("".join(nemo_line(i) for i in range(5)))
    log.read()
    assert log.progress.steps_done == 5


def test_a_new_state_a_new_log_and_a_reason_are_seen(runs: Runs, make_run: MakeRun, nemo_line: Line) -> None:
    run = make_run(job_state="RUNNING")
    runs.save(run)
    write(runs, run, [nemo_line(i) for i in range(20)])
    records = RunRecords(runs)
    assert records.record(run).state.stage == "measuring"
    write(runs, run, [nemo_line(i) for i in range(5)], "log.1")
    state = records.record(run).state
    assert (state.log_name, state.progress.steps_done) == ("log.1", 5)
    ended = run.with_state("42", "FAILED")
    runs.save(ended)
    (record,) = records.all()
    assert (record.state.stage, record.state.why_failed) == (
        "failed",
        "The batch script ended with an error.",
    )


def test_a_replaced_log_is_read_again(runs: Runs, make_run: MakeRun, nemo_line: Line) -> None:
    run = make_run(job_state="RUNNING")
    runs.save(run)
    write(runs, run, [nemo_line(i) for i in range(20)])
    records = RunRecords(runs)
    records.all()
    (runs.folder(run.id) / "log").write_text(nemo_line(0))
    assert records.record(run).state.progress.steps_done == 1


def test_run_files_are_read_once_and_again_when_they_are_others(
    runs: Runs, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    load = documents.load

    def counted(path: Path, *how: Any, **options: Any) -> Any:
        read.append(path.parent.name)
        return load(path, *how, **options)

    monkeypatch.setattr(documents, "load", counted)
    for run_id in ("a", "b"):
        runs.save(make_run(id=run_id))
    for _ in range(3):
        assert {run.id for run in runs.all()} == {"a", "b"}
        assert runs.unreadable() == ()
    assert sorted(read) == ["a", "b"]
    runs.save(make_run(id="a", job_state="RUNNING"))
    assert {run.job_state for run in runs.all()} == {"RUNNING", None}
    (runs.folder("b") / "run.json").write_text("{")
    assert (len(runs.all()), len(runs.unreadable())) == (1, 1)
    (runs.folder("a") / "run.json").unlink()
    os.rmdir(runs.folder("a"))
    assert runs.all() == ()
    assert sorted(read) == ["a", "a", "b", "b"]


def test_files_removed_by_another_program_are_ignored(
    runs: Runs, make_run: MakeRun, nemo_line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run_id in ("kept", "gone"):
        runs.save(make_run(id=run_id, job_state="FAILED"))
        write(runs, runs.load(run_id), [nemo_line(step) for step in range(5)])
    records, listed, listdir = RunRecords(runs), runs.all(), os.listdir
    shutil.rmtree(runs.folder("gone"))
    monkeypatch.setattr(os, "listdir", lambda folder: [*listdir(folder), "beside.json", "log-away"])
    steps = {run.id: records.record(run).state.progress.steps_done for run in listed}
    assert steps == {"kept": 5, "gone": 0}
