"""`ResultGroup`: results that are listed together: a row of the results screen. `grouped` makes them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Literal

from llmb_tui.analysis.changes import ChangePoint, changes
from llmb_tui.analysis.compare import Group, group, why_left_out
from llmb_tui.analysis.likeness import distinctions
from llmb_tui.analysis.result import RunResult
from llmb_tui.language.labels import gpus_cell, workload_label
from llmb_tui.language.states import VerdictResult, state_label
from llmb_tui.launch.note import NO_NOTE, Note
from llmb_tui.watch.state import ENDED

Grouping = Literal["configuration", "cluster", "release", "tag", "none"]
GROUPINGS: tuple[Grouping, ...] = ("configuration", "cluster", "release", "tag", "none")
NoteOf = Mapping[str, Note]
"""What people say of runs, by their ids."""
_UNTAGGED = "without a tag"
_WORST_FIRST: tuple[VerdictResult, ...] = ("FAIL", "WARN", "PASS")


@dataclass(frozen=True)
class ResultGroup:
    """Some runs, at least one. What they have in common is what they are grouped by."""

    key: tuple[object, ...]
    """The same for the same group, whichever runs come to it."""
    by: Grouping
    """What it was grouped by; `none`: it is one run."""
    title: str
    runs: tuple[RunResult, ...]
    """Newest first."""
    apart: str = ""
    """In what it differs from another one that would read the same."""

    @property
    def first(self) -> RunResult:
        """The newest run."""
        return self.runs[0]

    @cached_property
    def is_one_configuration(self) -> bool:
        """All its runs, also those that do not count, are of one configuration on one cluster, by one procedure."""
        return len({_repeats_key(run) for run in self.runs}) == 1

    @cached_property
    def sets(self) -> tuple[Group, ...]:
        """Its runs that count, as sets of repeats."""
        return group(self.runs)

    @property
    def repeats(self) -> Group | None:
        """The runs that count, where they are repeats of each other: only then are their times one figure."""
        return self.sets[0] if len(self.sets) == 1 else None

    @cached_property
    def counted(self) -> int:
        """How many runs the figures rest on."""
        return sum(len(one.runs) for one in self.sets)

    @cached_property
    def left_out(self) -> Counter[str]:
        """Why how many runs do not count."""
        return Counter(why for run in self.runs if (why := why_left_out(run)))

    @cached_property
    def ratio(self) -> float | None:
        """Expected ÷ measured step time, the mean over the runs that count; None where nothing was expected."""
        ratios = [
            run.plan.estimate.step_time_s / seconds
            for one in self.sets
            for run, seconds in zip(one.runs, one.values_s, strict=True)
            if run.plan.estimate
        ]
        return fmean(ratios) if ratios else None

    @cached_property
    def verdicts(self) -> Counter[VerdictResult]:
        """How many of the runs that ended well came out how."""
        return Counter(run.verdict.result for run in self.runs if run.state == "done" and run.verdict)

    @property
    def worst(self) -> VerdictResult | None:
        """The worst of its verdicts."""
        return next((result for result in _WORST_FIRST if self.verdicts[result]), None)

    @cached_property
    def changed(self) -> tuple[tuple[Group, ChangePoint], ...]:
        """The sets of repeats that became slower or faster by more than their noise; the last change of each."""
        found = [(one, _changes(one.values_s)) for one in self.sets]
        return tuple((one, known[-1]) for one, known in found if known)

    @cached_property
    def relative(self) -> tuple[tuple[float, float], ...]:
        """(when, step time ÷ the mean of its repeats) of each run that counts and has repeats."""
        return tuple(
            (run.made_at, seconds / one.mean_s)
            for one in self.sets
            if len(one.runs) > 1
            for run, seconds in zip(one.runs, one.values_s, strict=True)
        )

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """Names, sorted."""
        return tuple(sorted({run.cluster for run in self.runs}))

    @cached_property
    def scales(self) -> tuple[int, ...]:
        """Numbers of GPUs, ascending."""
        return tuple(sorted({run.configuration.scale for run in self.runs}))


# The same runs are grouped again at each key, and of hundreds of repeats this takes a while.
_changes = lru_cache(maxsize=512)(changes)


def over(results: Iterable[RunResult]) -> list[RunResult]:
    """Those that are over."""
    return [result for result in results if result.state in ENDED]


def narrow(results: Iterable[RunResult], words: str, notes: NoteOf) -> list[RunResult]:
    """The results in which each word stands, in upper or lower case, or in what is said of them."""
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
    """`nemotron4 15b fp8`."""
    configuration = result.configuration
    return workload_label(configuration.workload, configuration.size, configuration.dtype)


def _repeats_key(result: RunResult) -> tuple[object, ...]:
    return result.configuration, result.cluster, result.procedure


def _keys(result: RunResult, by: Grouping, tags: Sequence[str]) -> list[tuple[tuple[object, ...], str]]:
    """The key and the title of each group in which a result is."""
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
    """The groups, with what differs between those that would read the same."""
    alike: dict[tuple[object, ...], list[ResultGroup]] = {}
    for each in groups:
        alike.setdefault((each.title, each.scales, each.first.configuration.gpu, each.clusters), []).append(each)
    apart = {
        each.key: words
        for same in alike.values()
        if len(same) > 1
        for each, words in zip(same, distinctions([one.first for one in same]), strict=True)
    }
    return [replace(each, apart=apart.get(each.key, "")) for each in groups]


def _has(result: RunResult, words: Sequence[str], note: Note) -> bool:
    configuration = result.configuration
    verdict = result.verdict.result if result.verdict else ""
    parts = (result.id, workload_of(result), gpus_cell(configuration.scale, configuration.gpu), configuration.release)
    text = " ".join(
        [*parts, result.cluster, result.procedure, state_label(result.state).word, verdict, note.words]
    ).lower()
    return all(word in text for word in words)
