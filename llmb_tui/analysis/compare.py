"""`compare`: finished runs side by side, repeats with their noise, and which differences are larger than that. Pure.

What is compared of a run is its step time by the recipe's rule. Where the recipes count other steps, it is the median
of those that count for each. Differences are of the time that a GPU takes for a token, which is the difference of the
step times where batch and scale are the same, and holds over scales as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import Literal

from llmb_tui.analysis.likeness import Likeness, Purpose, Remark, aspect_words, distinctions, likeness, run_names
from llmb_tui.analysis.result import Configuration, RunResult
from llmb_tui.analysis.statistics import FINEST_PCT, mean_half_width, t_95, welch_half_width
from llmb_tui.language.quantities import given, step_time, two_digits
from llmb_tui.language.states import ContrastOutcome, state_label
from llmb_tui.language.text import plural
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.watch.state import ENDED, LONGEST_STEP_S, SHORTEST_STEP_S
from llmb_tui.watch.validity import failed

Measure = Literal["rule", "median"]
Basis = Literal["repeats", "one side's repeats", "single runs", "unknown"]
"""What the noise of a difference is known from."""
MEASURE_WORDS: dict[Measure, str] = {
    "rule": "step time by the recipe's rule",
    "median": "median of the steps that count",
}
_BASIS_WORDS: dict[Basis, str] = {
    "repeats": "by the noise between repeats, 95 %",
    "one side's repeats": "by the noise between the repeats of one side, taken for both, 95 %",
    "single runs": "by the noise within the runs, 95 %; that between runs is not known: repeat them",
    "unknown": "the noise is not known: repeat the runs",
}
_OVER = (*ENDED, "refused", "withdrawn")
_OVER_TIME: tuple[Purpose, ...] = ("changes", "clusters", "releases")
"""For what one side is held against another where nobody says it."""


@dataclass(frozen=True)
class Group:
    """Repeats: comparable runs of one configuration on one cluster by one procedure, oldest first."""

    configuration: Configuration
    cluster: str
    procedure: ProcedureId
    runs: tuple[RunResult, ...]
    """One or more; each has a value."""
    measure: Measure

    @property
    def label(self) -> str:
        """In a few words."""
        where = f"{self.cluster}, {PROCEDURES[self.procedure].name}"
        return f"{self.configuration.label}, {self.configuration.release} on {where}"

    @cached_property
    def values_s(self) -> tuple[float, ...]:
        """What each run is compared by, seconds."""
        return tuple(s for run in self.runs if (s := value_s(run, self.measure)) is not None)

    @cached_property
    def mean_s(self) -> float:
        """Of the runs' values, seconds."""
        return fmean(self.values_s)

    @cached_property
    def noise_pct(self) -> float | None:
        """Deviation between runs in per cent of the mean; None for a single run."""
        return 100 * stdev(self.values_s) / self.mean_s if len(self.values_s) > 1 else None

    @cached_property
    def half_width_pct(self) -> float | None:
        """Half of the 95 % confidence interval of the mean, in per cent of it; None for a single run."""
        half = mean_half_width(self.values_s)
        return None if half is None else max(FINEST_PCT, 100 * half / self.mean_s)

    @cached_property
    def within_run_pct(self) -> float | None:
        """For a single run: half of the 95 % interval by the noise of its own steps; None where that is not known.

        Of the mean of a window, or of the one step that counts. It is not the noise between runs, which is larger.
        """
        steady = self.runs[0].steady if len(self.runs) == 1 else None
        if steady is None or steady.stdev is None:
            return None
        one_step = self.measure == "rule" and self.runs[0].rule.kind == "last"
        half = t_95(steady.count - 1) * steady.stdev / (1 if one_step else math.sqrt(steady.count))
        return 100 * half / self.mean_s

    @property
    def gpu_token_s(self) -> float:
        """Seconds that one GPU takes for one token: what scales and batches have in common."""
        layout = self.configuration.layout
        return self.mean_s * self.configuration.scale / (layout.gbs * layout.seq_len)

    @property
    def published_s(self) -> float | None:
        """Printed step time of this very configuration; None where there is none."""
        published = self.runs[-1].plan.published
        return published.step_time_s if published else None

    @property
    def of_published_pct(self) -> float | None:
        """How fast, in per cent of what is printed; None where nothing is."""
        return None if self.published_s is None else 100 * self.published_s / self.mean_s

    @property
    def noise_words(self) -> str:
        """Mean and noise in a sentence."""
        mean = f"mean {step_time(self.mean_s)} of {plural(len(self.runs), 'run')}"
        if self.noise_pct is not None and self.half_width_pct is not None:
            noise, half = two_digits(self.noise_pct), two_digits(self.half_width_pct)
            return f"{mean}, deviation {noise} %, 95 % interval of the mean ± {half} %"
        if self.within_run_pct is not None:
            half = two_digits(self.within_run_pct)
            return f"{mean}, ± {half} % by its own steps; the noise between runs is not known"
        return f"{mean}; its noise is not known"


