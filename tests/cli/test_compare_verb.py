"""`compare` as another program sees it: tables, JSON, refusals, and nodes on which runs were slow."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from llmb_tui.analysis.comparability import Purpose
from llmb_tui.cli.flags import _PURPOSES
from llmb_tui.cluster.job import Job
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.launch.runs import Runs
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.services import Services
from llmb_tui.store.paths import UserPaths
from llmb_tui.suites.suite import make_suite
from tests.kit import verbs
from tests.kit.runs import CATALOG, CREATED_AT, NEMOTRON, make_run, make_spec

STEP = (
    "Training epoch 0, iteration {0}/49 | global_step: {0} | train_step_timing in s: {1:.4g} | consumed_samples: {0}\n"
)
BF16 = replace(NEMOTRON, dtype="bf16")
Ended = Callable[..., None]


@pytest.fixture
def ended(tmp_path: Path) -> Ended:
    """Store a finished run with an id, the time of each step and other settings."""
    runs = Runs(UserPaths(tmp_path / "config", tmp_path / "state"))

    def make(run_id: str, seconds: float, selection: Selection = NEMOTRON, *, nodes: str = "", **spec: Any) -> None:
        run_plan = plan(CATALOG, selection)
        job = Job("7", "run", "COMPLETED", node_list=nodes) if nodes else None
        created_at = CREATED_AT + len(runs.all())
        run = make_run(run_id, plan=run_plan, spec=replace(make_spec(run_id), **spec), job=job, job_state="COMPLETED")
        runs.save(replace(run, created_at=created_at, submitted_at=created_at, log_read=True))
        runs.save_script(run_id, f"#!/bin/bash\n# {run_id}\nexport MINE={spec.get('vboost', False)}\n")
        (runs.folder(run_id) / "log").write_text("".join(STEP.format(step, seconds) for step in range(50)))

    return make


def ask(home: Path, words: Iterable[str]) -> verbs.Completed:
    return verbs.run(("compare", *words), verbs.environment(home))


def document(home: Path, *words: str, code: int = 0) -> Any:
    result = ask(home, (*words, "--json"))
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)


def test_runs_side_by_side(ended: Ended, tmp_path: Path) -> None:
    ended("fp8a", 1.98)
    ended("bf16a", 2.67, BF16)
    result = ask(tmp_path, ("fp8a", "bf16a"))
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "Differences of the GPU time per token, compared for: different precisions."
    assert "35 % ± 0.1 % slower" in lines[2]
    (run,) = (line for line in lines if line.startswith("fp8a "))
    assert "529,584" in run
    assert "PASS" in run
    assert "plan  dtype: fp8 → bf16" in lines


def test_two_sides_are_compared_and_their_changes_named(ended: Ended, tmp_path: Path) -> None:
    for index, seconds in enumerate((1.98, 2.00, 1.99)):
        ended(f"old{index}", seconds)
    for index, seconds in enumerate((2.05, 2.06)):
        ended(f"new{index}", seconds, vboost=True)
    words = ("new0", "new1", "--against", "old0", "old1", "old2")
    comparison = document(tmp_path, *words)
    (difference,) = comparison["differences"]
    assert [comparison["groups"][difference[side]]["runs"] for side in ("base", "other")] == [
        ["old0", "old1", "old2"],
        ["new0", "new1"],
    ]
    assert (difference["outcome"], difference["basis"]) == ("slower", "repeats")
    assert difference["difference_pct"] == pytest.approx(100 * (2.055 / 1.99 - 1))
    assert comparison["purpose"] == "changes"
    assert (comparison["changed"]["before"], comparison["changed"]["after"]) == ("old2", "new1")
    assert [change["name"] for change in comparison["changed"]["changes"]] == ["vboost"]
    diff = [line.strip() for line in ask(tmp_path, (*words, "--diff")).stdout.splitlines()]
    assert diff[diff.index("-export MINE=False") + 1] == "+export MINE=True"


def test_each_side_has_a_separate_curve(ended: Ended, tmp_path: Path) -> None:
    for side, seconds in (("old", (1.98, 2.0)), ("new", (1.98, 2.4))):
        for gpus, step_s in zip((64, 128), seconds, strict=True):
            ended(f"{side}{gpus}", step_s, replace(NEMOTRON, scale=gpus))
    curves = document(tmp_path, "new64", "new128", "--against", "old64", "old128")["scaling"]
    assert [[point["efficiency_pct"] for point in curve["points"]] for curve in curves] == [
        pytest.approx([100, 82.5]),
        pytest.approx([100, 99]),
    ]
    assert [curve["label"].endswith(", against") for curve in curves] == [False, True]


def test_runs_on_a_simulated_cluster_are_labelled(ended: Ended, tmp_path: Path) -> None:
    ended("one", 1.98)
    services = Services(UserPaths(tmp_path / "config", tmp_path / "state"))
    services.clusters.save(SlurmProfile("eos", "localhost", "a", "p", "/x", notice="simulated, clock x60"))
    for words in (("one",), ("--nodes",)):
        assert "eos: simulated, clock x60" in ask(tmp_path, words).stderr


def test_incomparable_runs_exit_with_1_and_the_reason(ended: Ended, tmp_path: Path) -> None:
    ended("fp8a", 1.98)
    ended("bf16a", 2.67, BF16)
    result = ask(tmp_path, ("fp8a", "bf16a", "--for", "repeats"))
    assert result.returncode == 1
    assert "✗ not comparable: The precisions differ: fp8 (fp8a), bf16 (bf16a)." in result.stdout.splitlines()
    reason = "These runs are not compared, because of their precision. Name other runs, or state with --for what "
    assert result.stderr.startswith(reason)
    csv = ask(tmp_path, ("fp8a", "bf16a", "--for", "repeats", "--format", "csv"))
    assert reason in csv.stderr
    assert csv.stderr.startswith("not comparable: The precisions differ")
    assert csv.stdout.splitlines()[0].startswith("run,configuration,release")
    comparison = document(tmp_path, "fp8a", "bf16a", "--for", "repeats", code=1)
    assert [remark["aspect"] for remark in comparison["refusals"]] == ["precision"]
    assert comparison["differences"] == []


def test_a_scaling_curve_in_each_format(ended: Ended, tmp_path: Path) -> None:
    for gpus, seconds in ((16, 2.0), (64, 2.05), (1024, 2.2)):
        ended(f"on{gpus}", seconds, replace(NEMOTRON, scale=gpus))
    runs = ("on1024", "on16", "on64")
    (curve,) = document(tmp_path, *runs)["scaling"]
    assert [point["gpus"] for point in curve["points"]] == [16, 64, 1024]
    assert curve["points"][2]["efficiency_pct"] == pytest.approx(100 * 2.0 / 2.2)
    markdown = ask(tmp_path, (*runs, "--format", "markdown")).stdout
    assert "Scaling of nemotron4@25.04 15b fp8" in markdown
    assert "| GPUs | runs | step s |" in markdown
    csv = ask(tmp_path, (*runs, "--format", "csv")).stdout.splitlines()
    assert csv[0].startswith("run,configuration,release")
    assert len(csv) == 4


def test_a_suite_is_replaced_by_its_runs(ended: Ended, tmp_path: Path) -> None:
    suites = Services(UserPaths(tmp_path / "config", tmp_path / "state")).suites
    old, new, empty = (f"s25112308000{index}aaaa" for index in range(3))
    for suite_id, name, seconds in ((old, "old", 1.98), (new, "new", 2.08), (empty, "empty", 0.0)):
        suite = make_suite(name, "eos", [(NEMOTRON, "direct"), (BF16, "direct"), (BF16, "direct")])
        rows = tuple(replace(row, run_id=f"{name}{index}") for index, row in enumerate(suite.rows))
        suites.save(replace(suite, id=suite_id, rows=rows))
        for row in rows[:2] if seconds else ():  # the third was not submitted
            ended(row.run_id, seconds * (1.35 if row.selection.dtype == "bf16" else 1), row.selection)
    comparison = document(tmp_path, new, "--against", old)
    groups = comparison["groups"]
    pairs = [[groups[pair[side]]["runs"] for side in ("base", "other")] for pair in comparison["differences"]]
    assert pairs == [[["old0"], ["new0"]], [["old1"], ["new1"]]]
    assert [run["id"] for run in document(tmp_path, old)["runs"]] == ["old0", "old1"]
    assert "has no runs yet" in ask(tmp_path, (empty,)).stderr


def test_a_failed_run_is_shown_and_excluded(ended: Ended, tmp_path: Path) -> None:
    ended("good", 1.98)
    ended("short", 1.98)
    log = tmp_path / "state" / "runs" / "short" / "log"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:20]))
    comparison = document(tmp_path, "good", "short")
    assert [run["left_out"] is None for run in comparison["runs"]] == [True, False]
    alone = ask(tmp_path, ("short",))
    assert alone.returncode == 1
    assert "not comparable: None of these runs counts." in alone.stdout
    assert alone.stderr.startswith("Nothing to compare: none of these runs is valid. Name runs that are done")
    sides = ask(tmp_path, ("good", "--against", "short"))
    assert sides.returncode == 1
    assert "No run has a counterpart on the other side." in sides.stdout
    assert sides.stderr.startswith("No run has a counterpart on the other side.")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "No run to compare is named."),
        (("nobody",), "There is no run"),
        (("good", "--against", "good"), "Run good is on both sides."),
        (("good", "--for", "fun"), "invalid choice: 'fun'"),
        (("good", "--cluster", "eos"), "`compare` takes --cluster only with --nodes."),
        (("--nodes", "--diff"), "`compare --nodes` takes no --against, --diff or --for."),
    ],
)
def test_wrong_requests(ended: Ended, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    ended("good", 1.98)
    result = ask(tmp_path, words)
    assert result.returncode == 1
    assert message in result.stderr


def test_a_slow_node_and_the_list_to_copy(ended: Ended, tmp_path: Path) -> None:
    numbers = random.Random(4)
    cluster = [f"cn{number:03}" for number in range(1, 17)]
    for index in range(30):
        nodes = numbers.sample(cluster, 8)
        ended(f"run{index}", (2.07 if "cn007" in nodes else 1.98) + numbers.random() / 100, nodes=",".join(nodes))
    comparison = document(tmp_path, "--nodes")
    assert comparison["suspected"] == ["cn007"]
    assert comparison["exclude"] == "--exclude=cn007"
    assert comparison["nodes"][0]["difference_pct"] == pytest.approx(4.5, abs=0.3)
    result = ask(tmp_path, ("--nodes", "--cluster", "eos"))
    assert result.stdout.splitlines()[-1] == "--exclude=cn007"
    assert "A node is suspected if" in result.stdout
    assert document(tmp_path, "--nodes", "--cluster", "other")["runs"] == 0


def test_the_flag_accepts_every_purpose() -> None:
    assert get_args(Purpose) == _PURPOSES
