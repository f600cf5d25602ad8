"""Slow nodes: an existing one is found, and none is reported without one, over many simulated histories."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.analysis.result import RunResult
from llmb_tui.analysis.slow_nodes import SlowNodes, slow_nodes
from llmb_tui.language.node_list import compress
from tests.kit.results import make_result, with_changes
from tests.kit.runs import CREATED_AT, NEMOTRON

CLUSTER = [f"cn{number:03}" for number in range(1, 33)]


def run_of(base: RunResult, at: int, seconds: float, nodes: Sequence[str]) -> RunResult:
    """The same run again, later, on these nodes."""
    job = replace(base.job, node_list=compress(nodes)) if base.job else None
    times = tuple((step, seconds) for step in (0, 10, 20))
    return with_changes(base, id=f"r{at}", submitted_at=CREATED_AT + 600 * at, step_times_s=times, job=job)


SMALL = make_result("small", nodes="cn001")
LARGE = make_result("large", selection=replace(NEMOTRON, dtype="bf16", scale=128), nodes="cn001")


def history(seed: int, slow: dict[str, float], runs: int = 40, stay: int = 1, step: float = 0.0) -> list[RunResult]:
    """Two configurations, on 8 and 16 of 32 nodes that are drawn; each run waits for its slowest node.

    `stay`: how many runs follow each other on their nodes; `step`: how much slower everything is in the second half.
    """
    numbers = random.Random(seed)
    found, nodes = [], CLUSTER
    for index in range(runs):
        base, count, seconds = (SMALL, 8, 1.98) if index // stay % 3 else (LARGE, 16, 2.67)
        nodes = nodes if index % stay else numbers.sample(CLUSTER, count)
        late = max(slow.get(node, 0.0) for node in nodes) + step * (index >= runs / 2)
        late += abs(numbers.gauss(0, 0.006)) + 0.1 * (numbers.random() < 0.05)
        found.append(run_of(base, index, seconds * (1 + late), nodes))
    return found


def rate(of: Callable[[SlowNodes], bool], seeds: int, slow: dict[str, float], *more: Any) -> float:
    return sum(of(slow_nodes(history(seed, slow, *more))) for seed in range(seeds)) / seeds


def test_rates_of_simulated_histories(capsys: pytest.CaptureFixture[str]) -> None:
    """Noise of 0.6 % between runs; one run in twenty takes 10 % longer at random; 0, 1 or 2 of 32 nodes are slow."""
    one, two = {"cn007": 0.04}, {"cn007": 0.05, "cn020": 0.03}
    found = {
        "one of 32 nodes slow by 4 %, 40 runs: named, and no other": rate(
            lambda answer: answer.suspected == ("cn007",), 10, one
        ),
        "the same, 25 runs: named": rate(lambda answer: "cn007" in answer.suspected, 10, one, 25),
        "two slow, by 5 % and 3 %: both named, and no other": rate(
            lambda answer: set(answer.suspected) == set(two), 6, two
        ),
    }
    wrong = {
        "none slow, 40 runs: one named": rate(lambda answer: bool(answer.suspected), 30, {}),
        "none slow, 20 runs: one named": rate(lambda answer: bool(answer.suspected), 30, {}, 20),
        "none slow, but all by 3 % later on, in stays of 4 runs: one named": rate(
            lambda answer: bool(answer.suspected), 30, {}, 60, 4, 0.03
        ),
    }
    with capsys.disabled():
        print("", *(f"  {what}: {part:.0%}" for what, part in (found | wrong).items()), sep="\n")  # noqa: T201
    named, fewer, both = found.values()
    assert named >= 0.8
    assert fewer >= 0.5
    assert both >= 0.7
    assert max(wrong.values()) <= 0.05


def test_the_evidence_and_the_list_to_copy() -> None:
    """Every second run has cn001 and cn009 and takes 5 % longer; cn008 is in all of them."""
    nodes = [["cn001", other, "cn008", "cn009"] for other in ("cn002", "cn003", "cn004", "cn005")]
    rest = [[other, "cn006", "cn008", "cn010"] for other in ("cn002", "cn003", "cn004", "cn005")]
    runs = []
    for index in range(32):
        slow = index % 2
        seconds = (2.1 if slow else 2.0) * (1 + 0.001 * (index % 3))
        runs.append(run_of(SMALL, index, seconds, (nodes if slow else rest)[index // 2 % 4]))
    answer = slow_nodes(runs)
    (node_finding,) = [finding for finding in answer.findings if finding.state == "suspected"]
    assert node_finding.nodes == ("cn001", "cn009")
    assert (node_finding.runs_with, node_finding.runs_without) == (16, 16)
    assert node_finding.difference_pct == pytest.approx(5, abs=0.2)
    assert node_finding.noise_pct == pytest.approx(0.15, abs=0.02)
    assert node_finding.chance is not None
    assert node_finding.chance <= 0.01
    assert answer.exclude == "--exclude=cn[001,009]"
    assert answer.words == "Suspected: cn[001,009], by 32 runs."
    everywhere = next(finding for finding in answer.findings if "cn008" in finding.nodes)
    assert (everywhere.state, everywhere.difference_pct) == ("not enough runs", None)


def test_nodes_of_two_clusters_have_their_clusters_name() -> None:
    """Both clusters have a cn007; it is slow on one of them."""
    here = history(1, {"cn007": 0.05})
    there = [with_changes(run, id=f"{run.id}b", cluster="selene") for run in history(2, {})]
    assert slow_nodes(here + there).suspected == ("eos:cn007",)
    assert slow_nodes(here + there).exclude == "--exclude=cn007"
    slow_there = [with_changes(run, id=f"{run.id}b", cluster="selene") for run in history(2, {"cn009": 0.05})]
    both = slow_nodes(here + slow_there)
    assert set(both.exclude.split("; ")) == {"eos: --exclude=cn007", "selene: --exclude=cn009"}


def test_later_runs_may_be_slow_because_of_time() -> None:
    old = [run_of(SMALL, index, 2.0 + 0.001 * (index % 3), ["cn001", f"cn{index % 5 + 10:03}"]) for index in range(20)]
    new = [
        run_of(SMALL, index, 2.1 + 0.001 * (index % 3), ["cn002", f"cn{index % 5 + 10:03}"]) for index in range(20, 40)
    ]
    answer = slow_nodes(old + new)
    assert answer.suspected == ()
    assert next(finding for finding in answer.findings if finding.nodes == ("cn002",)).state == "changed over time"


def test_many_nodes_that_always_ran_together_are_not_distinguished() -> None:
    blocks = (CLUSTER[:8], CLUSTER[8:16])
    runs = [
        run_of(SMALL, index, 2.0 + 0.1 * (index % 2) + 0.001 * (index % 3), blocks[index % 2]) for index in range(40)
    ]
    answer = slow_nodes(runs)
    assert answer.suspected == ()
    assert {finding.state for finding in answer.findings} == {"not told apart", "unremarkable"}


def test_too_few_runs_give_no_result() -> None:
    few = slow_nodes([run_of(SMALL, index, 2.0 + index, [f"cn{index:03}"]) for index in range(4)])
    assert {finding.state for finding in few.findings} == {"not enough runs"}
    assert few.words.startswith("Too few runs")
    assert slow_nodes([]).words.startswith("No runs can be compared")


def test_runs_without_nodes_repeats_or_a_result_are_passed_over() -> None:
    failed = with_changes(run_of(SMALL, 1, 2.0, ["cn001"]), stage="failed")
    hostile = with_changes(run_of(SMALL, 2, 2.0, ["cn001"]), job=SMALL.job and replace(SMALL.job, node_list="cn[1-"))
    single = run_of(LARGE, 3, 2.0, ["cn001"])
    pair = [run_of(SMALL, at, 2.0, ["cn001", f"cn00{at}"]) for at in (4, 5)]
    answer = slow_nodes([failed, hostile, single, *pair])
    assert (answer.runs, answer.passed_over) == (2, 3)


def test_consecutive_runs_on_the_same_nodes_count_once() -> None:
    """Six runs with cn001 and six without, on only two placements each: too little evidence."""
    placed = [["cn001", "cn002"]] * 3 + [["cn003", "cn004"]] * 3 + [["cn001", "cn005"]] * 3 + [["cn003", "cn006"]] * 3
    runs = [run_of(SMALL, index, 2.1 if "cn001" in nodes else 2.0, nodes) for index, nodes in enumerate(placed)]
    answer = slow_nodes(runs)
    assert answer.suspected == ()
    (node_finding,) = [finding for finding in answer.findings if finding.nodes == ("cn001",)]
    assert (node_finding.runs_with, node_finding.runs_without, node_finding.state) == (6, 6, "not enough runs")
