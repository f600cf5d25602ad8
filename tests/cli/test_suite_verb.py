"""`suite` before a cluster is asked: plans, refusals and confirmations."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.login_profile import NO_SSH_CONFIG
from llmb_tui.cluster.profiles import save_profile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.run import Run
from llmb_tui.launch.runs import Runs
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.suites.runner import LogFetchResult, SuiteRunner
from llmb_tui.suites.suite import make_suite
from llmb_tui.toml.read import builtin_dir
from llmb_tui.watch.runs_feed import RunsFeed
from tests.kit import verbs
from tests.kit.runs import NEMOTRON, make_run
from tests.kit.verbs import Completed

FILE = """
cluster = "eos"
workloads = ["nemotron4@25.04"]
sizes = ["15b"]
precisions = ["bf16", "fp8"]
scales = [64]
"""
NOBODY = SlurmProfile("eos", "127.0.0.1", "acct", "batch", "/lustre/llmb", port=1, user="me", ssh_config=NO_SSH_CONFIG)
LOW = "limits.suite_gpu_hours=1"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    save_profile(tmp_path / "config" / "clusters", NOBODY)
    path = tmp_path / "weekly.toml"
    path.write_text(FILE)
    return path


def suite(home: Path, *words: str, code: int = 0) -> Completed:
    result = verbs.run(("suite", *words), verbs.environment(home))
    assert result.returncode == code, result.stdout + result.stderr
    return result


def kept(home: Path) -> list[str]:
    folder = home / "state" / "suites"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_plan_has_rows_and_sums(tmp_path: Path, file: Path) -> None:
    plan = json.loads(suite(tmp_path, "plan", str(file), "--offline", "--json").stdout)
    assert [row["selection"]["dtype"] for row in plan["rows"]] == ["bf16", "fp8"]
    assert plan["gpu_hours"] == pytest.approx(sum(row["gpu_hours"] for row in plan["rows"]))
    assert plan["serial_s"] == pytest.approx(50 * sum(row["estimate"]["step_time_s"] for row in plan["rows"]))
    assert (plan["id"], plan["parallel_s"], plan["free_nodes"], plan["blockers"]) == (None, None, None, [])
    shown = suite(tmp_path, "plan", str(file), "--offline").stdout
    assert f"cost        {plan['gpu_hours']:.1f} GPU-hours plus start-up" in shown
    assert kept(tmp_path) == []


def test_an_impossible_plan_exits_with_1_and_names_the_row(tmp_path: Path, file: Path) -> None:
    result = suite(tmp_path, "plan", str(file), "--offline", "--read-only", code=1)
    assert "nemotron4@25.04 15b fp8 64: eos is read-only" in result.stdout


def test_a_wrong_file_is_reported_with_line_field_and_fix(tmp_path: Path, file: Path) -> None:
    file.write_text(FILE.replace("fp8", "fp9"))
    result = suite(tmp_path, "submit", str(file), "--yes", "--json", code=1)
    error = json.loads(result.stdout)["error"]
    assert error["what"].startswith(f"suite {file}, line 5: precisions[1]: ")
    assert "fp8" in error["what"]
    assert kept(tmp_path) == []


@pytest.mark.usefixtures("file")
def test_ready_made_suites_need_no_scale(tmp_path: Path) -> None:
    scaling = ("plan", "scaling", "-w", "nemotron4@25.04", "-s", "15b", "-d", "fp8", "--cluster", "eos", "--offline")
    plan = json.loads(suite(tmp_path, *scaling, "--max-scale", "64", "--json").stdout)
    assert [row["selection"]["scale"] for row in plan["rows"]] == [16, 32, 64]
    acceptance = ("plan", "acceptance", "-w", "grok1", "--cluster", "eos", "--offline", "--max-scale", "8", "--json")
    assert len(json.loads(suite(tmp_path, *acceptance).stdout)["rows"]) == 2
    for flag, value in (("--size", "314b"), ("--dtype", "bf16"), ("--scale", "8"), ("--tp", "4")):
        assert f"`acceptance` takes no {flag}." in suite(tmp_path, *acceptance, flag, value, code=1).stderr


def test_a_ready_made_suite_uses_the_newest_release_with_the_size(tmp_path: Path) -> None:
    save_profile(tmp_path / "config" / "clusters", NOBODY)
    presets = tmp_path / "config" / "presets"
    shutil.copytree(builtin_dir() / "constraints", presets / "constraints")
    newer = (builtin_dir() / "llama3.1-24.11.toml").read_text().replace('release = "24.11"', 'release = "26.01"', 1)
    (presets / "llama3.1-26.01.toml").write_text(newer)
    scaling = ("plan", "scaling", "-w", "llama3.1", "-s", "8b", "-d", "fp8", "--cluster", "eos", "--offline", "--json")
    rows = json.loads(suite(tmp_path, *scaling, "--max-scale", "16").stdout)["rows"]
    assert [(row["selection"]["release"], row["selection"]["scale"]) for row in rows] == [("25.04", 8), ("25.04", 16)]


def test_a_read_only_cluster_refuses_a_suite_first(tmp_path: Path, file: Path) -> None:
    for action in ("submit", "cancel"):
        suite(tmp_path, action, str(file), "--yes", "--read-only", code=1)
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--yes"),
        (("--yes", "--set", LOW), "--yes --gpu-hours "),
        (("--set", LOW), "--yes --gpu-hours "),
        (("--yes", "--set", LOW, "--gpu-hours", "2"), "The suite takes "),
        (("--yes", "--gpu-hours", "2"), "The suite takes "),
        (("--yes", "--gpu-hours", "nan"), "The suite takes "),
    ],
)
def test_a_submission_without_a_terminal_needs_enough_flags(
    tmp_path: Path, file: Path, words: tuple[str, ...], message: str
) -> None:
    assert message in suite(tmp_path, "submit", str(file), *words, code=1).stderr
    assert kept(tmp_path) == []


def test_the_gpu_hours_of_a_plan_confirm_a_suite(tmp_path: Path, file: Path) -> None:
    plan = json.loads(suite(tmp_path, "plan", str(file), "--offline", "--json").stdout)
    for hours in (f"{plan['gpu_hours']:.1f}", str(plan["gpu_hours"])):
        words = ("submit", str(file), "--yes", "--set", LOW, "--gpu-hours", hours)
        assert "127.0.0.1" in suite(tmp_path, *words, code=2).stderr
    (kept_id,) = kept(tmp_path)
    again = suite(tmp_path, "submit", str(file), "--yes", code=2)
    assert f"Continuing suite {kept_id}: 0 of 2 runs done · 2 not submitted" in again.stderr
    assert kept(tmp_path) == [kept_id]
    assert Runs(UserPaths(tmp_path / "config", tmp_path / "state")).all() == ()


@pytest.mark.parametrize(("typed", "code"), [("4.1\n", 2), ("4\n", 1), ("yes\n", 1), ("\n", 1)])
def test_a_suite_above_the_limit_is_confirmed_by_typing_its_gpu_hours(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, typed: str, code: int
) -> None:
    monkeypatch.setattr("llmb_tui.cli.suite.has_terminal", lambda: True)
    monkeypatch.setattr("llmb_tui.cli.suite.read_line", lambda: typed)
    monkeypatch.setattr("llmb_tui.cli.suite.terminal_prompter", lambda: None)
    result = suite(tmp_path, "submit", str(file), "--set", LOW, code=code)
    assert "4.1 GPU-hours plus start-up, at most 64.0 by their time limits" in result.stderr
    assert bool(kept(tmp_path)) == (code == 2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan",), "No suite is named."),
        (("watch", "nothing.toml"), "is neither a file nor a suite"),
        (("submit", "s000000000000abcd", "--yes"), "is neither a file nor a suite"),
        (("plan", "scaling", "-w", "nemotron4"), "--cluster"),
        (("plan", "scaling", "--cluster", "eos", "--max-scale", "16"), "workload is missing"),
    ],
)
def test_missing_values_are_reported(tmp_path: Path, file: Path, words: tuple[str, ...], message: str) -> None:
    assert file.exists()
    assert message in suite(tmp_path, *words, code=1).stderr


def test_a_suite_file_cannot_be_combined_with_selection_flags(tmp_path: Path, file: Path) -> None:
    assert "it defines its own runs" in suite(tmp_path, "plan", str(file), "--scale", "16", code=1).stderr


def test_a_suite_that_is_not_submitted_is_not_watched(tmp_path: Path, file: Path) -> None:
    assert "was not submitted" in suite(tmp_path, "watch", str(file), code=1).stderr
    assert json.loads(suite(tmp_path, "list", "--json").stdout) == []
    assert "No suites yet" in suite(tmp_path, "list").stderr


def stored(home: Path, *states: str, **conduct: Any) -> str:
    """A suite of three runs, of which the first are submitted and have these states."""
    services = Services(UserPaths(home / "config", home / "state"))
    suite = make_suite("mine", "eos", [(NEMOTRON, "direct")] * 3, **conduct)
    rows = tuple(replace(row, run_id=f"row{index}") for index, row in enumerate(suite.rows))
    services.suites.save(replace(suite, id="s251123080000aaaa", rows=rows))
    for row, state in zip(rows, states, strict=False):
        services.runs.save(make_run(row.run_id, job_state=state, log_read=True))
        (services.runs.folder(row.run_id) / "log").write_text(
            "".join(f"Training epoch 0, iteration {step}/49 | train_step_timing in s: 1.98\n" for step in range(50))
            if state == "COMPLETED"
            else ""
        )
    return "s251123080000aaaa"


STOPPED = "No more runs are submitted: "


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("states", "conduct", "code", "message"),
    [
        (("FAILED",), {"stop_after": 1}, 1, f"{STOPPED}0 of 3 runs done · 1 failed · 2 not submitted"),
        (("COMPLETED",), {"cancelled": True}, 1, f"{STOPPED}1 of 3 runs done: 1 PASS · 2 not submitted"),
        (("COMPLETED",) * 3, {}, 0, "Suite s251123080000aaaa is finished: 3 of 3 runs done: 3 PASS"),
        (("RUNNING",) * 3, {}, 0, "Suite s251123080000aaaa is active: 0 of 3 runs done · 3 running"),
    ],
)
def test_a_stopped_suite_prints_the_reason(
    tmp_path: Path, states: tuple[str, ...], conduct: dict[str, Any], code: int, message: str
) -> None:
    cancelled = conduct.pop("cancelled", False)
    suite_id = stored(tmp_path, *states, **conduct)
    if cancelled:
        services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
        services.suites.change(suite_id, lambda suite: replace(suite, cancelled=True))
    result = suite(tmp_path, "submit", suite_id, "--yes", "--json", code=code)
    assert result.stderr == f"{message}\n"
    assert json.loads(result.stdout)["id"] == suite_id


@pytest.mark.usefixtures("file")
def test_only_cancelled_jobs_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second job ends before it is cancelled; the third had finished before."""

    def cancel(_: object, run: Run, __: object = None) -> tuple[str, ...]:
        return run.job_ids if run.id == "row0" else ()

    monkeypatch.setattr(RunsFeed, "cancel", cancel)
    result = suite(tmp_path, "cancel", stored(tmp_path, "RUNNING", "RUNNING", "COMPLETED"), "--yes", "--json")
    assert json.loads(result.stdout)["cancelled"] == ["row0"]
    assert "nothing was cancelled" in result.stderr


