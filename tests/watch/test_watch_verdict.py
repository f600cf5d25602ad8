from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llmb_tui.catalog.recipe import ResultRule
from llmb_tui.language.states import Method
from llmb_tui.launch.run import Run
from llmb_tui.plan.make import plan as planned
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import RunOptions, Selection
from llmb_tui.store.settings import THRESHOLD
from llmb_tui.watch.progress import fold
from llmb_tui.watch.report import document
from llmb_tui.watch.state import Progress, RunState, Step, Verdict
from llmb_tui.watch.validity import NO_FILES, validity
from llmb_tui.watch.verdict import judge, rule_words, with_caveats
from tests.kit.runs import CATALOG

LAST = ResultRule("last", "README")
MEAN = ResultRule("mean", "README", 35, 44)


def progress_of(plan: Plan, seconds: Sequence[float | None], total: int = 50) -> Progress:
    return fold(Progress(), [Step(n, total, step_time_s=value) for n, value in enumerate(seconds)], plan)


def judged(
    plan: Plan, rule: ResultRule, progress: Progress, *, finished: bool = True, **more: Any
) -> tuple[Verdict | None, str]:
    """Judge with the validity checks that need only the log."""
    checks = validity(plan, rule, "nemo2", progress, NO_FILES, finished=finished)
    return judge(plan, rule, progress, finished=finished, checks=checks, **{"threshold": THRESHOLD, **more})


def verdict_of(plan: Plan, seconds: Sequence[float | None], rule: ResultRule = LAST, **more: Any) -> Verdict:
    verdict, why = judged(plan, rule, progress_of(plan, seconds), finished=more.pop("finished", True), **more)
    assert verdict is not None, why
    assert why == ""
    return verdict


def why_not(plan: Plan, seconds: Sequence[float | None], rule: ResultRule = LAST, finished: bool = True) -> str:
    verdict, why = judge(plan, rule, progress_of(plan, seconds), finished=finished, threshold=THRESHOLD)
    assert verdict is None
    return why


@pytest.mark.parametrize(
    ("last", "result"),
    [
        (1.6, "PASS"),
        (2.0, "PASS"),
        (2.0 / 0.95, "PASS"),  # exactly at the threshold, although above the band
        (2.106, "FAIL"),
        (2.5, "FAIL"),
    ],
)
def test_the_last_step_is_compared_with_the_published_step_time(plan: Plan, last: float, result: str) -> None:
    verdict = verdict_of(plan, [2.4] * 49 + [last])
    assert verdict.result == result
    assert verdict.ratio == pytest.approx(2.0 / last)
    assert verdict.measured_s == last
    assert verdict.against == "published 2 s, nemotron4@25.04"
    assert verdict.rule == "last step"


def test_below_the_threshold_but_inside_the_band_is_a_warning(plan: Plan) -> None:
    assert plan.estimate is not None
    wide = replace(plan, estimate=replace(plan.estimate, high_s=2.6))
    assert verdict_of(wide, [2.5] * 50).result == "WARN"
    assert verdict_of(wide, [2.61] * 50).result == "FAIL"


def test_the_threshold_is_a_setting(plan: Plan) -> None:
    assert verdict_of(plan, [2.2] * 50, threshold=0.9).result == "PASS"
    assert verdict_of(plan, [2.05] * 50, threshold=0.99).result == "WARN"


def test_much_faster_than_expected_passes_with_a_question(plan: Plan) -> None:
    verdict = verdict_of(plan, [1.61] * 50)
    assert verdict.result == "PASS"
    assert "same configuration" in verdict.reasons[0]
    assert verdict_of(plan, [2.0] * 50).reasons == ()


@pytest.mark.parametrize(("last", "result"), [(1.6, "PASS"), (1.59, "WARN"), (0.5, "WARN")])
def test_faster_than_can_be_explained_is_a_warning(plan: Plan, last: float, result: str) -> None:
    verdict = verdict_of(plan, [2.0] * 49 + [last])
    assert verdict.result == result
    assert any("which no cluster explains" in reason for reason in verdict.reasons) == (result == "WARN")
    assert len(verdict.reasons) == 1


