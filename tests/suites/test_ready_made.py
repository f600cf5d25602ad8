"""The suites that come with the program: their runs, and the questions that they answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median

import pytest

from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import two_digits
from llmb_tui.language.states import Stage, VerdictResult
from llmb_tui.launch.policy import Policy
from llmb_tui.plan.selection import Selection
from llmb_tui.suites.outcome import outcome_of, trials_of, with_best
from llmb_tui.suites.ready_made import ready_made
from llmb_tui.suites.suite import Suite, SuiteKind, make_suite
from llmb_tui.suites.suite_plan import plan_suite
from llmb_tui.suites.suite_progress import SuiteProgress, progress_of
from llmb_tui.watch.state import Progress, RunRecord, RunState, Step, Verdict
from tests.kit.runs import CATALOG, NEMOTRON, make_run

EOS = SlurmProfile("eos", "eos.example.com", "acct", "batch", "/lustre/llmb")


def made(
    kind: SuiteKind, selection: Selection = NEMOTRON, most_gpus: int | None = None, count: int | None = None
) -> Suite:
    name, selections = ready_made(kind, CATALOG, selection, most_gpus, count)
    suite = make_suite(name, "eos", [(selection, "direct") for selection in selections], kind=kind)
    return replace(suite, rows=tuple(replace(row, run_id=f"r{i}") for i, row in enumerate(suite.rows)))


def standing(suite: Suite, *records: RunRecord) -> SuiteProgress:
    return progress_of(plan_suite(suite, CATALOG, EOS, Policy()), {record.run.id: record for record in records})


def ended(
    run_id: str, result: VerdictResult | None = None, times: Sequence[float] = (), stage: Stage = "done"
) -> RunRecord:
    verdict = Verdict(result, 1.0, 2.0, "published", "last step") if result else None
    steps = tuple(enumerate(times))
    last = Step(len(times) - 1, 50, times[-1]) if times else None
    progress = Progress(len(times), 50, last, step_times_s=steps, median_s=median(times) if times else None)
    return RunRecord(make_run(run_id), RunState(run_id, stage, progress=progress, verdict=verdict))


def test_scaling_uses_all_published_scales_that_fit() -> None:
    assert [row.selection.scale for row in made("scaling", most_gpus=300).rows] == [16, 32, 64, 128, 256]
    assert [row.selection.scale for row in made("scaling").rows][-1] == 2048


def test_scaling_leaves_proxies_out() -> None:
    grok = Selection("grok1", "25.02", "314b", "h100", "fp8", 8)
    assert [row.selection.scale for row in made("scaling", grok).rows] == [512, 1024, 2048]
    with pytest.raises(LlmbError, match="has no runs"):
        made("scaling", grok, most_gpus=256)


def test_precision_has_a_row_for_each_precision() -> None:
    assert {row.selection.dtype for row in made("precision").rows} == {"bf16", "fp8"}


def test_repeat_runs_the_same_again() -> None:
    assert len(made("repeat").rows) == 5
    assert {row.selection for row in made("repeat", count=3).rows} == {NEMOTRON}


def test_acceptance_has_the_published_configurations_that_fit() -> None:
    rows = made("acceptance", most_gpus=32).rows
    assert {(row.selection.size, row.selection.dtype, row.selection.scale) for row in rows} == {
        ("15b", dtype, scale) for dtype in ("bf16", "fp8") for scale in (16, 32)
    }


def test_acceptance_keeps_the_requested_options() -> None:
    asked = replace(NEMOTRON, steps=60, time_limit="02:00:00")
    rows = made("acceptance", asked, most_gpus=16).rows
    assert {(row.selection.steps, row.selection.time_limit) for row in rows} == {(60, "02:00:00")}


def test_acceptance_without_a_published_step_time_is_refused() -> None:
    with pytest.raises(LlmbError, match="has no runs"):
        made("acceptance", Selection("nemotron4-340b", "25.12", "340b", "gb300", "bf16", 128))


@pytest.mark.parametrize(
    ("results", "whole"),
    [
        (("PASS", "PASS"), "PASS"),
        (("PASS", "WARN"), "WARN"),
        (("PASS", None), "WARN"),
        (("FAIL", "WARN"), "FAIL"),
    ],
)
def test_acceptance_gives_one_verdict_for_the_whole_suite(
    results: tuple[VerdictResult | None, ...], whole: VerdictResult
) -> None:
    suite = made("acceptance", most_gpus=16)
    records = [ended(f"r{i}", result) for i, result in enumerate(results)]
    outcome = outcome_of(standing(suite, *records))
    assert outcome.result == whole
    assert outcome.lines[0] == f"{whole}: {results.count('PASS')} of 2 configurations pass."
    assert outcome_of(standing(suite, records[0])).result is None


def test_acceptance_with_a_failed_run_fails() -> None:
    outcome = outcome_of(standing(made("acceptance", most_gpus=16), ended("r0", "PASS"), ended("r1", stage="timeout")))
    assert outcome.result == "FAIL"
    assert "fp8 16: timeout" in outcome.lines[1]


def test_acceptance_has_no_verdict_while_a_log_is_not_read() -> None:
    suite = made("acceptance", most_gpus=16)
    records = [ended(f"r{i}", "PASS") for i in range(2)]
    unread = replace(records[1], state=replace(records[1].state, verdict=None, log_unread=True))
    progress = standing(suite, records[0], unread)
    assert (progress.over, outcome_of(progress).result, outcome_of(progress).lines) == (True, None, (progress.words,))


def test_repeat_reports_its_noise() -> None:
    records = [ended(f"r{i}", "PASS", [*[9.0] * 5, *[2.0 + i / 100] * 45]) for i in range(3)]
    outcome = outcome_of(standing(made("repeat", count=3), *records))
    assert outcome.lines[0].startswith("step time 2.01 ± 0.025 s (95 %, 3 runs), 2–2.02 s")


@pytest.mark.parametrize(
    ("times", "half", "alike"),
    [
        ((2.0, 2.01), "0.064", "0.13"),  # Student's t is 12.7 for two runs
        ((2.0, 2.01, 2.02), "0.025", "0.061"),
        ((2.0, 2.0, 2.0), "0.002", "0.002"),  # equal values to four digits do not make equal runs
    ],
)
def test_the_smallest_distinguishable_difference_follows_from_the_repeats(
    times: tuple[float, ...], half: str, alike: str
) -> None:
    records = [ended(f"r{i}", "PASS", [*[9.0] * 5, *[time] * 45]) for i, time in enumerate(times)]
    lines = outcome_of(standing(made("repeat", count=len(times)), *records)).lines
    assert f"± {half} s (95 %, {len(times)} runs)" in lines[0]
    assert lines[1].endswith(f"runs that differ by less than {alike} s cannot be distinguished")


def test_tune_tries_the_fastest_layouts_shortly() -> None:
    suite = made("tune")
    *tried, last = suite.rows
    assert len({row.selection.overrides for row in tried}) == 4
    assert {row.selection.steps for row in tried} == {25}
    assert (last.of_best, last.selection.steps) == (True, None)
    assert last.selection.overrides == tried[0].selection.overrides


def test_tune_selects_the_fastest_layout() -> None:
    suite = made("tune", count=3)
    records = [ended(f"r{i}", None, [*[9.0] * 5, *[2.0 - i / 10] * 20]) for i in range(3)]
    assert with_best(standing(suite, *records[:2])) is None
    best = with_best(standing(suite, *records))
    assert best is not None
    assert best.selection.overrides == suite.rows[2].selection.overrides
    assert (best.key, best.run_id) == (suite.rows[-1].key, suite.rows[-1].run_id)


def test_tune_without_a_step_time_is_finished() -> None:
    suite = made("tune", count=2)
    progress = standing(suite, ended("r0", stage="failed"), ended("r1", stage="failed"))
    assert (progress.stopped, progress.over, with_best(progress)) == (True, True, None)


def test_tune_stops_without_a_layout_when_all_short_runs_failed() -> None:
    suite = made("tune", count=2)
    times = [9.0] * 5 + [2.0] * 10
    progress = standing(suite, *(ended(f"r{i}", None, times, stage="failed") for i in range(2)))
    assert (progress.stopped, with_best(progress)) == (True, None)


@pytest.mark.parametrize("stage", ["done", "failed"])
def test_tune_does_not_judge_by_a_log_that_was_not_read(stage: Stage) -> None:
    suite = made("tune", count=2)
    last = ended("r1", stage=stage)
    unread = replace(last, state=replace(last.state, log_unread=True))
    waiting = frozenset[str]()
    progress = replace(standing(suite, ended("r0", None, [9.0] * 5 + [2.0] * 20), unread), given_up=waiting)
    assert (progress.stopped, progress.over, progress.unfinished, with_best(progress)) == (False, False, True, None)
    none = standing(suite, replace(unread, run=make_run("r0")), unread)
    assert not replace(none, given_up=waiting).stopped
    assert replace(none, given_up=frozenset({"r0", "r1"})).stopped
    # A check shows that no thread is active; a second submission continues this suite and starts no other one.
    assert (none.stopped, none.over, none.unfinished) == (True, True, True)


def test_tune_compares_its_trials_when_one_log_was_never_read() -> None:
    suite = made("tune", count=3)
    last = ended("r2", stage="failed")
    trials = [ended("r0", None, [9.0] * 5 + [2.0] * 20), ended("r1", None, [9.0] * 5 + [3.0] * 20)]
    progress = standing(suite, *trials, replace(last, state=replace(last.state, log_unread=True)))
    assert "The fastest" in outcome_of(progress).lines[0]


def test_tune_reports_whether_the_difference_is_noise_and_the_error_of_the_estimates() -> None:
    noise = random.Random(1)
    suite = made("tune", count=2)

    def steps(mean: float) -> list[float]:
        return [9.0] * 5 + [noise.gauss(mean, 0.02) for _ in range(20)]

    alike = outcome_of(standing(suite, ended("r0", None, steps(2.0)), ended("r1", None, steps(2.0))))
    assert "no difference between them" in alike.lines[0]
    apart = standing(suite, ended("r0", None, steps(2.2)), ended("r1", None, steps(2.0)))
    assert "more than the noise" in outcome_of(apart).lines[0]
    assert [row.planned.row.run_id for row in trials_of(apart)] == ["r1", "r0"]
    errors = []
    for row in apart.rows[:2]:
        assert row.planned.plan.estimate is not None
        errors.append(100 * (row.planned.plan.estimate.step_time_s / fmean(row.steps_s) - 1))
    mean, worst = fmean(map(abs, errors)), max(errors, key=abs)
    words = f"off by {two_digits(mean)} % on average and {two_digits(worst, '+')} % at most"
    assert words in outcome_of(apart).lines[1]