@pytest.mark.usefixtures("file")
def test_a_run_that_may_still_get_a_job_is_not_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite_id = stored(tmp_path, "RUNNING")
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    services.runs.save(make_run("row1", submission="unknown", job_ids=(), job_state=None))
    monkeypatch.setattr(RunsFeed, "cancel", lambda _, run, __=None: run.job_ids)
    monkeypatch.setattr(RunsFeed, "settle", lambda _, run_id, __=None: services.runs.load(run_id))
    result = suite(tmp_path, "cancel", suite_id, "--yes", "--json", code=2)
    document = json.loads(result.stdout)
    assert "unknown whether" in document["error"]["what"]
    assert (document["id"], document["cancelled"]) == (suite_id, ["row0"])
    assert "asked to cancel job 48123" in result.stderr


@pytest.mark.usefixtures("file")
def test_a_suite_with_an_unreadable_run_is_shown(tmp_path: Path) -> None:
    """The verb completes, and the row shows the reason for its unknown state."""
    suite_id = stored(tmp_path, "COMPLETED", "COMPLETED", "COMPLETED")
    (tmp_path / "state" / "runs" / "row1" / "run.json").write_text("{")
    assert "1 unknown" in suite(tmp_path, "list").stdout
    watched = suite(tmp_path, "watch", suite_id, code=2)
    assert "row1/run.json" in watched.stdout
    assert "PASS" in watched.stdout
    (listed,) = json.loads(suite(tmp_path, "list", "--json").stdout)
    assert [row["standing"] for row in listed["rows"]] == ["done", "unknown", "done"]
    assert "run.json" in listed["rows"][1]["trouble"]
    assert "is active: 2 of 3 runs done: 2 PASS · 1 unknown" in suite(tmp_path, "submit", suite_id, code=2).stderr


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize("states", [("COMPLETED",) * 3, ("COMPLETED", "FAILED", "COMPLETED")])
@pytest.mark.parametrize("words", [(), ("--json",), ("--once",)])
def test_unread_verdicts_exit_with_2(tmp_path: Path, states: tuple[str, ...], words: tuple[str, ...]) -> None:
    suite_id = stored(tmp_path, *states)
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    services.runs.save(make_run("row2", job_state="COMPLETED", log_read=False))
    (services.runs.folder("row2") / "log").unlink()
    result = suite(tmp_path, "watch", suite_id, *words, code=2)
    assert result.stderr.count("eos: Could not reach 127.0.0.1, port 1.") == 1


