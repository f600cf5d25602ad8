"""`compare`: finished runs side by side, repeats with their noise, and the differences that exceed the noise. Pure.

A run is compared by its step time by the recipe's rule. If the recipes count different steps, the median of the steps
that count is used instead. Differences are of the time that a GPU takes for a token. That equals the difference of the
step times if batch and scale are the same, and is valid across scales too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import Literal

from llmb_tui.analysis.comparability import (
    Comparability,
    Purpose,
    Remark,
    aspect_words,
    assess_comparability,
    distinctions,
    run_names,
)
from llmb_tui.analysis.result import Configuration, RunResult
from llmb_tui.analysis.statistics import FINEST_PCT, mean_half_width, t_95, welch_half_width
from llmb_tui.language.quantities import plain_number, step_time, two_digits
from llmb_tui.language.states import ContrastOutcome, state_label
from llmb_tui.language.text import plural
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.watch.state import ENDED, LONGEST_STEP_S, SHORTEST_STEP_S
from llmb_tui.watch.validity import failed

Measure = Literal["rule", "median"]
Basis = Literal["repeats", "one side's repeats", "single runs", "unknown"]
"""Source of the noise of a difference."""
MEASURE_WORDS: dict[Measure, str] = {
    "rule": "step time by the recipe's rule",
    "median": "median of the steps that count",
}
_BASIS_WORDS: dict[Basis, str] = {
    "repeats": "by the noise between repeats, 95 %",
    "one side's repeats": "by the noise between the repeats of one side, assumed for both, 95 %",
    "single runs": "by the noise within the runs, 95 %; the noise between runs is unknown: repeat them",
    "unknown": "the noise is unknown: repeat the runs",
}
_OVER = (*ENDED, "refused", "withdrawn")
_OVER_TIME: tuple[Purpose, ...] = ("changes", "clusters", "releases")
"""Default purposes of a comparison of two sides."""


@dataclass(frozen=True)
class Group:
    """Repeats: comparable runs of one configuration, cluster and procedure, oldest first."""

    configuration: Configuration
    cluster: str
    procedure: ProcedureId
    runs: tuple[RunResult, ...]
    """At least one run; each has a value."""
    measure: Measure

    @property
    def label(self) -> str:
        """Short text of configuration, cluster and procedure."""
        where = f"{self.cluster}, {PROCEDURES[self.procedure].title}"
        return f"{self.configuration.label}, {self.configuration.release} on {where}"

    @cached_property
    def values_s(self) -> tuple[float, ...]:
        """Values by which the runs are compared, seconds."""
        return tuple(s for run in self.runs if (s := value_s(run, self.measure)) is not None)

    @cached_property
    def mean_s(self) -> float:
        """Mean of the runs' values, seconds."""
        return fmean(self.values_s)

    @cached_property
    def noise_pct(self) -> float | None:
        """Standard deviation between runs in per cent of the mean; None for a single run."""
        return 100 * stdev(self.values_s) / self.mean_s if len(self.values_s) > 1 else None

    @cached_property
    def half_width_pct(self) -> float | None:
        """Half of the 95 % confidence interval of the mean, in per cent of the mean; None for a single run."""
        half = mean_half_width(self.values_s)
        return None if half is None else max(FINEST_PCT, 100 * half / self.mean_s)

    @cached_property
    def within_run_pct(self) -> float | None:
        """For a single run: half of the 95 % interval by the noise of its own steps; None if that noise is unknown.

        The interval of the mean of a window, or of the one step that counts. The noise between runs is larger.
        """
        steady = self.runs[0].steady if len(self.runs) == 1 else None
        if steady is None or steady.stdev is None:
            return None
        one_step = self.measure == "rule" and self.runs[0].rule.kind == "last"
        half = t_95(steady.count - 1) * steady.stdev / (1 if one_step else math.sqrt(steady.count))
        return 100 * half / self.mean_s

    @property
    def gpu_token_s(self) -> float:
        """Seconds that one GPU takes for one token, which is comparable across scales and batches."""
        layout = self.configuration.layout
        return self.mean_s * self.configuration.scale / (layout.gbs * layout.seq_len)

    @property
    def published_s(self) -> float | None:
        """Published step time of exactly this configuration; None without one."""
        published = self.runs[-1].plan.published
        return published.step_time_s if published else None

    @property
    def of_published_pct(self) -> float | None:
        """Speed in per cent of the published one; None without a published step time."""
        return None if self.published_s is None else 100 * self.published_s / self.mean_s

    @property
    def noise_words(self) -> str:
        """Mean and noise as a sentence."""
        mean = f"mean {step_time(self.mean_s)} of {plural(len(self.runs), 'run')}"
        if self.noise_pct is not None and self.half_width_pct is not None:
            noise, half = two_digits(self.noise_pct), two_digits(self.half_width_pct)
            return f"{mean}, deviation {noise} %, 95 % interval of the mean ± {half} %"
        if self.within_run_pct is not None:
            half = two_digits(self.within_run_pct)
            return f"{mean}, ± {half} % by its own steps; the noise between runs is unknown"
        return f"{mean}; its noise is unknown"


