"""`outcome_of`: the result of a suite as a whole, by its kind: one verdict, and its reasons. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from llmb_tui.analysis.statistics import FINEST_PCT, mean_half_width, t_95, welch_half_width
from llmb_tui.language.quantities import step_time, step_time_digits, step_time_range, two_digits
from llmb_tui.language.states import VerdictResult
from llmb_tui.language.text import plural
from llmb_tui.suites.suite import SuiteRow
from llmb_tui.suites.suite_progress import RowProgress, SuiteProgress


@dataclass(frozen=True, slots=True)
class SuiteOutcome:
    """Result of a suite."""

    result: VerdictResult | None
    """One verdict for all runs; None while the suite is active, and for a kind without a verdict."""
    lines: tuple[str, ...]
    """Text for people: the result first, then its reasons."""


def outcome_of(progress: SuiteProgress) -> SuiteOutcome:
    """Result of a suite so far."""
    answer = {"tune": _tune, "acceptance": _acceptance, "repeat": _repeat}.get(progress.plan.suite.kind)
    return answer(progress) if answer is not None else SuiteOutcome(None, (progress.words,))


def trials_of(progress: SuiteProgress) -> list[RowProgress]:
    """Successful short runs of a `tune` that have step times, the fastest first."""
    short_runs = (row for row in progress.rows if row.steps_s and not row.planned.row.of_best)
    return sorted(short_runs, key=lambda row: fmean(row.steps_s))


def with_best(progress: SuiteProgress) -> SuiteRow | None:
    """Full run of a `tune` with the layout of the fastest short run.

    None while short runs are active, and if none of them has a step time.
    """
    last, trials = progress.plan.suite.rows[-1], trials_of(progress)
    if not last.of_best or progress.trying or not trials:
        return None
    fastest = trials[0].planned.row.selection
    return replace(last, selection=replace(last.selection, overrides=fastest.overrides))


def _acceptance(progress: SuiteProgress) -> SuiteOutcome:
    """All runs have to pass; while a log is unread, the result is unknown."""
    if not progress.over or progress.unread:
        return SuiteOutcome(None, (progress.words,))
    bad = [row for row in progress.rows if row.standing != "done" or row.result == "FAIL"]
    doubtful = [row for row in progress.rows if row.standing == "done" and row.result in ("WARN", None)]
    result: VerdictResult = "FAIL" if bad else "WARN" if doubtful else "PASS"
    lines = [f"{result}: {progress.results('PASS')} of {plural(len(progress.rows), 'configuration')} pass."]
    lines += [f"{row.planned.row.key}: {row.result or row.label.word}" for row in (*bad, *doubtful)]
    return SuiteOutcome(result, tuple(lines))


def _repeat(progress: SuiteProgress) -> SuiteOutcome:
    values = [row.step_time_s for row in progress.rows if row.step_time_s is not None]
    half = mean_half_width(values)
    if half is None:
        return SuiteOutcome(None, (progress.words,))
    mean, deviation = fmean(values), stdev(values)
    finest = FINEST_PCT / 100 * mean
    half, smallest = max(finest, half), max(finest, t_95(len(values) - 1) * math.sqrt(2) * deviation)
    reach = step_time_range(min(values), max(values))
    line = f"step time {step_time_digits(mean)} ± {two_digits(half)} s (95 %, {len(values)} runs), {reach}"
    share = two_digits(100 * deviation / mean)
    noise = f"noise {share} %: runs that differ by less than {two_digits(smallest)} s cannot be distinguished"
    return SuiteOutcome(None, (line, noise, progress.words))


def _tune(progress: SuiteProgress) -> SuiteOutcome:
    trials = trials_of(progress)
    lines = [_compared(trials)] if len(trials) > 1 and not progress.trying else []
    lines += [_model_error(trials)] if trials else []
    lines += [f"{step_time(fmean(trial.steps_s))}  {trial.planned.row.key}" for trial in trials]
    last = progress.rows[-1]
    if last.planned.row.of_best and last.step_time_s is not None:
        verdict = f", {last.result}" if last.result else ""
        lines.insert(0, f"full run of the best: {step_time(last.step_time_s)}{verdict}")
    return SuiteOutcome(last.result if progress.over else None, (*lines, progress.words))


def _compared(trials: Sequence[RowProgress]) -> str:
    first, second = trials[:2]
    difference = fmean(second.steps_s) - fmean(first.steps_s)
    half, share = welch_half_width(second.steps_s, first.steps_s), 100 * difference / fmean(first.steps_s)
    if half is None:
        return f"The fastest is {two_digits(share)} % faster than the next; the part of noise in this is unknown."
    by = f"by {two_digits(share)} % ({two_digits(difference)} ± {two_digits(half)} s)"
    if abs(difference) <= half:
        conclusion = "these runs show no difference between them"
        return f"The fastest two differ {by}, which is not more than the noise of their steps: {conclusion}."
    rest = "a `repeat` suite shows how much two runs of one layout differ"
    return f"The fastest is faster than the next {by}, more than the noise of their steps; {rest}."


def _model_error(trials: Sequence[RowProgress]) -> str:
    """Text of the error of the estimates, which were too high (+) or too low (-)."""
    estimates = ((trial.planned.plan.estimate, fmean(trial.steps_s)) for trial in trials)
    errors = [100 * (estimate.step_time_s / mean_s - 1) for estimate, mean_s in estimates if estimate is not None]
    if not errors:
        return "There is no estimate to compare with."
    mean, worst = fmean(map(abs, errors)), max(errors, key=abs)
    sizes = f"{two_digits(mean)} % on average and {two_digits(worst, '+')} % at most"
    return f"The estimates were off by {sizes}, relative to the measured step times."