@pytest.mark.usefixtures("file")
def test_the_log_of_a_job_that_ends_after_the_last_poll_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite_id = stored(tmp_path, "COMPLETED", "COMPLETED", "RUNNING")
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    log = services.runs.folder("row2") / "log"
    looks = iter((False, True))

    def read_logs(*_: object, include_active: bool) -> LogFetchResult:
        assert include_active
        services.runs.save(make_run("row2", job_state="COMPLETED", log_read=next(looks)))
        if services.runs.load("row2").log_read:
            log.write_text((services.runs.folder("row1") / "log").read_text())
        return LogFetchResult("", frozenset())

    monkeypatch.setattr(SuiteRunner, "read_logs", read_logs)
    result = suite(tmp_path, "watch", suite_id, "--json")
    assert json.loads(result.stdout.splitlines()[-1])["verdicts"]["PASS"] == 3


@pytest.mark.parametrize(
    ("flags", "differs"),
    [
        (("--at-most", "1"), "`--at-most` is 1 there and not given here"),
        (("--stop-after", "2"), "`--stop-after` is 2 there and not given here"),
        (("--shuffle", "7"), "`--shuffle` is 7 there and not given here"),
        (("--procedure", "upstream"), "`--procedure` is upstream there and direct here"),
    ],
)
def test_a_file_that_was_submitted_with_flags_is_found(
    tmp_path: Path, file: Path, flags: tuple[str, ...], differs: str
) -> None:
    suite(tmp_path, "submit", str(file), "--yes", *flags, code=2)
    (suite_id,) = kept(tmp_path)
    again = suite(tmp_path, "submit", str(file), "--yes", code=1)
    assert differs in again.stderr
    assert "runs are others" not in again.stderr
    watched = suite(tmp_path, "watch", str(file), "--json")
    assert (json.loads(watched.stdout)["id"], suite_id in watched.stderr) == (suite_id, True)
    assert "Could not reach" not in watched.stderr, "nothing was submitted, so the cluster is not asked"
    cancelled = suite(tmp_path, "cancel", str(file), "--yes", "--json")
    assert json.loads(cancelled.stdout)["id"] == suite_id
    over = suite(tmp_path, "watch", str(file), code=1)
    assert f"llmb-tui suite watch {suite_id}" in over.stderr


