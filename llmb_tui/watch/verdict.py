"""`judge`: compare a run's step time, by the recipe's own rule, with the expected step time of its plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from llmb_tui.catalog.recipe import ResultRule
from llmb_tui.language.quantities import four_digits, step_time_range, two_digits
from llmb_tui.language.states import Method, VerdictResult, method_phrase
from llmb_tui.language.text import plural
from llmb_tui.plan.plan import Estimate, Plan
from llmb_tui.watch.progress import WARM_UP_STEPS, after_warm_up
from llmb_tui.watch.state import Progress, ValidityCheck, Verdict
from llmb_tui.watch.validity import failed, failure_words

FASTEST = 1.25
"""A larger ratio is a mistake and not speed: no setting of a published recipe leaves so much to gain."""

_TRUSTED: tuple[Method, ...] = ("published", "other_release")


@dataclass(frozen=True, slots=True)
class _StepTime:
    """A step time of the run, the way it was measured, and the reason why the rule does not apply in full."""

    seconds: float
    note: str = ""
    short: str = ""
    is_rule: bool = True
    """False for a median, which replaces a result by the rule when there is none."""


def judge(  # noqa: PLR0913 - facts by name
    plan: Plan,
    rule: ResultRule,
    progress: Progress,
    *,
    finished: bool,
    threshold: float,
    checks: Sequence[ValidityCheck] = (),
) -> tuple[Verdict | None, str]:
    """Return the verdict, or None and the reason why there is none.

    The recipe's rule is applied as soon as it can be. Before that, the verdict uses the median of the steps after the
    warm-up, and its reasons say so. `finished`: the run has ended, no further step will come. `checks`: the run's
    validity checks; a failed one makes the verdict WARN. `threshold`: the smallest ratio that passes.
    """
    estimate = plan.estimate
    if estimate is None:
        return None, "No verdict: there is no expected step time for this configuration to compare with."
    step_time = _by_rule(plan, rule, progress) or (None if finished else _so_far(plan, rule, progress))
    if step_time is None:
        return None, _why_not(plan, rule, progress, finished=finished)
    ratio = estimate.step_time_s / step_time.seconds
    doubts = [failure_words(check) for check in failed(checks)]
    doubts += [step_time.short] if step_time.short else []
    doubts += _incomparable(plan)
    if estimate.method not in _TRUSTED:
        method = method_phrase(estimate.method)
        doubts.append(f"The expected step time is {method}, not published for this configuration.")
    if ratio > FASTEST:
        doubts.append(
            f"{four_digits(ratio)} times as fast as expected, which no cluster explains: the run trained another "
            "configuration, or the expected step time belongs to another one."
        )
    if estimate.other_variant:
        doubts.append(estimate.other_variant)
    if estimate.container and plan.container and estimate.container != plan.container:
        doubts.append(f"The expected step time was measured in container {estimate.container}, not {plan.container}.")
    result, place = _compare(estimate, step_time.seconds, ratio, threshold)
    reasons = [text for text in (step_time.note, place, *doubts) if text]
    if plan.options.save_checkpoint:
        reasons.append("The run saved a checkpoint; the expected step time does not include that.")
    result = "WARN" if doubts else result
    if result != "PASS":
        reasons += [f"A line of the log that may explain a slow run: `{line}`" for line in progress.slow_signs]
    against, seconds = _against(plan, estimate), step_time.seconds
    return Verdict(result, ratio, seconds, against, rule_words(rule), tuple(reasons), step_time.is_rule), ""


def with_caveats(verdict: Verdict, differences: Sequence[str], progress: Progress) -> Verdict:
    """Return the verdict with its run's differences from the runs behind the expected step time; the result stays."""
    unbound = [f"{plural(progress.unbound, 'rank')} bound to no NUMA node"] if progress.unbound else []
    words = "; ".join([*differences, *unbound])
    if not words:
        return verdict
    reason = f"Differs from the runs behind the expected step time: {words}."
    return replace(verdict, reasons=(*verdict.reasons, reason))


def rule_s(plan: Plan, rule: ResultRule, progress: Progress) -> float | None:
    """Step time by the recipe's rule, seconds; None as long as the rule cannot be applied."""
    step_time = _by_rule(plan, rule, progress)
    return step_time.seconds if step_time and step_time.is_rule else None


def benchmark_s(plan: Plan, rule: ResultRule, progress: Progress, checks: Sequence[ValidityCheck]) -> float | None:
    """Step time by the recipe's rule, seconds; None also for a run that cannot be compared with other runs.

    Such a run failed a validity check, was too short for the rule, or used an option that slows it down.
    """
    step_time = _by_rule(plan, rule, progress)
    counts = step_time is not None and not step_time.short and not _incomparable(plan) and not failed(checks)
    return step_time.seconds if step_time is not None and counts else None