@dataclass(frozen=True, slots=True)
class Contrast:
    """Difference between two groups."""

    base: Group
    other: Group
    difference_pct: float
    """Additional time of the other group for a token on a GPU, in per cent; negative if it is faster."""
    half_width_pct: float | None
    """Half of the 95 % interval of the difference, in the same unit; None if the noise is unknown."""
    basis: Basis

    @property
    def outcome(self) -> ContrastOutcome:
        """Result of the contrast; for single runs, whether the noise of their own steps could cause it."""
        if self.half_width_pct is None:
            return "not known"
        if abs(self.difference_pct) <= self.half_width_pct:
            return "within the noise"
        return "slower" if self.difference_pct > 0 else "faster"

    @property
    def words(self) -> str:
        """The contrast as a sentence."""
        percent, basis = two_digits(abs(self.difference_pct)), _BASIS_WORDS[self.basis]
        way = "slower" if self.difference_pct > 0 else "faster"
        if self.half_width_pct is None:
            return f"{percent} % {way}; {basis}"
        half = two_digits(self.half_width_pct)
        if self.outcome == "within the noise":
            return f"within the noise: {two_digits(self.difference_pct, '+')} % ± {half} % ({basis})"
        return f"{percent} % ± {half} % {way} ({basis})"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs side by side, with their groups and contrasts."""

    runs: tuple[RunResult, ...]
    """Runs in the given order, those of the base side first."""
    comparability: Comparability
    measure: Measure
    groups: tuple[Group, ...]
    """Groups of the comparable runs, in order of their first run; with two sides the base comes first."""
    names: tuple[str, ...]
    """Names of the groups by their differences, or by their runs if there are none."""
    contrasts: tuple[Contrast, ...]
    """Each other group against the first, or against its counterpart; empty if the runs may not be compared."""
    left_out: tuple[tuple[str, str], ...]
    """(run id, reason) of the runs that are in no group."""
    unpaired: tuple[str, ...] = ()
    """Labels of the groups without a counterpart."""

    def name(self, wanted: Group) -> str:
        """Name of one of the groups."""
        return next(name for member, name in zip(self.groups, self.names, strict=True) if member is wanted)


def compare(runs: Sequence[RunResult], against: Sequence[RunResult] = (), purpose: Purpose | None = None) -> Comparison:
    """Compare runs with each other; the first group is the base.

    Two runs of one configuration are compared with each other too, unless the purpose is `repeats`.
    Without a purpose, runs that may not be compared with the others are compared among themselves if there are
    several of a kind: a suite of scales in two precisions gives two curves.
    With `against`, every group of `runs` is compared with its counterpart there, which differs from it only in what the
    purpose allows. Without a purpose that is time, container, cluster or release, and for a single pair whatever
    differs.
    """
    everything = (*against, *runs)
    purposes = (purpose,) if purpose else ()
    alike = assess_comparability([run for run in everything if run.comparable] or everything, *purposes)
    measure: Measure = "rule" if len({run.rule_words for run in everything if run.comparable}) < 2 else "median"
    groups = group(runs, measure)
    contrasts: tuple[Contrast, ...] = ()
    unpaired: tuple[str, ...] = ()
    if against:
        base = group(against, measure)
        pairs = _pairs(base, groups, purposes)
        paired = {id(member) for *pair, _ in pairs for member in pair}
        unpaired = tuple(member.label for member in (*groups, *base) if id(member) not in paired)
        alike = _worst([alike for *_, alike in pairs]) if pairs else alike
        groups = (*base, *groups)
        contrasts = tuple(contrast(base, other) for base, other, _ in pairs)
    elif len(groups) == 1 and len(groups[0].runs) == len(runs) == 2 and purpose != "repeats":
        return compare(runs[1:], runs[:1], purpose)
    else:
        kinds = [groups]
        if purpose is None and not alike.comparable:
            alike, kinds = _by_kind(groups, alike)
        contrasts = tuple(contrast(kind[0], other) for kind in kinds for other in kind[1:])
    left_out = tuple((run.id, why) for run in everything if (why := why_left_out(run, measure)))
    if not alike.comparable:
        contrasts = ()
    return Comparison(everything, alike, measure, groups, _names(groups), contrasts, left_out, unpaired)


def value_s(run: RunResult, measure: Measure) -> float | None:
    """Value by which a run is compared, seconds."""
    if measure == "rule":
        return run.step_time_s
    return run.steady.median if run.steady else None


def why_left_out(run: RunResult, measure: Measure = "rule") -> str:
    """Reason why a run cannot be compared with others; empty if it can."""
    value = value_s(run, measure)
    if value is not None and not SHORTEST_STEP_S <= value <= LONGEST_STEP_S:
        return f"its step time, {plain_number(value)} s, is not a possible step time"
    if run.comparable and value is not None:
        return ""
    if run.state != "done":
        return f"{'state' if run.state in _OVER else 'last known state'} {state_label(run.state).word}"
    if run.step_time_s is None:
        return "it has no step time by its recipe's rule"
    if failures := failed(run.validity):
        return f"validity check failed: {', '.join(check.id for check in failures)}"
    return "it was profiled or traced, loaded a checkpoint, or is too short"


def group(runs: Iterable[RunResult], measure: Measure = "rule") -> tuple[Group, ...]:
    """Groups of repeats among the comparable runs, in order of their first run."""
    by_key: dict[tuple[Configuration, str, ProcedureId], list[RunResult]] = {}
    for run in runs:
        if not why_left_out(run, measure):
            by_key.setdefault((run.configuration, run.cluster, run.procedure), []).append(run)
    return tuple(Group(*key, tuple(sorted(same, key=lambda run: run.made_at)), measure) for key, same in by_key.items())


def contrast(base: Group, other: Group) -> Contrast:
    """Difference of the other group from the base, with the noise that is known.

    With repeats on both sides: Welch's interval. On one side: its deviation, assumed for both. On no side: the noise
    within the two runs, which is less than the noise between runs.
    """
    ratio = other.gpu_token_s / base.gpu_token_s
    half, basis = _noise(base, other, ratio)
    return Contrast(base, other, 100 * (ratio - 1), None if half is None else max(FINEST_PCT, 100 * half), basis)


def _noise(base: Group, other: Group, ratio: float) -> tuple[float | None, Basis]:
    """Half of the interval of other / base, whose value is `ratio`, and the source of its noise."""
    firsts = [value / base.mean_s for value in base.values_s]
    seconds = [ratio * value / other.mean_s for value in other.values_s]
    if (half := welch_half_width(firsts, seconds)) is not None:
        return half, "repeats"
    for repeated, single in ((firsts, ratio), (seconds, 1.0)):
        if (count := len(repeated)) > 1:
            deviation = stdev(repeated) / fmean(repeated)
            return t_95(count - 1) * deviation * math.hypot(
                fmean(repeated) / math.sqrt(count), single
            ), "one side's repeats"
    if base.within_run_pct is None or other.within_run_pct is None:
        return None, "unknown"
    return math.hypot(base.within_run_pct, ratio * other.within_run_pct) / 100, "single runs"


def _by_kind(groups: Sequence[Group], refused: Comparability) -> tuple[Comparability, list[tuple[Group, ...]]]:
    """Comparable groups by kind, with the remaining remarks; no kinds if no two groups may be compared."""
    kinds: dict[tuple[str, ...], list[Group]] = {}
    for member in groups:
        key = tuple(aspect_words(member.runs[0], remark.aspect) for remark in refused.refusals)
        kinds.setdefault(key, []).append(member)
    several = [tuple(kind) for kind in kinds.values() if len(kind) > 1]
    by_kind = [
        assess_comparability([run for member in kind for run in member.runs], refused.purpose) for kind in several
    ]
    if not by_kind or not all(kind.comparable for kind in by_kind):
        return refused, []
    separated = [
        Remark(remark.aspect, f"{remark.words} Each is compared with its own kind.", refused=False)
        for remark in refused.refusals
    ]
    worst = _worst(by_kind)
    return Comparability(worst.purpose, (), (*separated, *worst.warnings)), several


def _pairs(
    base: Sequence[Group], groups: Sequence[Group], purposes: Sequence[Purpose]
) -> list[tuple[Group, Group, Comparability]]:
    """Each group with its counterpart. One group on each side are paired even if they may not be compared."""
    paired = []
    single = len(base) == len(groups) == 1
    for member in groups:
        pairs = [
            (other, member, assess_comparability((*other.runs, *member.runs), *(purposes or _OVER_TIME)))
            for other in base
        ]
        if fitting := [pair for pair in pairs if pair[2].comparable or (single and purposes)]:
            paired.append(min(fitting, key=lambda pair: len(pair[2].warnings)))
        elif single:
            paired.append((base[0], member, assess_comparability((*base[0].runs, *member.runs))))
    return paired


def _worst(several: Sequence[Comparability]) -> Comparability:
    """Union of the refusals and warnings of several."""
    refusals = dict.fromkeys(remark for entry in several for remark in entry.refusals)
    warnings = dict.fromkeys(remark for entry in several for remark in entry.warnings)
    return Comparability(several[0].purpose, tuple(refusals), tuple(warnings))


def _names(groups: Sequence[Group]) -> tuple[str, ...]:
    by_aspect = distinctions([member.runs[0] for member in groups])
    names = [name or member.configuration.label for name, member in zip(by_aspect, groups, strict=True)]
    return tuple(
        f"{name} ({run_names([run.id for run in member.runs])})" if names.count(name) > 1 else name
        for name, member in zip(names, groups, strict=True)
    )