def test_several_active_suites_need_an_id(tmp_path: Path, file: Path) -> None:
    for number in ("1", "2"):
        suite(tmp_path, "submit", str(file), "--yes", "--new", "--at-most", number, code=2)
    for action in ("watch", "cancel"):
        result = suite(tmp_path, action, str(file), "--yes", code=1)
        assert all(suite_id in result.stderr for suite_id in kept(tmp_path))
    suite(tmp_path, "submit", str(file), "--yes", "--new", code=2)
    assert json.loads(suite(tmp_path, "watch", str(file), "--json").stdout)["at_most"] is None
    file.write_text(FILE.replace("64", "32"))
    assert "its runs differ" in suite(tmp_path, "submit", str(file), "--yes", code=1).stderr


def test_an_active_suite_takes_precedence_over_a_finished_one(tmp_path: Path, file: Path) -> None:
    suite(tmp_path, "submit", str(file), "--yes", code=2)
    suite(tmp_path, "cancel", str(file), "--yes")
    suite(tmp_path, "submit", str(file), "--yes", "--at-most", "1", code=2)
    assert json.loads(suite(tmp_path, "watch", str(file), "--json").stdout)["at_most"] == 1


def test_a_suite_is_cancelled_although_its_cluster_is_no_longer_saved(tmp_path: Path, file: Path) -> None:
    suite(tmp_path, "submit", str(file), "--yes", code=2)
    (suite_id,) = kept(tmp_path)
    (tmp_path / "config" / "clusters" / "eos.toml").unlink()
    suite(tmp_path, "cancel", suite_id, "--yes", "--read-only", code=1)
    assert json.loads(suite(tmp_path, "cancel", suite_id, "--yes", "--json").stdout)["cancelled"] == []
    assert Services(UserPaths(tmp_path / "config", tmp_path / "state")).suites.load(suite_id).cancelled