def test_the_mean_of_a_window(plan: Plan) -> None:
    seconds = [9.0] * 35 + [2.0, 2.2] * 5 + [9.0] * 5
    verdict = verdict_of(plan, seconds, MEAN)
    assert verdict.measured_s == pytest.approx(2.1)
    assert verdict.rule == "mean of iterations 35–44"


def test_the_window_counts_as_soon_as_it_is_complete(plan: Plan) -> None:
    verdict = verdict_of(plan, [9.0] * 35 + [2.0] * 10, MEAN, finished=False)
    assert verdict.measured_s == 2.0
    assert verdict.reasons == ()


def test_a_run_that_ends_after_its_window_has_a_verdict(plan: Plan) -> None:
    assert verdict_of(plan, [2.0] * 46, MEAN).result == "PASS"


@pytest.mark.parametrize("seconds", [[2.0] * 50, [9.0] * 50])
@pytest.mark.parametrize("method", ["interpolated", "extrapolated", "modelled"])
def test_an_unpublished_expectation_is_a_warning_whatever_the_ratio(
    plan: Plan, seconds: list[float], method: Method
) -> None:
    assert plan.estimate is not None
    verdict = verdict_of(replace(plan, estimate=replace(plan.estimate, method=method)), seconds)
    assert verdict.result == "WARN"
    assert any(method in reason for reason in verdict.reasons)


def test_another_release_is_trusted_and_named(plan: Plan) -> None:
    assert plan.estimate is not None
    estimate = replace(plan.estimate, method="other_release", anchor="nemotron4@25.02 15b fp8, 64 H100, 2 s")
    verdict = verdict_of(replace(plan, estimate=estimate), [2.0] * 50)
    assert verdict.result == "PASS"
    assert verdict.against == "published for another release 2 s, nemotron4@25.02 15b fp8, 64 H100, 2 s"


def test_the_gb200_figures_of_release_25_05_warn_of_their_container() -> None:
    plan = planned(CATALOG, Selection("nemotron4-340b", "25.12", "340b", "gb200", "bf16", 128))
    verdict = verdict_of(plan, [2.189] * 50, CATALOG.recipe("nemotron4-340b", "25.12").rule)
    measured_in = "The expected step time was measured in container nvidia/nemo:25.04.00, not nvidia/nemo:25.07.01."
    assert (verdict.result, verdict.ratio) == ("WARN", 1.0)
    assert measured_in in verdict.reasons


@pytest.mark.parametrize("seconds", [[2.0] * 50, [9.0] * 50])
@pytest.mark.parametrize("method", ["published", "other_release"])
def test_another_variant_of_the_precision_is_a_warning_whatever_the_ratio(
    plan: Plan, seconds: list[float], method: Method
) -> None:
    assert plan.estimate is not None
    text = "The expected step time rests on FP8 with delayed scaling, and the recipe runs it with current scaling."
    verdict = verdict_of(replace(plan, estimate=replace(plan.estimate, method=method, other_variant=text)), seconds)
    assert verdict.result == "WARN"
    assert text in verdict.reasons


@pytest.mark.parametrize("seconds", [[2.0] * 50, [9.0] * 50])
@pytest.mark.parametrize(
    ("options", "word"),
    [
        (RunOptions(profile=True, profile_start=20, profile_stop=25), "profiled"),
        (RunOptions(nccl_trace=True), "NCCL"),
        (RunOptions(load_checkpoint="/ckpt"), "loaded a checkpoint"),
    ],
    ids=["profile", "trace", "load"],
)
def test_an_option_that_slows_a_run_down_is_a_warning_whatever_the_ratio(
    plan: Plan, seconds: list[float], options: RunOptions, word: str
) -> None:
    verdict = verdict_of(replace(plan, options=options), seconds)
    assert verdict.result == "WARN"
    assert any(word in reason for reason in verdict.reasons)


@pytest.mark.parametrize(("last", "result"), [(2.0, "PASS"), (2.5, "FAIL")])
def test_a_saved_checkpoint_is_named_and_changes_no_result(plan: Plan, last: float, result: str) -> None:
    verdict = verdict_of(replace(plan, options=RunOptions(save_checkpoint=True)), [2.0] * 49 + [last])
    assert verdict.result == result
    assert "saved a checkpoint" in verdict.reasons[-1]