@dataclass(frozen=True, slots=True)
class Contrast:
    """One group against another."""

    base: Group
    other: Group
    difference_pct: float
    """How much longer the other one takes for a token on a GPU, in per cent; below 0 it is faster."""
    half_width_pct: float | None
    """Half of the 95 % interval of the difference, same unit; None where no noise is known."""
    basis: Basis

    @property
    def outcome(self) -> ContrastOutcome:
        """What can be said of the difference; of single runs whether their steps' own noise could make it."""
        if self.half_width_pct is None:
            return "not known"
        if abs(self.difference_pct) <= self.half_width_pct:
            return "within the noise"
        return "slower" if self.difference_pct > 0 else "faster"

    @property
    def words(self) -> str:
        """In a sentence."""
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
    """Runs side by side."""

    runs: tuple[RunResult, ...]
    """As they were given, those that others are held against first."""
    likeness: Likeness
    measure: Measure
    groups: tuple[Group, ...]
    """Of the runs that are comparable, in the order of their first run; with two sides the base comes first."""
    names: tuple[str, ...]
    """Of the groups: in what they differ; in nothing, then which runs they are."""
    contrasts: tuple[Contrast, ...]
    """Each other group against the first, or against its own counterpart; none where the runs may not be compared."""
    left_out: tuple[tuple[str, str], ...]
    """(run id, why) of the runs that are in no group."""
    unpaired: tuple[str, ...] = ()
    """Labels of groups that have no counterpart."""

    def name(self, of: Group) -> str:
        """That of one of the groups."""
        return next(name for one, name in zip(self.groups, self.names, strict=True) if one is of)


def compare(runs: Sequence[RunResult], against: Sequence[RunResult] = (), purpose: Purpose | None = None) -> Comparison:
    """Compare runs with each other, the first group being what others are held against.

    Two runs of one configuration are held against each other as well, unless they are to be repeats.
    Without a purpose, runs that may not be compared with the others are compared among themselves, where there are
    several of a kind: a suite of scales in two precisions is two curves.
    With `against` every group of `runs` is held against its counterpart there, which differs from it in nothing but
    what the purpose lets differ; without a purpose that is time, container, cluster or release, and for a single pair
    what it differs in.
    """
    everything = (*against, *runs)
    purposes = (purpose,) if purpose else ()
    alike = likeness([run for run in everything if run.comparable] or everything, *purposes)
    measure: Measure = "rule" if len({run.rule_words for run in everything if run.comparable}) < 2 else "median"
    groups = group(runs, measure)
    contrasts: tuple[Contrast, ...] = ()
    unpaired: tuple[str, ...] = ()
    if against:
        base = group(against, measure)
        pairs = _pairs(base, groups, purposes)
        paired = {id(member) for *pair, _ in pairs for member in pair}
        unpaired = tuple(one.label for one in (*groups, *base) if id(one) not in paired)
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
    """What a run is compared by, seconds."""
    if measure == "rule":
        return run.step_time_s
    return run.steady.median if run.steady else None