def rule_words(rule: ResultRule) -> str:
    """Text of the rule, such as `last step`."""
    return "last step" if rule.kind == "last" else f"mean of iterations {rule.first}–{rule.last}"


def _incomparable(plan: Plan) -> list[str]:
    """Reasons why a run cannot be compared with one that only trained what is planned."""
    options, changed = plan.options, ", ".join(plan.unplanned)
    reasons = (
        (options.profile, "The run was profiled, which slows it down."),
        (options.nccl_trace, "NCCL logged every call, which slows the run down."),
        (options.load_checkpoint is not None, "The run loaded a checkpoint and made its only step right after that."),
        (changed, f"The run was started with {changed} changed, which the expected step time does not include."),
    )
    return [reason for applies, reason in reasons if applies]


def _compare(estimate: Estimate, seconds: float, ratio: float, threshold: float) -> tuple[VerdictResult, str]:
    band = f"the band {step_time_range(estimate.low_s, estimate.high_s)}"
    if ratio >= threshold:
        faster = seconds < estimate.low_s and ratio <= FASTEST
        return "PASS", f"Faster than {band}: check that it is the same configuration." if faster else ""
    if seconds > estimate.high_s:
        return "FAIL", f"Slower than {band}."
    return "WARN", f"Slower than expected, but within {band}."


def _against(plan: Plan, estimate: Estimate) -> str:
    base = f"{method_phrase(estimate.method)} {estimate.step_time_text}, "
    if estimate.method == "published":
        return base + plan.selection.recipe_id
    return base + estimate.anchor


def _by_rule(plan: Plan, rule: ResultRule, progress: Progress) -> _StepTime | None:
    """Step time by the recipe's rule, or by the available steps if the run was planned too short for the rule."""
    whole = progress.steps_done >= _total(plan, progress) > 0
    if rule.kind == "last":
        if not whole or progress.last is None or progress.last.step_time_s is None:
            return None
        return _StepTime(progress.last.step_time_s, short=_too_short(plan, rule, progress))
    first, last = _window(rule)
    if progress.steps_done > last:
        seconds = [seconds for index, seconds in progress.step_times_s if first <= index <= last]
        return _StepTime(fmean(seconds)) if seconds else None
    return _so_far(plan, rule, progress, over=True) if whole else None


def _so_far(plan: Plan, rule: ResultRule, progress: Progress, *, over: bool = False) -> _StepTime | None:
    seconds = progress.median_s
    if seconds is None and over and progress.last:
        seconds = progress.last.step_time_s
    if seconds is None:
        return None
    steps = len(after_warm_up(progress.step_times_s))
    spread = "" if progress.spread is None else f", ± {two_digits(progress.spread * 100)} %"
    starts = f", of {len(progress.again_at) + 1} starts" if any(progress.again_at) else ""
    how = f"median of {steps} steps after {WARM_UP_STEPS} warm-up steps{spread}{starts}" if steps else "last step"
    note = f"Measured: {how}." if over else f"So far: {how}. Rule: {rule_words(rule)}."
    return _StepTime(seconds, note, _too_short(plan, rule, progress), is_rule=False)


def _too_short(plan: Plan, rule: ResultRule, progress: Progress) -> str:
    total = _total(plan, progress)
    needed = WARM_UP_STEPS if rule.kind == "last" else _window(rule)[1]
    if total > needed:
        return ""
    return f"The run has {plural(total, 'step')}; the rule ({rule_words(rule)}) needs at least {needed + 1}."


def _why_not(plan: Plan, rule: ResultRule, progress: Progress, *, finished: bool) -> str:
    done, total, counts = progress.steps_done, _total(plan, progress), rule_words(rule)
    if not finished:
        return f"Warm-up: the first {WARM_UP_STEPS} steps do not count." if done else "No step yet."
    if not done:
        return f"No verdict: the run ended before its first step.{_reason_for_missing_steps(progress)}"
    if done < total:
        return f"No verdict: the run ended after {done} of {total} steps; the rule needs the {counts}."
    return f"No verdict: the log has no step time for the {counts}.{_reason_for_missing_steps(progress)}"


def _reason_for_missing_steps(progress: Progress) -> str:
    """Reason why the log may lack steps that the run made; empty if there is none."""
    if progress.of_next_start:
        return f" The job was started again; `{progress.before}` is the log of its previous start."
    earlier = progress.earlier_lines
    return f" The log was replaced while it was copied; {earlier}." if earlier else ""


def _total(plan: Plan, progress: Progress) -> int:
    return progress.steps_total if progress.steps_total is not None else plan.steps


def _window(rule: ResultRule) -> tuple[int, int]:
    """First and last iteration of a mean. Presets of this kind always have both."""
    first = rule.first or 0
    return first, first if rule.last is None else rule.last