def test_a_one_step_run_from_a_checkpoint_is_too_short_for_a_verdict(plan: Plan) -> None:
    loading = replace(plan, steps=1, options=RunOptions(load_checkpoint="/ckpt"))
    verdict, _ = judge(loading, LAST, progress_of(loading, [2.0], total=1), finished=True, threshold=THRESHOLD)
    assert verdict is not None
    assert verdict.result == "WARN"
    assert "The run has 1 step; the rule (last step) needs at least 6." in verdict.reasons


def test_fewer_steps_than_the_window_needs_is_a_warning(plan: Plan) -> None:
    progress = progress_of(plan, [2.0] * 20, total=20)
    for finished in (False, True):
        verdict, _ = judge(replace(plan, steps=20), MEAN, progress, finished=finished, threshold=THRESHOLD)
        assert verdict is not None
        assert (verdict.result, verdict.measured_s) == ("WARN", 2.0)
        assert any("at least 45" in reason for reason in verdict.reasons)


def test_a_window_with_holes_is_a_warning(plan: Plan) -> None:
    seconds: list[float | None] = [2.0] * 50
    seconds[40] = None
    verdict = verdict_of(plan, seconds, MEAN)
    assert verdict.result == "WARN"
    assert any("1 of the 10 steps" in reason for reason in verdict.reasons)


def test_a_replaced_log_is_named_if_its_steps_are_missing(plan: Plan) -> None:
    late = replace(progress_of(plan, [None] * 40 + [2.0] * 10), before="log")
    verdict, _ = judged(plan, MEAN, late)
    assert verdict is not None
    assert verdict.result == "WARN"
    assert any("`log` has the earlier lines" in reason for reason in verdict.reasons)
    _, why = judge(plan, MEAN, replace(Progress(), before="log-1"), finished=True, threshold=THRESHOLD)
    assert "`log-1` has the earlier lines" in why
    _, why = judge(plan, MEAN, Progress(before="log", of_next_start=True), finished=True, threshold=THRESHOLD)
    assert why.endswith(" The job was started again; `log` is the log of its previous start.")


@pytest.mark.parametrize(
    ("began", "result", "words"),
    [
        (40, "WARN", "the steps that count are of 2 starts of the job; the last began at step 40"),
        (35, "WARN", "the steps that count begin 0 steps after a start at step 35"),
        (31, "WARN", "the steps that count begin 4 steps after a start at step 31"),
        (30, "FAIL", ""),
        (45, "PASS", ""),
    ],
)
def test_a_window_that_spans_two_starts_or_a_warm_up_is_a_warning(
    plan: Plan, began: int, result: str, words: str
) -> None:
    again = [Step(n, 50, step_time_s=4.0) for n in range(began, 50)]
    verdict, _ = judged(plan, MEAN, fold(progress_of(plan, [2.0] * 47), again, plan))
    assert verdict is not None
    assert verdict.result == result
    assert any("starts" in reason and words in reason for reason in verdict.reasons) == bool(words)


def test_a_median_over_two_starts_is_marked(plan: Plan) -> None:
    progress = fold(progress_of(plan, [2.0] * 20), [Step(15, 50, step_time_s=2.0)], plan)
    verdict, _ = judge(plan, LAST, progress, finished=False, threshold=THRESHOLD)
    assert verdict is not None
    assert verdict.reasons[0].startswith("So far: median of 11 steps after 5 warm-up steps, ± 0 %, of 2 starts.")


def test_a_last_step_that_still_warms_up_is_a_warning(plan: Plan) -> None:
    verdict, _ = judge(plan, LAST, progress_of(plan, [2.0], total=1), finished=True, threshold=THRESHOLD)
    assert verdict is not None
    assert verdict.result == "WARN"


def test_before_the_rule_applies_the_median_counts_and_is_marked(plan: Plan) -> None:
    verdict = verdict_of(plan, [30.0] * 5 + [2.0] * 20, finished=False)
    assert (verdict.result, verdict.measured_s) == ("PASS", 2.0)
    assert verdict.reasons[0] == ("So far: median of 20 steps after 5 warm-up steps, ± 0 %. Rule: last step.")


