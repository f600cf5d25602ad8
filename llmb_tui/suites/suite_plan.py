"""`plan_suite`: preview of a suite before its submission: each row, its blockers, and the sums. Pure."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from llmb_tui.catalog.catalog import Catalog, UnknownNameError
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.slurm.partition import Partition, parse_time
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import capital, plural
from llmb_tui.launch.policy import Policy
from llmb_tui.launch.procedures import PROCEDURES, procedure_on
from llmb_tui.launch.readiness import CLUSTER, request_problems
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Parallelism, Plan, Problem, error
from llmb_tui.request import RunRequest
from llmb_tui.suites.suite import Suite, SuiteRow


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of the cluster's partition; None if the cluster was not asked, or does not report them."""

    free: int | None = None
    """Idle nodes."""
    all: int | None = None
    """All nodes, whatever their state: the limit for a suite, now or later."""
    askable: bool = True
    """False for a kind of cluster that does not report nodes."""


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """One row with its plan."""

    row: SuiteRow
    plan: Plan
    blockers: tuple[Problem, ...]
    """All reasons against its submission, independent of the cluster's state."""

    @property
    def most_s(self) -> float:
        """Its time limit in seconds."""
        return parse_time(self.plan.time_limit) or 0.0

    @property
    def most_gpu_hours(self) -> float:
        """GPU-hours that its time limit allows."""
        return self.plan.selection.scale * self.most_s / 3600

    @property
    def expected_s(self) -> float:
        """Seconds of its steps alone; without an estimate, its time limit."""
        return self.plan.steps * self.plan.estimate.step_time_s if self.plan.estimate else self.most_s

    @property
    def notes(self) -> tuple[Problem, ...]:
        """Notes and warnings that do not block it."""
        return tuple(problem for problem in self.plan.problems if problem.severity != "error")


@dataclass(frozen=True)
class SuitePlan:
    """All rows with their sums."""

    suite: Suite
    rows: tuple[PlannedRow, ...]
    free_nodes: int | None = None
    """Idle nodes of the partition; None if the cluster was not asked."""
    suite_blockers: tuple[Problem, ...] = ()
    """Blockers of the suite that belong to no single row."""

    @cached_property
    def blockers(self) -> tuple[tuple[PlannedRow | None, Problem], ...]:
        """All blockers: a suite with one is not submitted at all. None as row: the suite's own."""
        own = [(None, problem) for problem in self.suite_blockers]
        return (*own, *((row, problem) for row in self.rows for problem in row.blockers))

    @cached_property
    def gpu_hours(self) -> float:
        """GPU-hours to confirm: the expected ones; for a row without an estimate, those of its time limit."""
        return sum(row.most_gpu_hours if row.plan.gpu_hours is None else row.plan.gpu_hours for row in self.rows)

    @cached_property
    def most_gpu_hours(self) -> float:
        """GPU-hours that all time limits allow together."""
        return sum(row.most_gpu_hours for row in self.rows)

    @cached_property
    def without_estimate(self) -> int:
        """Number of rows that count by their time limit."""
        return sum(row.plan.gpu_hours is None for row in self.rows)

    @cached_property
    def serial_s(self) -> float:
        """Seconds of training if the rows ran one after the other, without start-up and queue."""
        return sum(row.expected_s for row in self.rows)

    @cached_property
    def parallel_s(self) -> float | None:
        """The same if the free nodes were used, in the suite's order; None if they are too few or unknown."""
        return wall_s([(row.plan.nodes, row.expected_s) for row in self.rows], self.free_nodes, self.suite.at_a_time)


class SuiteNotReadyError(LlmbError):
    """Rows may not start, so nothing is submitted. Exit code 2 if checks of the cluster itself failed, otherwise 1."""

    def __init__(self, suite: Suite, against: Iterable[tuple[SuiteRow | None, Problem]]) -> None:
        """`against`: blockers with their rows; None: of the suite."""
        rows: dict[Problem, list[str]] = {}
        for row, problem in against:
            rows.setdefault(problem, []).append(row.key if row else suite.name)
        blocked = len(set(itertools.chain(*rows.values())) - {suite.name})
        count = f"{blocked} of {plural(len(suite.rows), 'run')} cannot start"
        super().__init__(
            f"{suite.name} is not submitted: {count if blocked else 'it cannot be submitted in this way'}.",
            "\n".join(f"{', '.join(keys)}: {problem.reason}" for problem, keys in rows.items()),
            "\n".join(dict.fromkeys(problem.fix for problem in rows if problem.fix)),
            exit_code=2 if any(problem.field == CLUSTER for problem in rows) else 1,
        )