def test_a_cancel_ends_a_suite_with_a_rejected_run(tmp_path: Path, file: Path) -> None:
    suite(tmp_path, "submit", str(file), "--yes", code=2)
    (suite_id,) = kept(tmp_path)
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    for run_id in services.suites.load(suite_id).run_ids:
        services.runs.save(make_run(run_id, submission="refused", job_ids=(), job_state=None))
    file.write_text(FILE.replace("64", "32"))
    refused = suite(tmp_path, "submit", str(file), "--yes", code=1)
    assert f"`llmb-tui suite cancel {suite_id}` ends it" in refused.stderr
    suite(tmp_path, "cancel", suite_id, "--read-only", code=1)
    assert json.loads(suite(tmp_path, "cancel", suite_id, "--yes", "--json").stdout)["cancelled"] == []
    suite(tmp_path, "submit", str(file), "--yes", code=2)
    assert len(kept(tmp_path)) == 2


@pytest.mark.parametrize("action", ["plan", "submit", "watch", "cancel"])
@pytest.mark.parametrize(
    "flags",
    [
        ("--at-most", "1"),
        ("--stop-after", "1"),
        ("--shuffle", "0"),
        ("--cluster", "other"),
        ("--procedure", "upstream"),
        ("--count", "2"),
        ("--max-scale", "64"),
        ("-s", "15b"),
        ("--gpu", "h100"),
        ("--strong-scaling",),
    ],
)
def test_flags_that_a_submitted_suite_cannot_apply_are_refused(
    tmp_path: Path, file: Path, action: str, flags: tuple[str, ...]
) -> None:
    assert file.exists()
    suite_id = stored(tmp_path, "COMPLETED")
    result = suite(tmp_path, action, suite_id, *flags, "--yes", code=1)
    assert f"Suite {suite_id} takes no " in result.stderr
    assert "It is already submitted" in result.stderr
    name = {"-s": "--size"}.get(flags[0], flags[0])
    assert name in result.stderr


@pytest.mark.usefixtures("file")
def test_new_submits_a_suite_a_second_time(tmp_path: Path) -> None:
    suite_id = stored(tmp_path, "COMPLETED", at_most=2)
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    first = services.suites.change(suite_id, lambda suite: replace(suite, cancelled=True))
    suite(tmp_path, "submit", suite_id, "--yes", "--new", code=2)
    (text,) = set(kept(tmp_path)) - {suite_id}
    again = services.suites.load(text)
    assert [row.selection for row in again.rows] == [row.selection for row in first.rows]
    assert (again.at_most, again.digest, again.cancelled) == (2, first.digest, False)
    assert not set(again.run_ids) & set(first.run_ids)
    assert services.suites.load(suite_id) == first


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize(
    ("kind", "count", "runs"),
    [("repeat", "1001", "1,001"), ("repeat", f"{10**17}", f"{10**17:,}"), ("scaling", "334", "1,002")],
)
def test_too_many_runs_are_refused(tmp_path: Path, kind: str, count: str, runs: str) -> None:
    selection = ("-w", "nemotron4@25.04", "-s", "15b", "-d", "fp8", "--scale", "64", "--max-scale", "64")
    result = suite(tmp_path, "plan", kind, *selection, "--cluster", "eos", "--offline", "--count", count, code=1)
    assert f"These are {runs} runs." in result.stderr


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize("words", [("-s", "15B", "-d", "fp8"), ("-s", "15b", "-d", "FP8", "--gpu", "H100")])
def test_names_of_a_ready_made_suite_may_be_in_upper_case(tmp_path: Path, words: tuple[str, ...]) -> None:
    scaling = ("plan", "scaling", "-w", "nemotron4@25.04", *words, "--cluster", "eos", "--offline", "--max-scale", "32")
    plan = json.loads(suite(tmp_path, *scaling, "--json").stdout)
    assert [row["selection"]["scale"] for row in plan["rows"]] == [16, 32]


def test_a_finished_row_does_not_block_the_others(tmp_path: Path, file: Path) -> None:
    file.write_text(FILE.replace("[64]", "[2048, 16]"))
    suite(tmp_path, "submit", str(file), "--yes", code=2)
    (suite_id,) = kept(tmp_path)
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    kept_suite = services.suites.load(suite_id)
    large, small = ([row for row in kept_suite.rows if row.selection.scale == scale] for scale in (2048, 16))
    words = ("submit", suite_id, "--yes", "--set", "limits.gpu_hours=500")
    assert "2 of 4 runs cannot start" in suite(tmp_path, *words, code=1).stderr
    for row in large:
        services.runs.save(make_run(row.run_id, job_state="COMPLETED", log_read=True))
    assert "127.0.0.1" in suite(tmp_path, *words, code=2).stderr
    for row in small:
        services.runs.save(make_run(row.run_id, job_state="COMPLETED", log_read=True))
    assert "is finished" in suite(tmp_path, *words).stderr