@pytest.mark.parametrize(("last", "result"), [(2.0, "PASS"), (2.5, "FAIL")])
def test_a_difference_from_the_reference_is_named_and_changes_no_result(plan: Plan, last: float, result: str) -> None:
    progress = replace(progress_of(plan, [2.0] * 49 + [last]), unbound=2)
    verdict, _ = judge(plan, LAST, progress, finished=True, threshold=THRESHOLD)
    assert verdict is not None
    named = with_caveats(verdict, ("vboost off", "14 CPUs a task"), progress)
    assert (named.result, named.ratio) == (result, verdict.ratio)
    words = "vboost off; 14 CPUs a task; 2 ranks bound to no NUMA node."
    assert named.reasons[-1] == f"Differs from the runs behind the expected step time: {words}"


def test_no_verdict_and_why(plan: Plan) -> None:
    assert "no expected step time" in why_not(replace(plan, estimate=None), [2.0] * 50)
    assert why_not(plan, [], finished=False) == "No step yet."
    assert "Warm-up" in why_not(plan, [30.0] * 3, finished=False)
    assert "before its first step" in why_not(plan, [])
    assert "after 31 of 50 steps" in why_not(plan, [2.0] * 31)
    assert "after 31 of 50 steps" in why_not(plan, [2.0] * 31, MEAN)
    assert "no step time for the last step" in why_not(plan, [2.0] * 49 + [None])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the plan never changes
@given(st.floats(0.5, 10), st.booleans())
def test_every_published_result_follows_the_rule(plan: Plan, seconds: float, is_mean: bool) -> None:
    verdict = verdict_of(plan, [seconds] * 50, MEAN if is_mean else LAST)
    assert verdict.ratio == pytest.approx(2.0 / seconds)
    if verdict.ratio >= 0.95:
        assert verdict.result == ("PASS" if verdict.ratio <= 1.25 else "WARN")
    else:
        assert verdict.result == ("FAIL" if verdict.measured_s > 2.08 else "WARN")


def test_the_document_has_the_keys_that_others_rely_on(plan: Plan, make_run: Callable[..., Run]) -> None:
    run = make_run()
    progress = progress_of(plan, [2.0] * 50)
    verdict, _ = judge(plan, LAST, progress, finished=True, threshold=THRESHOLD)
    assert document(run, RunState(run.id, "done", progress=progress, verdict=verdict)) == {
        "id": "run1",
        "selection": {
            "workload": "nemotron4",
            "release": "25.04",
            "size": "15b",
            "gpu": "h100",
            "dtype": "fp8",
            "scale": 64,
            "scaling": "weak",
            "precision_variant": None,
            "variant": None,
        },
        "procedure": "direct",
        "cluster": "demo",
        "job_ids": ["42"],
        "state": "done",
        "submitted_at": 1_760_000_002.0,
        "steps_done": 50,
        "steps_total": 50,
        "step_time_s": 2.0,
        "median_step_time_s": 2.0,
        "last_step_time_s": 2.0,
        "rule": "last step",
        "cancel": None,
        "starts": 1,
        "validity": [],
        "verdict": {
            "result": "PASS",
            "ratio": 1.0,
            "against": "published 2 s, nemotron4@25.04",
            "reasons": [],
        },
    }


def test_the_document_of_a_run_without_a_verdict_has_the_reason(make_run: Callable[..., Run]) -> None:
    run = make_run(submission="refused", job_ids=(), submitted_at=None, note="a note")
    fields = document(run, RunState(run.id, no_verdict="a note"))
    assert (fields["state"], fields["step_time_s"], fields["steps_total"]) == ("refused", None, 50)
    assert fields["verdict"] == {"result": None, "ratio": None, "against": None, "reasons": ["a note"]}


def test_the_step_time_of_a_run_is_the_rules_value_or_nothing(make_run: Callable[..., Run]) -> None:
    run = make_run()
    active = document(run, RunState(run.id, "measuring", progress=progress_of(run.plan, [30.0] * 5 + [2.0, 2.0, 2.4])))
    assert [active[f"{name}step_time_s"] for name in ("", "median_", "last_")] == [None, 2.0, 2.4]
    ended = document(run, RunState(run.id, "done", progress=progress_of(run.plan, [2.0] * 49 + [2.4])))
    assert [ended[f"{name}step_time_s"] for name in ("", "median_", "last_")] == [2.4, 2.0, 2.4]


def test_rules_in_words() -> None:
    assert [rule_words(rule) for rule in (LAST, MEAN)] == ["last step", "mean of iterations 35–44"]
