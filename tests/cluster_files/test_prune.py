"""Removal of local copies of logs, which changes no result that was read from them."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.job import Job
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster_files.prune import loaded_by_suites, local_logs, remove_log
from llmb_tui.errors import LlmbError
from llmb_tui.history import History
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.selection import RunOptions
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.suites.suite import make_suite
from llmb_tui.watch.job_poller import JobPoller
from llmb_tui.watch.monitor import Monitor
from llmb_tui.watch.run_records import RunRecords
from tests.kit import verbs
from tests.kit.runs import NEMOTRON, make_run

LONG_AGO = 1_700_000_000.0
LATER = LONG_AGO + 1
LOG = "simulated: no training happens\n" + "".join(
    f"Training epoch 0, iteration {step}/49 | global_step: {step} | reduced_train_loss: {10 - step / 10} | "
    f"train_step_timing in s: {2 + step % 3 / 100}\n"
    for step in range(50)
)
FAILED = LOG[: len(LOG) // 3] + "\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(UserPaths(tmp_path / "config", tmp_path / "state"))


def over(run_id: str, **fields: Any) -> Run:
    return replace(make_run(run_id, job_ids=("7",), job_state="COMPLETED", log_read=True), **fields)


def remember(runs: Runs, run: Run, log: str = LOG, *more: str) -> Path:
    runs.save(run)
    folder = runs.folder(run.id)
    for name in ("log", *more):
        (folder / name).write_text(log)
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    return folder


def listed(runs: Runs, before: float = LATER, **held: str) -> list[str]:
    return [log.run.id for log in local_logs(runs, before, held).removable]


def prune(runs: Runs, *run_ids: str) -> None:
    for log in local_logs(runs, LATER, {}).removable:
        if log.run.id in run_ids:
            remove_log(runs, log)


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"])
@pytest.mark.parametrize("log", [LOG, FAILED, "no step\n"], ids=["whole", "failed", "empty"])
def test_all_results_of_a_run_stay_after_its_log_is_removed(runs: Runs, state: str, log: str) -> None:
    folder = remember(runs, over("one", job_state=state), log, "log.1")
    (before,) = RunRecords(runs).all()
    result = History(RunRecords(runs), runs).result("one")
    prune(runs, "one")
    assert sorted(path.name for path in folder.iterdir()) == ["facts.json", "lock", "log.json", "run.json"]
    (after,) = RunRecords(runs).all()
    assert after == replace(before, state=replace(before.state, log_removed=True))
    again = History(RunRecords(runs), runs).result("one")
    assert again == replace(result, record=after)
    assert again.facts
    assert again.facts.simulated == log.startswith("simulated")
    assert (again.loss, again.verdict, again.step_time_s) == (result.loss, result.verdict, result.step_time_s)


def test_a_pruned_log_is_noticed_when_runs_are_listed_again(runs: Runs) -> None:
    remember(runs, over("one"))
    records = RunRecords(runs)
    history = History(records, runs)
    (before,) = history.all()
    prune(runs, "one")
    assert records.all()[0].state.log_removed
    assert history.all() == (replace(before, record=records.all()[0]),)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (over("a", job_state="RUNNING"), "still active"),
        (over("a", job_state=None), "still active"),
        (over("a", submission="unknown", job_ids=()), "unknown whether"),
        (over("a", submission="intended", job_ids=(), job_state=None), "not submitted"),
        (over("a", log_read=False), "read to its end"),
        (over("a", log_read=None), "read to its end"),
        (over("a", job_ids=("6", "7"), other_states=(("6", "RUNNING"),)), "still active"),
    ],
)
def test_unfinished_and_unknown_runs_stay(runs: Runs, run: Run, why: str) -> None:
    remember(runs, run)
    logs = local_logs(runs, LATER, {})
    assert logs.removable == ()
    assert why in logs.kept["a"]


def test_logs_of_suites_and_young_and_unreadable_logs_stay(runs: Runs) -> None:
    for run_id in ("a", "b", "c"):
        remember(runs, over(run_id))
    os.utime(runs.folder("b") / "log", (LATER + 5, LATER + 5))
    (runs.folder("c") / "run.json").write_text("{")
    logs = local_logs(runs, LATER, {"a": "The suite is active."})
    assert logs.removable == ()
    assert logs.kept["a"] == "The suite is active."
    assert "run.json" in logs.kept["c"]


def test_a_link_is_never_followed(runs: Runs, tmp_path: Path) -> None:
    folder = remember(runs, over("a"))
    elsewhere = tmp_path / "precious"
    elsewhere.write_text(LOG)
    (folder / "log").unlink()
    (folder / "log").symlink_to(elsewhere)
    (runs.directory / "b").symlink_to(tmp_path)
    logs = local_logs(runs, LATER, {})
    assert logs.removable == ()
    assert "symbolic link" in logs.kept["a"]
    assert elsewhere.read_text() == LOG


def test_a_log_that_changed_since_it_was_listed_stays(runs: Runs) -> None:
    folder = remember(runs, over("a"))
    (log,) = local_logs(runs, LATER, {}).removable
    changes: list[Callable[[], object]] = [
        lambda: (folder / "log").write_text(LOG + "one line more\n"),
        lambda: (folder / "log.1").write_text(LOG),
        lambda: runs.save(over("a", job_state="RUNNING")),
    ]
    for change in changes:
        change()
        with pytest.raises(LlmbError, match="was not removed"):
            remove_log(runs, log)
        assert (folder / "log").exists()


def test_a_log_in_use_by_another_program_stays(runs: Runs) -> None:
    folder = remember(runs, over("a"))
    (log,) = local_logs(runs, LATER, {}).removable
    with (folder / "log").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(LlmbError, match="working on it"):
            remove_log(runs, log)
    with runs.lock("a"), pytest.raises(LlmbError, match="working on it"):
        remove_log(runs, log)
    remove_log(runs, log)
    assert not (folder / "log").exists()


def test_an_interrupted_removal_is_repeated(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = remember(runs, over("a"), LOG, "log-1", "log.1")
    (before,) = RunRecords(runs).all()
    unlink = Path.unlink
    gone: list[str] = []

    def cut(path: Path, missing_ok: bool = False) -> None:
        if path.name.startswith("log"):
            if gone:
                raise OSError(5, "cut")
            gone.append(path.name)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", cut)
    with pytest.raises(LlmbError):
        prune(runs, "a")
    monkeypatch.undo()
    assert gone == ["log"]
    assert RunRecords(runs).all() == (before,)
    prune(runs, "a")
    assert sorted(path.name for path in folder.iterdir()) == ["facts.json", "lock", "log.json", "run.json"]


class NoLogOfIt:
    """A cluster that has forgotten the job, and whose log is never requested."""

    profile = None

    def connect(self, prompter: object) -> None:
        """Succeed."""

    def query_jobs(self, _: object) -> dict[str, Job]:
        return {}

    def retry_after_disconnect(self, ask: Callable[[], str]) -> str:
        return ask()

    def accounting(self, _: object) -> str:
        return ""


def test_watching_a_pruned_run_does_not_copy_its_log_again(runs: Runs) -> None:
    folder = remember(runs, over("a"))
    (before,) = RunRecords(runs).all()
    prune(runs, "a")
    cluster: Any = NoLogOfIt()
    state = Monitor(cluster, runs, runs.load("a"), JobPoller(cluster)).once()
    assert (state.stage, state.verdict, state.progress) == ("done", before.state.verdict, before.state.progress)
    assert state.link == "live"
    assert not (folder / "log").exists()


def test_a_damaged_remainder_is_reported(runs: Runs) -> None:
    folder = remember(runs, over("a"))
    prune(runs, "a")
    (folder / "log.json").write_text("{")
    (record,) = RunRecords(runs).all()
    assert "log.json" in record.state.link_note


def answer(runs: Runs, *words: str) -> Any:
    result = verbs.run((*words, "--json"), verbs.environment(runs.directory.parents[1]))
    return result.returncode, json.loads(result.stdout)


def test_prune_lists_first_removes_after_confirmation_and_changes_no_list(runs: Runs) -> None:
    remember(runs, over("old"))
    remember(runs, over("new"))
    os.utime(runs.folder("new") / "log")
    remember(runs, over("going", log_read=False))
    before = answer(runs, "jobs")
    shown = verbs.run(("jobs", "--prune"), verbs.environment(runs.directory.parents[1]))
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["run", "new", "old"]
    assert "run going is kept" in lines[-1]
    assert "Add --yes to remove them" in shown.stderr
    assert answer(runs, "jobs", "--prune", "--older-than", "7")[1]["removed"] == []
    code, document = answer(runs, "jobs", "--prune", "--older-than", "7", "--yes")
    assert (code, document["removed"], list(document["kept"])) == (0, ["old"], ["going"])
    assert document["logs"][0] == {
        "id": "old", "cluster": "eos", "files": ["log"], "bytes": len(LOG), "grew_at": LONG_AGO,
    }  # fmt: skip
    assert answer(runs, "jobs") == before
    (result,) = answer(runs, "results", "old")[1]
    assert result.pop("result")["loss"] is not None
    assert result == next(
        {name: value for name, value in one.items() if name not in ("note", "tags")}
        for one in before[1]
        if one["id"] == "old"
    )
    log = verbs.run(("logs", "old"), verbs.environment(runs.directory.parents[1]))
    assert "removed the local copy" in log.stderr
    assert answer(runs, "jobs", "--prune")[1]["logs"][0]["id"] == "new"


def test_an_active_suite_names_the_checkpoints_that_it_loads(runs: Runs) -> None:
    services = Services(UserPaths(*(runs.directory.parents[1] / name for name in ("config", "state"))))
    services.clusters.save(SlurmProfile("eos", "eos", "acct", "batch", "/lustre/llmb"))
    loads = replace(NEMOTRON, options=RunOptions(load_checkpoint="/lustre/llmb/saved"))
    kept = services.suites.keep(make_suite("nightly", "eos", [(NEMOTRON, "direct"), (loads, "direct")]))
    assert loaded_by_suites(services.suites) == {"/lustre/llmb/saved": f"Suite {kept.id} (nightly) is to load from it."}
    services.suites.change(kept.id, lambda suite: replace(suite, cancelled=True))
    assert loaded_by_suites(services.suites) == {}


def test_the_runs_of_an_active_suite_keep_their_logs(runs: Runs) -> None:
    root = runs.directory.parents[1]
    services = Services(UserPaths(root / "config", root / "state"))
    services.clusters.save(SlurmProfile("eos", "127.0.0.1", "acct", "batch", "/lustre"))
    suite = make_suite("nightly", "eos", [(NEMOTRON, "direct"), (NEMOTRON, "direct")])
    kept = services.suites.keep(suite)
    remember(runs, over(kept.run_ids[0]))
    remember(runs, over("other"))
    code, document = answer(runs, "jobs", "--prune", "--yes")
    assert (code, document["removed"]) == (0, ["other"])
    assert document["kept"] == {kept.run_ids[0]: f"Suite {kept.id} (nightly) is active."}
    remember(runs, over(kept.run_ids[1]))
    assert len(answer(runs, "jobs", "--prune", "--yes")[1]["removed"]) == 2
    (root / "state" / "suites" / kept.id / "suite.json").write_text("{")
    assert answer(runs, "jobs", "--prune", "--yes")[0] == 2


def test_jobs_with_yes_needs_prune(runs: Runs) -> None:
    assert answer(runs, "jobs", "--yes")[0] == 1


def test_only_runs_with_a_log_are_read(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        remember(runs, over(f"run{number}"))
    prune(runs, *(f"run{number}" for number in range(1, 40)))
    read: list[str] = []
    load = Runs.load

    def counted(runs: Runs, run_id: str) -> Run:
        read.append(run_id)
        return load(runs, run_id)

    monkeypatch.setattr(Runs, "load", counted)
    monkeypatch.setattr("llmb_tui.cluster_files.prune.read_log", None)
    assert listed(runs) == ["run0"]
    assert read == ["run0"]
