"""A suite before any submission: its rows, totals and objections; and its state afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llmb_tui.cluster.slurm.partition import parse_partitions
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.language.states import Stage, VerdictResult
from llmb_tui.launch.policy import Policy
from llmb_tui.plan.plan import Problem
from llmb_tui.plan.selection import ProcedureId, Selection
from llmb_tui.suites.draft_plan import names
from llmb_tui.suites.suite import Suite, make_suite
from llmb_tui.suites.suite_plan import Nodes, SuitePlan, nodes_of, plan_suite, wall_s
from llmb_tui.suites.suite_progress import progress_of, standing_of
from llmb_tui.watch.state import Progress, RunRecord, RunState, Verdict
from tests.kit.runs import CATALOG, NEMOTRON, make_run

EOS = SlurmProfile("eos", "eos.example.com", "acct", "batch", "/lustre/llmb")
SMALL = replace(NEMOTRON, scale=16)
DIRECT: ProcedureId = "direct"


def suite_of(*selections: Selection, **more: Any) -> Suite:
    return make_suite("mine", "eos", [(selection, DIRECT) for selection in selections], **more)


def planned(suite: Suite, nodes: int | None = None, policy: Policy | None = None) -> SuitePlan:
    return plan_suite(suite, CATALOG, EOS, policy or Policy(), nodes)


def record(run_id: str, stage: Stage, result: VerdictResult | None = None, **changes: Any) -> RunRecord:
    verdict = Verdict(result, 1.0, 2.0, "published", "last step") if result else None
    state = RunState(run_id, stage, verdict=verdict)
    return RunRecord(make_run(run_id, **changes), state)


def test_each_row_has_a_unique_name() -> None:
    rows = suite_of(NEMOTRON, SMALL, NEMOTRON).rows
    assert [row.key for row in rows] == [
        "nemotron4@25.04 15b fp8 64 #1",
        "nemotron4@25.04 15b fp8 16",
        "nemotron4@25.04 15b fp8 64 #2",
    ]


def test_names_distinguish_gpu_types() -> None:
    rows = suite_of(NEMOTRON, replace(NEMOTRON, gpu="b200"), replace(NEMOTRON, gpu="b200")).rows
    name = "nemotron4@25.04 15b fp8 64"
    assert [row.key for row in rows] == [f"{name} h100", f"{name} b200 #1", f"{name} b200 #2"]
    assert list(names(rows)[1].values()) == ["h100", "b200 #1", "b200 #2"]


def test_digest_is_of_the_content_alone() -> None:
    suite = suite_of(NEMOTRON, SMALL)
    assert suite_of(NEMOTRON, SMALL).digest == suite.digest
    assert suite_of(SMALL, NEMOTRON).digest != suite.digest
    assert suite_of(NEMOTRON, SMALL, at_most=1).digest != suite.digest


def test_the_same_seed_gives_the_same_order() -> None:
    scales = [replace(NEMOTRON, scale=8 * n) for n in range(1, 20)]
    suite, same, other = suite_of(*scales, shuffle=1), suite_of(*scales, shuffle=1), suite_of(*scales, shuffle=2)
    assert suite.rows == same.rows != other.rows
    assert sorted(row.key for row in suite.rows) == sorted(row.key for row in suite_of(*scales).rows)


def test_sums_are_those_of_the_rows() -> None:
    plan = planned(suite_of(NEMOTRON, SMALL), nodes=10)
    big, small = plan.rows
    assert big.plan.gpu_hours is not None
    assert small.plan.gpu_hours is not None
    assert plan.gpu_hours == pytest.approx(big.plan.gpu_hours + small.plan.gpu_hours)
    assert plan.serial_s == pytest.approx(big.expected_s + small.expected_s)
    assert plan.parallel_s == pytest.approx(max(big.expected_s, small.expected_s))
    assert plan.most_gpu_hours == pytest.approx(big.most_gpu_hours + small.most_gpu_hours)
    assert not plan.blockers


def test_a_row_without_an_estimate_counts_by_its_time_limit() -> None:
    plan = planned(suite_of(NEMOTRON))
    (row,) = plan.rows
    none = replace(row, plan=replace(row.plan, estimate=None, gpu_hours=None))
    unknown = SuitePlan(plan.suite, (none,))
    assert (unknown.gpu_hours, unknown.without_estimate) == (none.most_gpu_hours, 1)


def test_too_few_free_nodes_give_no_wall_time() -> None:
    assert planned(suite_of(NEMOTRON), nodes=7).parallel_s is None
    assert planned(suite_of(NEMOTRON)).parallel_s is None


def test_jobs_wait_for_nodes_and_for_their_turn() -> None:
    jobs = [(2, 10.0), (2, 4.0), (4, 5.0), (1, 1.0)]
    assert wall_s(jobs, 4) == 16.0
    assert wall_s(jobs, 100) == 10.0
    assert wall_s(jobs, 100, at_most=1) == 20.0
    assert wall_s([], 4) == 0.0


@pytest.mark.parametrize(("most", "serial"), [(None, True), (1, True), (4, False)])
def test_the_time_of_a_chain_is_the_sum_of_its_runs(most: int | None, serial: bool) -> None:
    suite = suite_of(*[SMALL] * 4, chain=True, at_most=most)
    plan = planned(suite, nodes=100)
    progress = replace(progress_of(plan, {}), free_nodes=100)
    took = plan.serial_s if serial else plan.serial_s / 4
    assert plan.parallel_s == progress.left_s == pytest.approx(took)
    assert f"at most {most or 1} at a time" in suite.submission_words
    assert "all at once" in suite_of(SMALL).submission_words


def test_a_row_that_cannot_run_is_named() -> None:
    plan = planned(suite_of(NEMOTRON, replace(NEMOTRON, scale=48)), policy=Policy(read_only=True))
    assert [(row.row.key if row else "", problem.field) for row, problem in plan.blockers] == [
        ("nemotron4@25.04 15b fp8 64", "observer"),
        ("nemotron4@25.04 15b fp8 48", "observer"),
        ("nemotron4@25.04 15b fp8 48", "scale"),
    ]


def test_a_missing_recipe_blocks_only_its_row() -> None:
    gone = replace(NEMOTRON, release="1.0")
    suite = suite_of(NEMOTRON, gone)
    for profile in (EOS, None):
        plan = plan_suite(suite, CATALOG, profile, Policy())
        ((row, problem),) = plan.blockers
        assert (row and row.row.key, problem.field) == ("nemotron4@1.0 15b fp8 64", "release")
        assert progress_of(plan, {}).words == "0 of 2 runs done · 2 not submitted"
    kept = replace(suite, rows=tuple(replace(row, run_id=f"r{index}") for index, row in enumerate(suite.rows)))
    assert progress_of(planned(kept), {"r1": record("r1", "start")}).rows[1].left_s == 0.0


@pytest.mark.parametrize(
    ("suite", "blocked"),
    [
        (suite_of(NEMOTRON, chain=True), False),
        (suite_of(NEMOTRON, chain=True, stop_after=1), False),
        (suite_of(NEMOTRON, chain=True, stop_after=2), True),
        (make_suite("mine", "eos", [(NEMOTRON, "upstream")], chain=True), True),
        (make_suite("mine", "eos", [(NEMOTRON, "upstream")], at_most=1), False),
    ],
)
def test_a_chain_that_slurm_cannot_keep_is_refused(suite: Suite, blocked: bool) -> None:
    problems: list[Problem] = list(planned(suite).suite_blockers)
    assert bool(problems) == blocked


def test_nodes_of_the_profiles_partition_are_counted() -> None:
    partitions = parse_partitions(
        "batch|batch*|up|1:00|6|idle|gpu:8|\nbatch|batch*|up|1:00|2|mixed|gpu:8|\nx|x|up|1|9|idle||"
    )
    assert nodes_of(partitions, EOS) == Nodes(free=6, all=8)
    assert nodes_of([], EOS) == Nodes()


def test_nodes_without_whole_gpus_are_not_counted() -> None:
    partitions = parse_partitions(
        "batch|batch*|up|1:00|6|idle|gpu:h100:8|\nbatch|batch*|up|1:00|9|idle|gpu:h100_1g.10gb:56|\n"
        "batch|batch*|up|1:00|30|idle|(null)|\n"
    )
    assert nodes_of(partitions, EOS) == Nodes(free=6, all=6)
    uncounted = parse_partitions("batch|batch*|up|1:00|6|idle|(null)|\n")
    assert nodes_of(uncounted, EOS) == Nodes(free=6, all=6)


def test_progress_counts_every_row_once() -> None:
    suite = suite_of(*[replace(NEMOTRON, scale=16)] * 9, stop_after=3)
    suite = replace(suite, rows=tuple(replace(row, run_id=f"r{i}") for i, row in enumerate(suite.rows)))
    records = [
        record("r0", "done", "PASS"),
        record("r1", "done", "FAIL"),
        record("r2", "done"),
        record("r3", "measuring"),
        record("r4", "queued"),
        record("r5", "submitted", submission="unknown", job_ids=()),
        record("r6", "timeout"),
        record("r7", "submitted", submission="refused", job_ids=()),
    ]
    progress = replace(progress_of(planned(suite, 8), {record.run.id: record for record in records}), free_nodes=4)
    assert progress.words == (
        "3 of 9 runs done: 1 PASS, 1 FAIL, 1 without a verdict"
        " · 1 rejected · 1 failed · 1 running · 1 queued · 1 unknown · 1 not submitted"
    )
    assert not progress.over
    assert not progress.stopped
    each = progress.rows[3].planned.expected_s
    assert progress.serial_left_s == pytest.approx(4 * each)
    assert progress.left_s == pytest.approx(2 * each)
    assert progress.gpu_hours_left == pytest.approx(4 * 16 * each / 3600)


def test_after_the_limit_of_failures_no_gpu_hours_remain() -> None:
    suite = suite_of(SMALL, SMALL, stop_after=1)
    suite = replace(suite, rows=tuple(replace(row, run_id=f"r{i}") for i, row in enumerate(suite.rows)))
    progress = progress_of(planned(suite), {"r0": record("r0", "failed")})
    assert (progress.stopped, progress.over, progress.gpu_hours_left) == (True, True, 0.0)


def test_the_remaining_time_follows_from_the_completed_steps() -> None:
    suite = suite_of(SMALL)
    suite = replace(suite, rows=tuple(replace(row, run_id="r") for row in suite.rows))
    half = replace(record("r", "measuring"), state=RunState("r", "measuring", progress=Progress(25, 50)))
    progress = progress_of(planned(suite), {"r": half})
    assert progress.serial_left_s == pytest.approx(progress.plan.serial_s / 2)


def test_a_run_that_never_reached_the_cluster_is_still_to_be_submitted() -> None:
    changes: Any = {"submission": "withdrawn", "job_ids": (), "job_state": None}
    assert standing_of(record("r", "submitted", **changes)) == "cancelled"
    assert standing_of(record("r", "submitted", sent_at=1.0, **changes)) == "not sent"
    assert standing_of(None) == "not sent"