def why_left_out(run: RunResult, measure: Measure = "rule") -> str:
    """Why a run tells nothing about others; empty where it does."""
    value = value_s(run, measure)
    if value is not None and not SHORTEST_STEP_S <= value <= LONGEST_STEP_S:
        return f"its step time, {given(value)} s, is none that a step can take"
    if run.comparable and value is not None:
        return ""
    if run.state != "done":
        return f"it is {state_label(run.state).word}{'' if run.state in _OVER else ', as far as is known here'}"
    if run.step_time_s is None:
        return "it has no step time by its recipe's rule"
    if failures := failed(run.validity):
        return f"validity check failed: {', '.join(check.id for check in failures)}"
    return "it was profiled, traced, began with a checkpoint, or is too short"


def group(runs: Iterable[RunResult], measure: Measure = "rule") -> tuple[Group, ...]:
    """Repeats among the runs that are comparable, in the order of their first run."""
    found: dict[tuple[Configuration, str, ProcedureId], list[RunResult]] = {}
    for run in runs:
        if not why_left_out(run, measure):
            found.setdefault((run.configuration, run.cluster, run.procedure), []).append(run)
    return tuple(Group(*key, tuple(sorted(same, key=lambda run: run.made_at)), measure) for key, same in found.items())


def contrast(base: Group, other: Group) -> Contrast:
    """How much slower the other group is, and what its noise allows to say.

    Repeats on both sides: Welch's interval. On one side: its deviation for both. On none: the noise within the two
    runs, which is less than that between runs.
    """
    ratio = other.gpu_token_s / base.gpu_token_s
    half, basis = _noise(base, other, ratio)
    return Contrast(base, other, 100 * (ratio - 1), None if half is None else max(FINEST_PCT, 100 * half), basis)


def _noise(base: Group, other: Group, ratio: float) -> tuple[float | None, Basis]:
    """Half of the interval of other / base, whose value is `ratio`, and what it is known from."""
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


def _by_kind(groups: Sequence[Group], refused: Likeness) -> tuple[Likeness, list[tuple[Group, ...]]]:
    """The groups that may be compared with each other, and what that leaves to say; none where no two may be."""
    kinds: dict[tuple[str, ...], list[Group]] = {}
    for one in groups:
        key = tuple(aspect_words(one.runs[0], remark.aspect) for remark in refused.refusals)
        kinds.setdefault(key, []).append(one)
    several = [tuple(kind) for kind in kinds.values() if len(kind) > 1]
    found = [likeness([run for one in kind for run in one.runs], refused.purpose) for kind in several]
    if not found or not all(one.comparable for one in found):
        return refused, []
    apart = [
        Remark(remark.aspect, f"{remark.words} Each is compared with its own kind.", refused=False)
        for remark in refused.refusals
    ]
    worst = _worst(found)
    return Likeness(worst.purpose, (), (*apart, *worst.warnings)), several


def _pairs(
    base: Sequence[Group], groups: Sequence[Group], purposes: Sequence[Purpose]
) -> list[tuple[Group, Group, Likeness]]:
    """Each group with its counterpart. A single one on either side go together, whether they may be compared or not."""
    found = []
    single = len(base) == len(groups) == 1
    for one in groups:
        pairs = [(other, one, likeness((*other.runs, *one.runs), *(purposes or _OVER_TIME))) for other in base]
        if fitting := [pair for pair in pairs if pair[2].comparable or (single and purposes)]:
            found.append(min(fitting, key=lambda pair: len(pair[2].warnings)))
        elif single:
            found.append((base[0], one, likeness((*base[0].runs, *one.runs))))
    return found


def _worst(found: Sequence[Likeness]) -> Likeness:
    """What is refused or warned of in one is in all."""
    refusals = dict.fromkeys(remark for one in found for remark in one.refusals)
    warnings = dict.fromkeys(remark for one in found for remark in one.warnings)
    return Likeness(found[0].purpose, tuple(refusals), tuple(warnings))


def _names(groups: Sequence[Group]) -> tuple[str, ...]:
    by_aspect = distinctions([one.runs[0] for one in groups])
    found = [name or one.configuration.label for name, one in zip(by_aspect, groups, strict=True)]
    return tuple(
        f"{name} ({run_names([run.id for run in one.runs])})" if found.count(name) > 1 else name
        for name, one in zip(found, groups, strict=True)
    )
