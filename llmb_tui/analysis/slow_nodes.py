"""`slow_nodes`: nodes that slowed their runs down, with the evidence. Pure.

A training waits for its slowest rank, so one slow node slows the whole run down. For each node, the runs with it are
compared with those without it, among repeats of one configuration on one cluster by one procedure, because nothing else
can be compared to a per cent. Some node always looks worst. The probability that this is chance is computed by
distributing the same times over the runs at random, repeatedly, and counting how often any node deviates as far as this
one did: the permutation test of Westfall and Young. It corrects for the number of nodes and for nodes that often run
together, and assumes nothing about the noise. The worst node is named first, its runs are left out, and the other nodes
are tested again, so that nodes that often ran with it are not blamed.
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
from llmb_tui.language.quantities import plain_number
from llmb_tui.language.states import NodeState
from llmb_tui.language.text import plural

_LEAST_PLACEMENTS = 3
"""Minimum number of placements with the node, and without it."""
_LEAST_PCT = 1.0
"""Smallest difference that is reported, in per cent."""
_CHANCE = 0.01
"""Probability that noise alone names any node, for one look at all nodes."""
_ROUNDS = 499
_MOST_TOGETHER = 4
"""Maximum number of nodes that always ran together and are still reported: more would not be excluded together."""
_FARTHEST = 3.0
"""Limit of a distance from the median, in deviations; a larger one counts as this."""
_FINEST = 0.0005
"""Minimum relative deviation of repeats, because logs print four digits."""
RULE = (
    f"A node is suspected if its runs are slower than repeats without it by more than {plain_number(_LEAST_PCT)} % and "
    f"by more than their noise, in at least {_LEAST_PLACEMENTS} placements on either side, and if noise alone would "
    f"name any node in at most {plain_number(100 * _CHANCE)} % of such checks. A run is judged by the median of its "
    "steps; consecutive runs on the same nodes are one placement."
)
_STATE_WORDS: dict[NodeState, str] = {
    "suspected": "slow",
    "unremarkable": "within the noise",
    "not enough runs": "too few placements",
    "not told apart": f"slow, but more than {_MOST_TOGETHER} nodes always ran together: run them with other nodes",
    "changed over time": "slow, but all its runs are later or earlier than those without it: time may be the reason",
}


@dataclass(frozen=True, slots=True)
class NodeFinding:
    """Result for one node, or for several that always ran together.

    Runs with nodes that were suspected before this one are not included.
    """

    nodes: tuple[str, ...]
    """Node names; with runs on several clusters each is `CLUSTER:NAME`."""
    runs_with: int
    runs_without: int
    """Runs of the same configurations without the node."""
    difference_pct: float | None
    """Additional time of the runs with it, in per cent; None without runs on one side."""
    noise_pct: float | None
    """Deviation of the runs without it, in per cent; None for fewer than two."""
    chance: float | None
    """Probability that noise alone makes any node deviate as far; None if it was not tested."""
    state: NodeState

    @property
    def words(self) -> str:
        """Short text of the state."""
        return _STATE_WORDS[self.state]


@dataclass(frozen=True, slots=True)
class SlowNodes:
    """Results for all nodes of some runs."""

    findings: tuple[NodeFinding, ...]
    """Suspected nodes first, then by difference."""
    runs: int
    """Number of counted runs: comparable runs that have repeats and whose nodes are known."""
    passed_over: int
    """Number of runs that were not counted."""

    @property
    def suspected(self) -> tuple[str, ...]:
        """Names of the suspected nodes."""
        return tuple(node for finding in self.findings if finding.state == "suspected" for node in finding.nodes)

    @property
    def exclude(self) -> str:
        """Option of sbatch that excludes the suspected nodes; for several clusters, each cluster's name and its option.

        Empty if no node is suspected.
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
        """The result in one or two sentences."""
        if not self.runs:
            return "No runs can be compared: repeats on different, known nodes are needed."
        if self.suspected:
            return f"Suspected: {compress(self.suspected)}, by {plural(self.runs, 'run')}."
        if all(finding.state == "not enough runs" for finding in self.findings):
            return f"Too few runs: {_LEAST_PLACEMENTS} placements with a node and without it are needed."
        return f"No node is suspected, by {plural(self.runs, 'run')}."


@dataclass(frozen=True, slots=True)
class _Timed:
    """A run among its repeats, or several consecutive ones on the same nodes.

    Such runs count as one observation, because they share every condition of that time.
    """

    repeats: int
    """Index of its set of repeats."""
    value: float
    """Logarithm of its step time; the median for several runs."""
    at: float
    nodes: tuple[str, ...]
    runs: int


@dataclass(frozen=True, slots=True)
class _Test:
    """Nodes that always ran together."""

    nodes: tuple[str, ...]
    members: tuple[int, ...]
    """Indexes of the runs with them, from sets of repeats that also have runs without them."""
    others: tuple[int, ...]
    """Indexes of the runs without them, from the same sets."""


