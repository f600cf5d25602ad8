"""`list`, `plan` and `accuracy`: configurations, expected step times and errors of the estimate, without a cluster."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from io import TextIOWrapper
from typing import TYPE_CHECKING, TextIO

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cli.flags import selection_mapping
from llmb_tui.cli.output import json_line, print_status, print_streamed, write
from llmb_tui.cli.user import user_services
from llmb_tui.errors import LlmbError
from llmb_tui.plan import make
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.request import plan_line, plan_request
from llmb_tui.plan.resolved import selections
from llmb_tui.services import Services

if TYPE_CHECKING:
    from llmb_tui.plan.calibration import ClusterEstimate

_UTF_8 = "utf-8-sig"
"""UTF-8, also with the byte order mark that some editors write."""
_CACHED_LINES = 1 << 12
"""Number of lines whose answers are kept."""
_PROGRESS_AFTER_S = 1.0
"""Seconds after which a verb prints its progress."""


def list_verb(arguments: argparse.Namespace) -> int:
    """List the published configurations."""
    from llmb_tui.answers.published import published_answer

    catalog = user_services(arguments).catalog
    recipes = catalog.releases(arguments.workload.lower()) if arguments.workload else catalog.recipes
    plans = [make.plan(catalog, selection) for recipe in recipes for selection in selections(recipe)]
    write(published_answer(plans), arguments)
    return 0


def plan_verb(arguments: argparse.Namespace) -> int:
    """Print one plan from flags, or many from JSON lines."""
    services = user_services(arguments)
    catalog = services.catalog
    if arguments.source is not None:
        if arguments.layouts is not None or arguments.cluster is not None:
            fix = "Leave --from out to plan one selection."
            raise LlmbError("`plan --from` takes no --layouts or --cluster.", fix=fix, exit_code=1)
        if given := selection_mapping(arguments):
            flag = f"--{next(iter(given)).replace('_', '-')}"
            fix = f"Leave {flag} out, or write it into each line."
            raise LlmbError("`plan --from` takes no selection: each line has its own.", fix=fix, exit_code=1)
        return _print_plans(catalog, arguments.source)
    if arguments.layouts is not None and arguments.cluster is not None:
        fix = "Leave --cluster out: its runs are compared with one plan only."
        raise LlmbError("`plan --layouts` takes no --cluster.", fix=fix, exit_code=1)
    plan = plan_from_flags(services, arguments)
    if arguments.layouts is not None:
        from llmb_tui.answers.layouts import layouts_answer
        from llmb_tui.plan.layouts import layouts

        write(layouts_answer(plan, layouts(catalog, plan.selection, arguments.layouts)), arguments)
    else:
        from llmb_tui.answers.plan import plan_answer

        estimate = None if arguments.cluster is None else _cluster_estimate(services, arguments.cluster, plan)
        write(plan_answer(plan, arguments.cluster, estimate), arguments)
    for problem in plan.problems:
        if problem.severity == "error":
            print_status(f"llmb-tui: {problem.words}")
    return 0 if plan.launchable else 1


def _cluster_estimate(services: Services, cluster: str, plan: Plan) -> ClusterEstimate | None:
    """Estimate from the finished runs on a cluster. Raises `LlmbError` for an unknown cluster."""
    from llmb_tui.cluster.slurm.profile import LOCAL
    from llmb_tui.plan.calibration import measured_here

    results = services.local_results.of(cluster)
    if not results and cluster != LOCAL:
        services.clusters.profile(cluster)
    return measured_here(plan, results)


def plan_from_flags(services: Services, arguments: argparse.Namespace) -> Plan:
    """Plan of the selection flags. Raises `LlmbError` if they are not a selection."""
    return plan_request(services.catalog, selection_mapping(arguments))


def launchable_plan(services: Services, arguments: argparse.Namespace) -> Plan:
    """Plan of the selection flags. Raises `LlmbError` if it cannot be launched."""
    plan = plan_from_flags(services, arguments)
    errors = [problem for problem in plan.problems if problem.severity == "error"]
    if errors:
        reasons = "\n".join(problem.words for problem in errors)
        raise LlmbError("This selection cannot be launched.", reasons, exit_code=1)
    return plan


def _print_plans(catalog: Catalog, source: str) -> int:
    """Print the plan of each line. Equal lines are planned once: a list of jobs often repeats a configuration."""
    answer = lru_cache(maxsize=_CACHED_LINES)(lambda line: json_line(plan_line(catalog, line)))
    with _open(source) as lines:
        for line in lines:
            print_streamed(answer(line))
    return 0


def _open(source: str) -> AbstractContextManager[TextIO]:
    # An invalid byte makes only its own line unreadable.
    if source == "-":
        if sys.stdin is None:
            raise LlmbError("The lines cannot be read: stdin is closed.", fix="Send JSON lines to stdin.", exit_code=1)
        return nullcontext(TextIOWrapper(sys.stdin.buffer, encoding=_UTF_8, errors="replace"))
    try:
        return open(source, encoding=_UTF_8, errors="replace")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise LlmbError(f"{source} cannot be read: {why}.", fix="Name a file of JSON lines.", exit_code=1) from error


def accuracy_verb(arguments: argparse.Namespace) -> int:
    """Print leave-one-out errors of the estimate and of naive methods, with refits, which take a second or two."""
    from llmb_tui.answers.accuracy import accuracy_answer
    from llmb_tui.fit.accuracy import accuracy

    started = time.monotonic()

    def progress(case: str) -> None:
        if time.monotonic() - started > _PROGRESS_AFTER_S:
            print_status(f"accuracy: {case}")

    write(accuracy_answer(accuracy(user_services(arguments).catalog, progress)), arguments)
    return 0
