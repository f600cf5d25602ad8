"""`plan_suite`: what a suite will be, before anything is sent: each row, its blockers, and the sums. Pure."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from llmb_tui.catalog.catalog import Catalog, Unknown
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.partition import Partition, parse_time
from llmb_tui.errors import Trouble
from llmb_tui.language.text import capital, plural
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.procedures import PROCEDURES, procedure_on
from llmb_tui.launch.readiness import CLUSTER, impossible
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Parallelism, Plan, Problem, error
from llmb_tui.request import RunRequest
from llmb_tui.suites.suite import Suite, SuiteRow


@dataclass(frozen=True, slots=True)
class Nodes:
    """Of the cluster's partition; None where nobody has asked, or it does not say."""

    free: int | None = None
    """Those that run nothing now."""
    all: int | None = None
    """Whatever their state: what a suite may ask for, today or tomorrow."""
    askable: bool = True
    """False: a cluster of this kind does not say."""


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One row, and what it will be."""

    row: SuiteRow
    plan: Plan
    blockers: tuple[Problem, ...]
    """Everything that stands against it, whatever the cluster says."""

    @property
    def most_s(self) -> float:
        """Its time limit in seconds."""
        return parse_time(self.plan.time_limit) or 0.0

    @property
    def most_gpu_hours(self) -> float:
        """What its time limit allows."""
        return self.plan.selection.scale * self.most_s / 3600

    @property
    def expected_s(self) -> float:
        """Seconds of its steps alone; without an estimate all that its time limit allows."""
        return self.plan.steps * self.plan.estimate.step_time_s if self.plan.estimate else self.most_s

    @property
    def notes(self) -> tuple[Problem, ...]:
        """What is to be known of it and does not stand against it."""
        return tuple(problem for problem in self.plan.problems if problem.severity != "error")


@dataclass(frozen=True)
class SuitePlan:
    """The table and its sums."""

    suite: Suite
    rows: tuple[PlannedRow, ...]
    free_nodes: int | None = None
    """Nodes of the partition that run nothing now; None where nobody has asked the cluster."""
    suite_blockers: tuple[Problem, ...] = ()
    """What stands against the suite and against no single row."""

    @cached_property
    def blockers(self) -> tuple[tuple[PlannedRow | None, Problem], ...]:
        """All that stands against it: a suite with one is not submitted at all. None: the suite's own."""
        own = [(None, problem) for problem in self.suite_blockers]
        return (*own, *((row, problem) for row in self.rows for problem in row.blockers))

    @cached_property
    def gpu_hours(self) -> float:
        """What one says yes to: the rows' expected GPU-hours; of one without an estimate what its time limit allows."""
        return sum(row.most_gpu_hours if row.plan.gpu_hours is None else row.plan.gpu_hours for row in self.rows)

    @cached_property
    def most_gpu_hours(self) -> float:
        """What the time limits allow in all."""
        return sum(row.most_gpu_hours for row in self.rows)

    @cached_property
    def without_estimate(self) -> int:
        """How many rows count by their time limit."""
        return sum(row.plan.gpu_hours is None for row in self.rows)

    @cached_property
    def serial_s(self) -> float:
        """Seconds of training if the rows ran one after the other; start-up and queue are not in it."""
        return sum(row.expected_s for row in self.rows)

    @cached_property
    def parallel_s(self) -> float | None:
        """The same if the free nodes were used, in the suite's order; None where too few are free or none are known."""
        return wall_s([(row.plan.nodes, row.expected_s) for row in self.rows], self.free_nodes, self.suite.at_a_time)


class SuiteNotReady(Trouble):
    """Rows may not start, so nothing is sent. Exit code 2 where checks of the cluster itself failed, else 1."""

    def __init__(self, suite: Suite, against: Iterable[tuple[SuiteRow | None, Problem]]) -> None:
        """`against`: what stands against which row; None: against the suite."""
        rows: dict[Problem, list[str]] = {}
        for row, problem in against:
            rows.setdefault(problem, []).append(row.key if row else suite.name)
        blocked = len(set(itertools.chain(*rows.values())) - {suite.name})
        count = f"{blocked} of {plural(len(suite.rows), 'run')} cannot start"
        super().__init__(
            f"{suite.name} is not submitted: {count if blocked else 'it cannot be sent in this way'}.",
            "\n".join(f"{', '.join(keys)}: {problem.reason}" for problem, keys in rows.items()),
            "\n".join(dict.fromkeys(problem.fix for problem in rows if problem.fix)),
            exit_code=2 if any(problem.field == CLUSTER for problem in rows) else 1,
        )