def plan_suite(
    suite: Suite, catalog: Catalog, profile: ClusterProfile | None, policy: Policy, free_nodes: int | None = None
) -> SuitePlan:
    """Preview of a suite on the cluster of `profile`; None: the cluster is no longer saved, and only plans are made.

    A recipe, size or GPU type that no preset has any more cannot be planned, which is a blocker of its row.
    """
    rows = tuple(_planned(row, catalog, profile, policy) for row in suite.rows)
    return SuitePlan(suite, rows, free_nodes, tuple(_suite_blockers(suite, profile)))


def request_of(row: SuiteRow, catalog: Catalog, profile: ClusterProfile) -> RunRequest:
    """Request of a row. Raises `UnknownNameError` for a recipe, size or GPU type that no preset has."""
    selection = row.selection
    recipe = catalog.recipe(selection.workload, selection.release)
    return RunRequest(recipe, plan(catalog, selection), profile, procedure_on(profile, row.procedure))


def nodes_of(partitions: Iterable[Partition], profile: ClusterProfile) -> Nodes:
    """Nodes of the profile's partition; of several, or if it names none, the largest. Empty if none is shown."""
    own = [part for part in partitions if part.name in profile.partitions or not profile.partitions]
    idle, total = ([part.idle_nodes for part in own], [part.training_nodes for part in own])
    return Nodes(max(idle, default=None), max(total, default=None))


def wall_s(jobs: Sequence[tuple[int, float]], nodes: int | None, at_most: int | None = None) -> float | None:
    """Seconds until the last of these jobs (nodes, seconds) has ended, started in this order on `nodes` nodes.

    None if a job needs more nodes than there are, or if their number is unknown.
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
            return PlannedRow(row, request.plan, request_problems(request, policy))
        made = plan(catalog, row.selection)
    except UnknownNameError as unknown:
        made = _nothing(row, error(unknown.field, f"{capital(unknown.what)}.", unknown.why))
    return PlannedRow(row, made, tuple(problem for problem in made.problems if problem.severity == "error"))


def _nothing(row: SuiteRow, problem: Problem) -> Plan:
    """Empty plan for a row that cannot be planned any more."""
    layout = Parallelism(1, 1, 1, 1, None, None, 1, 1, None, 1, 1)
    return Plan(
        row.selection, "weak", 0, 0, layout, None, None, None, None, None, None, 0, "00:00:00", None, (problem,)
    )


def _suite_blockers(suite: Suite, profile: ClusterProfile | None) -> Iterable[Problem]:
    if suite.kind == "tune" and all(row.of_best for row in suite.rows):
        reason = "Without a short run no best layout is found, and the full run would never be submitted."
        yield error("kind", reason, "Include a short run, or submit a single run.")
    if not suite.chain or profile is None:
        return
    used = {procedure_on(profile, row.procedure) for row in suite.rows}
    others = [name for name in used if not PROCEDURES[name].writes_dependency]
    if others:
        writers = " and ".join(facts.title for facts in PROCEDURES.values() if facts.writes_dependency)
        reason = (
            f"A chain needs a dependency in the batch script, and only the {writers} writes one; "
            f"this suite has rows with: {', '.join(sorted(others))}."
        )
        fix = "Remove `chain` and set `at_most = 1`: the program then submits each run when the previous one has ended."
        yield error("chain", reason, fix)
    if suite.stop_after is not None and suite.stop_after > 1:
        reason = (
            "All jobs of a chain are in the queue at once, and Slurm can only end it at the first failure or never."
        )
        yield error("chain", reason, "Set `stop_after` to 1, or remove it.")
    if suite.kind == "tune":
        reason = (
            "The layout of the last run is only known when the others have ended, but a chain is submitted at once."
        )
        yield error("chain", reason, "Remove `chain`.")
