"""Selection of the finished runs that count as results of a cluster; each log is read once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.calibration import measured_here
from llmb_tui.plan.make import plan as plan_of
from llmb_tui.plan.selection import RunOptions
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.watch.local_results import LocalResults
from llmb_tui.watch.local_run import LocalRun
from llmb_tui.watch.logcopy import LogCopy, copies, newest_copy
from llmb_tui.watch.run_records import RunRecords
from tests.kit.runs import CATALOG, NEMOTRON

MakeRun = Callable[..., Run]
Line = Callable[..., str]
Ended = Callable[..., Run]


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(UserPaths(tmp_path / "config", tmp_path / "state"))


@pytest.fixture
def ended(runs: Runs, make_run: MakeRun, nemo_line: Line) -> Ended:
    """Function that stores a run of Nemotron4 15b FP8 on 64 GPUs (published: 1.98 s) with its log."""

    def make(run_id: str, seconds: float = 2.0, *, steps: int | None = None, **changes: Any) -> Run:
        selection = changes.pop("selection", NEMOTRON)
        made = changes.pop("plan", plan_of(CATALOG, selection))
        run = make_run(**{"id": run_id, "plan": made, "job_state": "COMPLETED", **changes})
        runs.save(run)
        last = made.steps - 1
        count = made.steps if steps is None else steps
        log = "".join(nemo_line(i, seconds, last) for i in range(count))
        (runs.folder(run_id) / "log").write_text(log)
        return run

    return make


def ids(runs: Runs, cluster: str = "demo") -> list[str]:
    return [result.run_id for result in LocalResults(RunRecords(runs), CATALOG).of(cluster)]


def test_a_finished_benchmark_counts(runs: Runs, ended: Ended) -> None:
    run = ended("a", 2.04, procedure="upstream")
    (result,) = LocalResults(RunRecords(runs), CATALOG).of("demo")
    assert (result.run_id, result.step_time_s, result.procedure) == ("a", 2.04, "upstream")
    assert result.plan == run.plan
    assert result.ended_at == (runs.folder("a") / "log").stat().st_mtime


def test_of_this_cluster_only(runs: Runs, ended: Ended) -> None:
    ended("a")
    ended("b", cluster="other")
    assert ids(runs) == ["a"]
    assert ids(runs, "other") == ["b"]
    assert ids(runs, "third") == []


@pytest.mark.parametrize(
    "changes",
    [
        {"job_state": "FAILED", "steps": 20},
        {"job_state": "CANCELLED", "steps": 49},
        {"job_state": "RUNNING"},
        {"procedure": "llmb", "spec": None},
        {"job_state": None},
        {"submission": "unknown", "job_ids": ()},
        {"submission": "refused", "job_ids": (), "job_state": None},
        {"steps": 0},
        {"selection": replace(NEMOTRON, options=RunOptions(profile=True))},
        {"selection": replace(NEMOTRON, options=RunOptions(load_checkpoint="/ckpt"))},
        {"selection": replace(NEMOTRON, steps=5)},
    ],
    ids=" ".join,
)
def test_a_run_that_is_not_a_benchmark_does_not_count(runs: Runs, ended: Ended, changes: dict[str, Any]) -> None:
    ended("a", **changes)
    assert ids(runs) == []


def test_a_run_that_saved_a_checkpoint_after_its_last_step_counts(runs: Runs, ended: Ended) -> None:
    ended("a", selection=replace(NEMOTRON, options=RunOptions(save_checkpoint=True)))
    assert ids(runs) == ["a"]


def test_a_run_whose_clean_up_failed_after_the_last_step_counts(runs: Runs, ended: Ended) -> None:
    ended("a", job_state="FAILED")
    assert ids(runs) == ["a"]


def test_a_run_without_a_log_or_with_a_broken_record_is_passed_over(runs: Runs, ended: Ended) -> None:
    ended("a")
    ended("b")
    ended("c")
    (runs.folder("a") / "log").unlink()
    (runs.folder("b") / "run.json").write_text("{")
    assert ids(runs) == ["c"]


def test_the_estimate_is_current_if_the_plan_is_the_same(runs: Runs, ended: Ended) -> None:
    today = plan_of(CATALOG, NEMOTRON)
    then = replace(today, estimate=None)
    elsewise = replace(then, parallelism=replace(today.parallelism, mbs=1, ga=8))
    gone = replace(then, selection=replace(NEMOTRON, release="20.01"))
    for run_id, plan in (("a", then), ("b", elsewise), ("c", gone)):
        ended(run_id, plan=plan)
    plans = {result.run_id: result.plan for result in LocalResults(RunRecords(runs), CATALOG).of("demo")}
    assert plans == {"a": today, "b": elsewise, "c": gone}


def test_a_log_is_read_again_only_when_it_has_changed(
    runs: Runs, ended: Ended, nemo_line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    class Counted(LocalRun):
        def __init__(self, runs: Runs, run: Run, threshold: float) -> None:
            read.append(run.id)
            super().__init__(runs, run, threshold)

    monkeypatch.setattr("llmb_tui.watch.run_records.LocalRun", Counted)
    ended("a")
    ended("b", steps=20)
    own = LocalResults(RunRecords(runs), CATALOG)
    assert [result.run_id for result in own.of("demo")] == ["a"]
    assert [result.run_id for result in own.of("demo")] == ["a"]
    assert sorted(read) == ["a", "b"], "a run that does not count is not read again either"
    with (runs.folder("b") / "log").open("a") as log:
        log.writelines(nemo_line(i, 2.1) for i in range(20, 50))
    assert {result.run_id for result in own.of("demo")} == {"a", "b"}
    assert sorted(read) == ["a", "b", "b"]


def test_the_newest_restart_counts(runs: Runs, ended: Ended, nemo_line: Line) -> None:
    ended("a", 3.0)
    (runs.folder("a") / "log.1").write_text("".join(nemo_line(i, 2.02) for i in range(50)))
    (result,) = LocalResults(RunRecords(runs), CATALOG).of("demo")
    assert result.step_time_s == 2.02


def test_the_newest_part_of_the_newest_restart_is_added_to(tmp_path: Path) -> None:
    assert newest_copy(tmp_path) == LogCopy()
    for name in ("log.10-2", "log", "log-1", "log.2-11", "log.10", "log.txt"):
        (tmp_path / name).touch()
    assert [copy.name for copy in copies(tmp_path)] == ["log", "log-1", "log.2-11", "log.10", "log.10-2"]
    assert newest_copy(tmp_path) == LogCopy(10, 2)


def test_local_results_need_no_connection(tmp_path: Path, ended: Ended) -> None:
    ended("a", 2.00)
    ended("b", 2.02)
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    cluster_estimate = measured_here(plan_of(CATALOG, NEMOTRON), services.local_results.of("demo"))
    assert cluster_estimate is not None
    assert cluster_estimate.step_time_s == pytest.approx(2.01)
    assert set(cluster_estimate.runs) == {"a", "b"}
    assert services.local_results.of("nowhere") == ()