def slow_nodes(runs: Iterable[RunResult]) -> SlowNodes:
    """Test the nodes of the comparable runs among these."""
    everything = list(runs)
    remaining = timed = _timed(everything)
    suspected: list[NodeFinding] = []
    rest: list[NodeFinding] = []
    while remaining:
        worst, rest = _worst(remaining)
        if worst is None:
            break
        suspected.append(worst)
        remaining = _with_repeats([run for run in remaining if not set(worst.nodes) & set(run.nodes)])
    seen = {node for finding in (*suspected, *rest) for node in finding.nodes}
    unseen = {node for run in timed for node in run.nodes} - seen
    rest += [NodeFinding((node,), 0, 0, None, None, None, "not enough runs") for node in sorted(unseen)]
    rest.sort(key=lambda finding: -math.inf if finding.difference_pct is None else finding.difference_pct, reverse=True)
    counted = sum(run.runs for run in timed)
    return SlowNodes((*suspected, *rest), counted, len(everything) - counted)


def _timed(runs: Sequence[RunResult]) -> list[_Timed]:
    """Comparable runs that have repeats on other nodes."""
    placements = []
    several = len({run.cluster for run in runs}) > 1
    for repeats, same_group in enumerate(group(runs, "median")):
        cluster = f"{same_group.cluster}:" if several else ""
        placed = [(run, tuple(cluster + node for node in nodes)) for run in same_group.runs if (nodes := _nodes(run))]
        for nodes, stay in groupby(placed, lambda pair: pair[1]):
            same = [run for run, _ in stay]
            seconds = median(value_s(run, "median") or 0.0 for run in same)
            if seconds > 0:
                placements.append(_Timed(repeats, math.log(seconds), same[0].made_at, nodes, len(same)))
    return _with_repeats(placements)


def _nodes(run: RunResult) -> tuple[str, ...]:
    try:
        return tuple(sorted(expand(run.job.node_list))) if run.job else ()
    except ValueError:
        return ()


def _with_repeats(runs: Sequence[_Timed]) -> list[_Timed]:
    counts = _by_repeats(runs)
    return [run for run in runs if len(counts[run.repeats]) > 1]


def _by_repeats(runs: Sequence[_Timed]) -> dict[int, list[int]]:
    """Indexes of the runs, by set of repeats."""
    by_repeats: dict[int, list[int]] = {}
    for index, run in enumerate(runs):
        by_repeats.setdefault(run.repeats, []).append(index)
    return by_repeats


def _worst(runs: Sequence[_Timed]) -> tuple[NodeFinding | None, list[NodeFinding]]:
    """The node that is most certainly slow, or None; and the findings of all other nodes."""
    repeats = list(_by_repeats(runs).values())
    tests = list(_tests(runs, repeats))
    testable = [test for test in tests if min(len(test.members), len(test.others)) >= _LEAST_PLACEMENTS]
    chances = dict(zip((test.nodes for test in testable), _chances(testable, repeats, runs), strict=True))
    findings = [_finding(test, runs, chances[test.nodes][1] if test.nodes in chances else None) for test in tests]
    suspects = [finding for finding in findings if finding.state == "suspected"]
    worst = max(suspects, key=lambda finding: chances[finding.nodes][0], default=None)
    return worst, [finding for finding in findings if finding is not worst]


def _tests(runs: Sequence[_Timed], repeats: Sequence[Sequence[int]]) -> Iterator[_Test]:
    """One test for each set of nodes that always ran together, because no run can distinguish them."""
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
    """For each test: its deviation, and how often noise alone makes any test deviate as far.

    Stops early if that happens too often even for the largest deviation.
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
    """Distance of each value from the mean, in deviations; outliers are moved closer."""
    middle = median(values)
    width = max(_deviation(values), _FINEST)
    near = [max(-_FARTHEST, min(_FARTHEST, (value - middle) / width)) for value in values]
    return [score - fmean(near) for score in near]


def _deviation(values: Sequence[float]) -> float:
    """Standard deviation of a normal distribution with the same median of absolute deviations."""
    middle = median(values)
    return 1.4826 * median(abs(value - middle) for value in values)


def _width(test: _Test, repeats: Sequence[Sequence[int]], variances: Sequence[float]) -> float:
    """Deviation of the sum of its scores for times that are distributed at random; never 0."""
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
    """Difference of the medians with and without, in per cent, weighted by repeats; and the deviation without."""
    differences: list[tuple[float, float]] = []
    outside: list[float] = []
    for repeats in {runs[index].repeats for index in test.members}:
        having = [runs[index].value for index in test.members if runs[index].repeats == repeats]
        without = [runs[index].value for index in test.others if runs[index].repeats == repeats]
        usual = median(without)
        differences.append((len(having) * len(without) / (len(having) + len(without)), median(having) - usual))
        outside += [value - usual for value in without if len(without) > 1]
    if not differences:
        return None, None
    mean = sum(weight * difference for weight, difference in differences) / sum(weight for weight, _ in differences)
    return 100 * math.expm1(mean), 100 * _deviation(outside) if outside else None


def _is_apart_in_time(test: _Test, runs: Sequence[_Timed]) -> bool:
    """Whether no run with it lies between runs without it, or the reverse, in any of its sets of repeats."""
    for repeats in {runs[index].repeats for index in test.members}:
        inside = [runs[index].at for index in test.members if runs[index].repeats == repeats]
        outside = [runs[index].at for index in test.others if runs[index].repeats == repeats]
        if min(inside) <= max(outside) and min(outside) <= max(inside):
            return False
    return True
