"""`slow_nodes`: which nodes their runs were slow with, and the evidence for it. Pure.

A training waits for its slowest rank, so one slow node slows a whole run down. For each node the runs with it are held
against those without it, among repeats of one configuration on one cluster by one procedure, since nothing else can be
compared to a per cent. Some node always looks worst. How likely that is by chance is reckoned by handing the very same
times out to the runs anew, at random, and counting how often any node comes out as far as this one did: the permutation
test of Westfall and Young, which corrects for the number of nodes and for those that often run together, and asks
nothing of the noise. The worst node is named first, its runs are left out, and the others are tested again: its company
is not to be blamed for it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from statistics import fmean, median, variance

from llmb_tui.analysis.compare import group, value_s
from llmb_tui.analysis.result import RunResult
from llmb_tui.language.node_list import compress, expand
from llmb_tui.language.quantities import given
from llmb_tui.language.states import NodeState
from llmb_tui.language.text import plural

_LEAST_PLACEMENTS = 3
"""On either side."""
_LEAST_PCT = 1.0
"""A smaller difference is not worth a node."""
_CHANCE = 0.01
"""How often noise alone may name a node, of one look at all nodes."""
_ROUNDS = 499
_MOST_TOGETHER = 4
"""Of more nodes that always ran together, nobody would leave out all."""
_FARTHEST = 3.0
"""Deviations from the median, as which everything counts that is farther away."""
_FINEST = 0.0005
"""Relative deviation that repeats have at least: logs print four digits."""
RULE = (
    f"A node is suspected where its runs are slower than repeats without it by more than {given(_LEAST_PCT)} %, and by "
    f"more than they differ anyway, in {_LEAST_PLACEMENTS} placements or more on either side, so that noise alone "
    f"would name any node in {given(100 * _CHANCE)} % of such looks at most. What counts of a run is the median of "
    "its steps; runs that follow each other on the same nodes are one placement."
)
_STATE_WORDS: dict[NodeState, str] = {
    "suspected": "slow",
    "unremarkable": "nothing that noise does not explain",
    "not enough runs": "too few placements",
    "not told apart": f"slow, but more than {_MOST_TOGETHER} nodes always ran together: mix them with others",
    "changed over time": "slow, but all runs with it are later or earlier than those without: time may be the reason",
}


@dataclass(frozen=True, slots=True)
class NodeFinding:
    """What the runs say about one node, or about several that always ran together.

    Runs with nodes that were suspected before it are not among them.
    """

    nodes: tuple[str, ...]
    """Names; where the runs were on several clusters each is `CLUSTER:NAME`."""
    runs_with: int
    runs_without: int
    """Of the same configurations."""
    difference_pct: float | None
    """How much longer the runs with it took; None where there are none on one side."""
    noise_pct: float | None
    """Deviation of the runs without it; None below two."""
    chance: float | None
    """How likely noise alone lets any node come out as far; None where it was not tested."""
    state: NodeState

    @property
    def words(self) -> str:
        """In a few words."""
        return _STATE_WORDS[self.state]


@dataclass(frozen=True, slots=True)
class SlowNodes:
    """All nodes of some runs."""

    findings: tuple[NodeFinding, ...]
    """Suspected ones first, then by difference."""
    runs: int
    """How many runs were counted: comparable ones whose nodes are known, and that have repeats."""
    passed_over: int
    """How many were not."""

    @property
    def suspected(self) -> tuple[str, ...]:
        """Names."""
        return tuple(node for found in self.findings if found.state == "suspected" for node in found.nodes)

    @property
    def exclude(self) -> str:
        """Option of sbatch that leaves them out; where they are on several clusters, that of each after its name.

        Empty where none is suspected.
        """
        by_cluster: dict[str, list[str]] = {}
        for node in self.suspected:
            cluster, _, name = node.rpartition(":")
            by_cluster.setdefault(cluster, []).append(name)
        options = {cluster: f"--exclude={compress(names)}" for cluster, names in by_cluster.items()}
        several = len(options) > 1
        return "; ".join(f"{cluster}: {option}" if several else option for cluster, option in options.items())

    @property
    def words(self) -> str:
        """The answer in a sentence or two."""
        if not self.runs:
            return "No runs can be held against each other: it takes repeats whose nodes are known, and not the same."
        if self.suspected:
            return f"Suspected: {compress(self.suspected)}, by {plural(self.runs, 'run')}."
        if all(found.state == "not enough runs" for found in self.findings):
            return f"Nothing can be said of any node: it takes {_LEAST_PLACEMENTS} placements with it and without it."
        return f"No node is suspected, by {plural(self.runs, 'run')}."


@dataclass(frozen=True, slots=True)
class _Timed:
    """A run among its repeats, or several that followed each other on the very same nodes.

    Such runs are one witness: what else was so at that time was so for all of them.
    """

    repeats: int
    """Which ones: an index."""
    value: float
    """Logarithm of its time; the median of several."""
    at: float
    nodes: tuple[str, ...]
    runs: int


@dataclass(frozen=True, slots=True)
class _Test:
    """Nodes that always ran together."""

    nodes: tuple[str, ...]
    members: tuple[int, ...]
    """Indexes of the runs with them, where their repeats have some without."""
    others: tuple[int, ...]
    """Of those without, of the same repeats."""


def slow_nodes(runs: Iterable[RunResult]) -> SlowNodes:
    """Of the comparable runs among these, whose nodes are known."""
    everything = list(runs)
    left = timed = _timed(everything)
    suspected: list[NodeFinding] = []
    rest: list[NodeFinding] = []
    while left:
        worst, rest = _worst(left)
        if worst is None:
            break
        suspected.append(worst)
        left = _with_repeats([run for run in left if not set(worst.nodes) & set(run.nodes)])
    seen = {node for found in (*suspected, *rest) for node in found.nodes}
    unseen = {node for run in timed for node in run.nodes} - seen
    rest += [NodeFinding((node,), 0, 0, None, None, None, "not enough runs") for node in sorted(unseen)]
    rest.sort(key=lambda found: -math.inf if found.difference_pct is None else found.difference_pct, reverse=True)
    counted = sum(run.runs for run in timed)
    return SlowNodes((*suspected, *rest), counted, len(everything) - counted)


def _timed(runs: Sequence[RunResult]) -> list[_Timed]:
    """Those that have repeats on other nodes."""
    found = []
    several = len({run.cluster for run in runs}) > 1
    for repeats, one in enumerate(group(runs, "median")):
        cluster = f"{one.cluster}:" if several else ""
        placed = [(run, tuple(cluster + node for node in nodes)) for run in one.runs if (nodes := _nodes(run))]
        for nodes, stay in groupby(placed, lambda pair: pair[1]):
            same = [run for run, _ in stay]
            seconds = median(value_s(run, "median") or 0.0 for run in same)
            if seconds > 0:
                found.append(_Timed(repeats, math.log(seconds), same[0].made_at, nodes, len(same)))
    return _with_repeats(found)


def _nodes(run: RunResult) -> tuple[str, ...]:
    try:
        return tuple(sorted(expand(run.job.node_list))) if run.job else ()
    except ValueError:
        return ()


def _with_repeats(runs: Sequence[_Timed]) -> list[_Timed]:
    counts = _by_repeats(runs)
    return [run for run in runs if len(counts[run.repeats]) > 1]


def _by_repeats(runs: Sequence[_Timed]) -> dict[int, list[int]]:
    """Indexes of runs by which repeats they are."""
    found: dict[int, list[int]] = {}
    for index, run in enumerate(runs):
        found.setdefault(run.repeats, []).append(index)
    return found


def _worst(runs: Sequence[_Timed]) -> tuple[NodeFinding | None, list[NodeFinding]]:
    """The node that is most certainly slow, if any is; and what is found of all others beside it."""
    repeats = list(_by_repeats(runs).values())
    tests = list(_tests(runs, repeats))
    fit = [test for test in tests if min(len(test.members), len(test.others)) >= _LEAST_PLACEMENTS]
    chances = dict(zip((test.nodes for test in fit), _chances(fit, repeats, runs), strict=True))
    found = [_finding(test, runs, chances[test.nodes][1] if test.nodes in chances else None) for test in tests]
    suspects = [one for one in found if one.state == "suspected"]
    worst = max(suspects, key=lambda one: chances[one.nodes][0], default=None)
    return worst, [one for one in found if one is not worst]


def _tests(runs: Sequence[_Timed], repeats: Sequence[Sequence[int]]) -> Iterator[_Test]:
    """One for each set of nodes that always ran together, which no run can tell apart."""
    having: dict[str, set[int]] = {}
    for index, run in enumerate(runs):
        for node in run.nodes:
            having.setdefault(node, set()).add(index)
    together: dict[object, tuple[list[str], list[int], list[int]]] = {}
    for node, indexes in having.items():
        mixed = [index for same in repeats if 0 < len(indexes.intersection(same)) < len(same) for index in same]
        members = [index for index in mixed if index in indexes]
        others = [index for index in mixed if index not in indexes]
        together.setdefault(tuple(members) or node, ([], members, others))[0].append(node)
    for nodes, members, others in together.values():
        yield _Test(tuple(sorted(nodes)), tuple(members), tuple(others))


def _chances(
    tests: Sequence[_Test], repeats: Sequence[Sequence[int]], runs: Sequence[_Timed]
) -> list[tuple[float, float]]:
    """Of each test how far it comes out, in deviations, and how often noise alone lets any of them come out as far.

    It ends early where that is too often for the farthest already.
    """
    if not tests:
        return []
    scores = [0.0] * len(runs)
    for indexes in repeats:
        for index, score in zip(indexes, _scores([runs[index].value for index in indexes]), strict=True):
            scores[index] = score
    variances = [variance([scores[index] for index in same]) for same in repeats]
    widths = [_width(test, repeats, variances) for test in tests]
    of_members = [itemgetter(*test.members) for test in tests]

    def statistics() -> list[float]:
        return [sum(members(scores)) / width for members, width in zip(of_members, widths, strict=True)]

    observed = statistics()
    exceeded, rounds = [0] * len(tests), 0
    numbers = random.Random(0)  # noqa: S311 - the same answer for the same runs
    while rounds < _ROUNDS and min(exceeded) <= _CHANCE * (_ROUNDS + 1):
        rounds += 1
        for indexes in repeats:
            shuffled = [scores[index] for index in indexes]
            numbers.shuffle(shuffled)
            for index, score in zip(indexes, shuffled, strict=True):
                scores[index] = score
        highest = max(statistics())
        exceeded = [count + (highest >= value) for count, value in zip(exceeded, observed, strict=True)]
    return [(value, (1 + count) / (1 + rounds)) for value, count in zip(observed, exceeded, strict=True)]


def _scores(values: Sequence[float]) -> list[float]:
    """How far each lies from their mean, in deviations; one that is far off for a reason of its own is moved nearer."""
    middle = median(values)
    width = max(_deviation(values), _FINEST)
    near = [max(-_FARTHEST, min(_FARTHEST, (value - middle) / width)) for value in values]
    return [score - fmean(near) for score in near]


def _deviation(values: Sequence[float]) -> float:
    """Of a normal distribution with the same median of absolute deviations."""
    middle = median(values)
    return 1.4826 * median(abs(value - middle) for value in values)


def _width(test: _Test, repeats: Sequence[Sequence[int]], variances: Sequence[float]) -> float:
    """Deviation of the sum of its scores if the times were handed out at random; never 0."""
    inside, whole = set(test.members), 0.0
    for same, of_scores in zip(repeats, variances, strict=True):
        if having := len(inside.intersection(same)):
            whole += of_scores * having * (len(same) - having) / len(same)
    return math.sqrt(whole) or 1.0


def _finding(test: _Test, runs: Sequence[_Timed], chance: float | None) -> NodeFinding:
    difference, noise = _difference(test, runs)
    state: NodeState = "unremarkable"
    if chance is None:
        state = "not enough runs"
    elif chance <= _CHANCE and (difference or 0.0) > max(_LEAST_PCT, noise or 0.0):
        state = "suspected"
        if len(test.nodes) > _MOST_TOGETHER:
            state = "not told apart"
        elif _is_apart_in_time(test, runs):
            state = "changed over time"
    with_it, without = (sum(runs[index].runs for index in side) for side in (test.members, test.others))
    return NodeFinding(test.nodes, with_it, without, difference, noise, chance, state)


def _difference(test: _Test, runs: Sequence[_Timed]) -> tuple[float | None, float | None]:
    """Between the medians with and without, in per cent, by the weight of each repeats; and the deviation without."""
    apart: list[tuple[float, float]] = []
    outside: list[float] = []
    for repeats in {runs[index].repeats for index in test.members}:
        having = [runs[index].value for index in test.members if runs[index].repeats == repeats]
        lacking = [runs[index].value for index in test.others if runs[index].repeats == repeats]
        usual = median(lacking)
        apart.append((len(having) * len(lacking) / (len(having) + len(lacking)), median(having) - usual))
        outside += [value - usual for value in lacking if len(lacking) > 1]
    if not apart:
        return None, None
    mean = sum(weight * one for weight, one in apart) / sum(weight for weight, _ in apart)
    return 100 * math.expm1(mean), 100 * _deviation(outside) if outside else None


def _is_apart_in_time(test: _Test, runs: Sequence[_Timed]) -> bool:
    """In none of its repeats did a run with it lie between runs without it, or the other way round."""
    for repeats in {runs[index].repeats for index in test.members}:
        inside = [runs[index].at for index in test.members if runs[index].repeats == repeats]
        outside = [runs[index].at for index in test.others if runs[index].repeats == repeats]
        if min(inside) <= max(outside) and min(outside) <= max(inside):
            return False
    return True
