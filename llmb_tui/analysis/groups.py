"""`ResultGroup`: results that are shown in one row of the results screen; `grouped` creates them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Literal

from llmb_tui.analysis.changes import ChangePoint, changes
from llmb_tui.analysis.comparability import distinctions
from llmb_tui.analysis.compare import Group, group, why_left_out
from llmb_tui.analysis.result import RunResult
from llmb_tui.language.labels import gpus_cell, workload_label
from llmb_tui.language.states import VerdictResult, state_label
from llmb_tui.launch.note import NO_NOTE, Note
from llmb_tui.watch.state import ENDED

Grouping = Literal["configuration", "cluster", "release", "tag", "none"]
GROUPINGS: tuple[Grouping, ...] = ("configuration", "cluster", "release", "tag", "none")
NoteOf = Mapping[str, Note]
"""Notes of users by run id."""
_UNTAGGED = "without a tag"
_WORST_FIRST: tuple[VerdictResult, ...] = ("FAIL", "WARN", "PASS")


@dataclass(frozen=True)
class ResultGroup:
    """One run or more, with the grouping that they have in common."""

    key: tuple[object, ...]
    """Identity of the group, independent of its runs."""
    by: Grouping
    """The grouping; `none` for a single run."""
    title: str
    runs: tuple[RunResult, ...]
    """Runs, newest first."""
    distinction: str = ""
    """Difference from a group with the same title."""

    @property
    def first(self) -> RunResult:
        """The newest run."""
        return self.runs[0]

    @cached_property
    def is_one_configuration(self) -> bool:
        """Whether all runs, also those that do not count, have one configuration, cluster and procedure."""
        return len({_repeats_key(run) for run in self.runs}) == 1

    @cached_property
    def sets(self) -> tuple[Group, ...]:
        """Runs that count, as sets of repeats."""
        return group(self.runs)

    @property
    def repeats(self) -> Group | None:
        """Runs that count, if all are repeats of each other; only then do their times make one figure."""
        return self.sets[0] if len(self.sets) == 1 else None

    @cached_property
    def counted(self) -> int:
        """Number of runs behind the figures."""
        return sum(len(repeats.runs) for repeats in self.sets)

    @cached_property
    def left_out(self) -> Counter[str]:
        """Number of runs that do not count, by reason."""
        return Counter(why for run in self.runs if (why := why_left_out(run)))

    @cached_property
    def ratio(self) -> float | None:
        """Expected ÷ measured step time, mean over the runs that count; None without an expected one."""
        ratios = [
            run.plan.estimate.step_time_s / seconds
            for repeats in self.sets
            for run, seconds in zip(repeats.runs, repeats.values_s, strict=True)
            if run.plan.estimate
        ]
        return fmean(ratios) if ratios else None

    @cached_property
    def verdicts(self) -> Counter[VerdictResult]:
        """Number of successful runs by verdict."""
        return Counter(run.verdict.result for run in self.runs if run.state == "done" and run.verdict)

    @property
    def worst(self) -> VerdictResult | None:
        return next((result for result in _WORST_FIRST if self.verdicts[result]), None)

    @cached_property
    def changed(self) -> tuple[tuple[Group, ChangePoint], ...]:
        """Sets of repeats that became slower or faster by more than their noise, each with its last change."""
        found = [(repeats, _changes(repeats.values_s)) for repeats in self.sets]
        return tuple((repeats, points[-1]) for repeats, points in found if points)

    @cached_property
    def relative(self) -> tuple[tuple[float, float], ...]:
        """(time of the run, step time ÷ mean of its repeats) of each run that counts and has repeats."""
        return tuple(
            (run.made_at, seconds / repeats.mean_s)
            for repeats in self.sets
            if len(repeats.runs) > 1
            for run, seconds in zip(repeats.runs, repeats.values_s, strict=True)
        )

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """Names of the clusters, sorted."""
        return tuple(sorted({run.cluster for run in self.runs}))

    @cached_property
    def scales(self) -> tuple[int, ...]:
        """Numbers of GPUs, ascending."""
        return tuple(sorted({run.configuration.scale for run in self.runs}))


# The same runs are grouped again at each key press, and hundreds of repeats take noticeable time.
_changes = lru_cache(maxsize=512)(changes)


def over(results: Iterable[RunResult]) -> list[RunResult]:
    """Results of finished runs."""
    return [result for result in results if result.state in ENDED]


def narrow(results: Iterable[RunResult], words: str, notes: NoteOf) -> list[RunResult]:
    """Results that contain every one of the words, ignoring case, in their own texts or in their notes."""
    wanted = words.lower().split()
    return [result for result in results if not wanted or _has(result, wanted, notes.get(result.id, NO_NOTE))]


def grouped(results: Iterable[RunResult], by: Grouping, notes: NoteOf) -> list[ResultGroup]:
    """Results as groups, the one with the newest run first. A run with several tags is in several groups."""
    members: dict[tuple[object, ...], list[RunResult]] = {}
    titles: dict[tuple[object, ...], str] = {}
    for result in sorted(results, key=lambda result: result.made_at, reverse=True):
        for key, title in _keys(result, by, notes.get(result.id, NO_NOTE).tags):
            members.setdefault(key, []).append(result)
            titles.setdefault(key, title)
    groups = [ResultGroup(key, by, titles[key], tuple(runs)) for key, runs in members.items()]
    return _told_apart(groups) if by == "configuration" else groups


def group_name(group: ResultGroup) -> str:
    """The name of a group outside of its row: `nemotron4 15b fp8 · 64 × H100 on eos`."""
    newest = group.first
    return f"{newest.configuration.label} on {newest.cluster}" if group.is_one_configuration else group.title


def workload_of(result: RunResult) -> str:
    """Text such as `nemotron4 15b fp8`."""
    configuration = result.configuration
    return workload_label(configuration.workload, configuration.size, configuration.dtype)


def _repeats_key(result: RunResult) -> tuple[object, ...]:
    return result.configuration, result.cluster, result.procedure


def _keys(result: RunResult, by: Grouping, tags: Sequence[str]) -> list[tuple[tuple[object, ...], str]]:
    """Key and title of each group that contains a result."""
    configuration = result.configuration
    if by == "configuration":
        return [((by, *_repeats_key(result)), workload_of(result))]
    if by == "cluster":
        return [((by, result.cluster), result.cluster)]
    if by == "release":
        name = f"{configuration.workload}@{configuration.release}"
        return [((by, name), name)]
    if by == "tag":
        return [((by, tag), f"#{tag}") for tag in tags] or [((by, None), _UNTAGGED)]
    return [((by, result.id), workload_of(result))]


def _told_apart(groups: Sequence[ResultGroup]) -> list[ResultGroup]:
    """Add the differences to groups that would look the same."""
    alike: dict[tuple[object, ...], list[ResultGroup]] = {}
    for entry in groups:
        alike.setdefault((entry.title, entry.scales, entry.first.configuration.gpu, entry.clusters), []).append(entry)
    distinctions_by_key = {
        entry.key: words
        for same in alike.values()
        if len(same) > 1
        for entry, words in zip(same, distinctions([member.first for member in same]), strict=True)
    }
    return [replace(entry, distinction=distinctions_by_key.get(entry.key, "")) for entry in groups]


def _has(result: RunResult, words: Sequence[str], note: Note) -> bool:
    configuration = result.configuration
    verdict = result.verdict.result if result.verdict else ""
    parts = (result.id, workload_of(result), gpus_cell(configuration.scale, configuration.gpu), configuration.release)
    text = " ".join(
        [*parts, result.cluster, result.procedure, state_label(result.state).word, verdict, note.words]
    ).lower()
    return all(word in text for word in words)