def plan_suite(
    suite: Suite, catalog: Catalog, profile: ClusterProfile | None, policy: Policy, free_nodes: int | None = None
) -> SuitePlan:
    """What it will be on the cluster of `profile`; None: that is saved no more, and only the plans are looked at.

    Of a recipe, size or GPU type that no preset has any more nothing is planned, which is a blocker of its row.
    """
    rows = tuple(_planned(row, catalog, profile, policy) for row in suite.rows)
    return SuitePlan(suite, rows, free_nodes, tuple(_suite_blockers(suite, profile)))


def request_of(row: SuiteRow, catalog: Catalog, profile: ClusterProfile) -> RunRequest:
    """What is asked for by a row. Raises `Unknown` for a recipe, size or GPU type of no preset."""
    selection = row.selection
    recipe = catalog.recipe(selection.workload, selection.release)
    return RunRequest(recipe, plan(catalog, selection), profile, procedure_on(profile, row.procedure))


def nodes_of(partitions: Iterable[Partition], profile: ClusterProfile) -> Nodes:
    """Those of the profile's partition; of several partitions the most. Nothing where the cluster does not show it."""
    own = [part for part in partitions if part.name in profile.partitions]
    free, every = ([part.idle_nodes for part in own], [part.training_nodes for part in own])
    return Nodes(max(free, default=None), max(every, default=None))


def wall_s(jobs: Sequence[tuple[int, float]], nodes: int | None, at_most: int | None = None) -> float | None:
    """Seconds until the last of these jobs (nodes, seconds) has ended, started in this order on so many nodes.

    None where a job needs more nodes than there are, or that number is not known.
    """
    if nodes is None or any(needed > nodes for needed, _ in jobs):
        return None
    running: list[tuple[float, int]] = []
    now, free = 0.0, nodes
    for needed, seconds in jobs:
        while needed > free or (at_most is not None and len(running) >= at_most):
            now, back = heapq.heappop(running)
            free += back
        heapq.heappush(running, (now + seconds, needed))
        free -= needed
    return max((end for end, _ in running), default=0.0)


def _planned(row: SuiteRow, catalog: Catalog, profile: ClusterProfile | None, policy: Policy) -> PlannedRow:
    try:
        if profile is not None:
            request = request_of(row, catalog, profile)
            return PlannedRow(row, request.plan, impossible(request, policy))
        made = plan(catalog, row.selection)
    except Unknown as unknown:
        made = _nothing(row, error(unknown.field, f"{capital(unknown.what)}.", unknown.why))
    return PlannedRow(row, made, tuple(problem for problem in made.problems if problem.severity == "error"))


def _nothing(row: SuiteRow, problem: Problem) -> Plan:
    """The plan of a row of which nothing is known any more."""
    layout = Parallelism(1, 1, 1, 1, None, None, 1, 1, None, 1, 1)
    return Plan(
        row.selection, "weak", 0, 0, layout, None, None, None, None, None, None, 0, "00:00:00", None, (problem,)
    )


def _suite_blockers(suite: Suite, profile: ClusterProfile | None) -> Iterable[Problem]:
    if suite.kind == "tune" and all(row.of_best for row in suite.rows):
        reason = "Without a short run no layout is found to be the best, and the full run would never be sent."
        yield error("kind", reason, "Put a short run back, or submit a single run.")
    if not suite.chain or profile is None:
        return
    used = {procedure_on(profile, row.procedure) for row in suite.rows}
    others = [name for name in used if not PROCEDURES[name].writes_dependency]
    if others:
        writers = " and ".join(facts.title for facts in PROCEDURES.values() if facts.writes_dependency)
        reason = (
            f"A chain is kept by a dependency in the batch script, and only the {writers} writes one; "
            f"here are rows by: {', '.join(sorted(others))}."
        )
        fix = "Leave `chain` out and set `at_most = 1`: the program then sends each when the one before has ended."
        yield error("chain", reason, fix)
    if suite.stop_after is not None and suite.stop_after > 1:
        reason = "The jobs of a chain are all in the queue at once, and Slurm ends it at the first failure or at none."
        yield error("chain", reason, "Set `stop_after` to 1, or leave it out.")
    if suite.kind == "tune":
        reason = "Which layout the last run takes is known when the others are over, and not when a chain is sent."
        yield error("chain", reason, "Leave `chain` out.")
