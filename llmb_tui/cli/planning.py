"""`list`, `plan` and `accuracy`: what can be run, how fast, and how good that estimate is, without a cluster."""

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
"""With the mark that some editors put before it."""
_ANSWERS = 1 << 12
"""So many different lines are remembered."""
_PATIENCE_S = 1.0
"""What takes longer says what it is doing."""


def list_verb(arguments: argparse.Namespace) -> int:
    """Every published configuration."""
    from llmb_tui.answers.published import published

    catalog = user_services(arguments).catalog
    recipes = catalog.releases(arguments.workload.lower()) if arguments.workload else catalog.recipes
    plans = [make.plan(catalog, selection) for recipe in recipes for selection in selections(recipe)]
    write(published(plans), arguments)
    return 0


def plan_verb(arguments: argparse.Namespace) -> int:
    """One plan from flags, or many from JSON lines."""
    services = user_services(arguments)
    catalog = services.catalog
    if arguments.source is not None:
        if arguments.layouts is not None or arguments.cluster is not None:
            raise LlmbError("--from goes with neither --layouts nor --cluster.", fix="Ask for one plan.", exit_code=1)
        if given := selection_mapping(arguments):
            flag = f"--{next(iter(given)).replace('_', '-')}"
            fix = f"Leave {flag} out, or write it into each line."
            raise LlmbError("--from goes with no selection: each line says its own.", fix=fix, exit_code=1)
        return _many(catalog, arguments.source)
    if arguments.layouts is not None and arguments.cluster is not None:
        fix = "Leave --cluster out: what it has measured is said of one plan."
        raise LlmbError("--layouts does not go with --cluster.", fix=fix, exit_code=1)
    plan = plan_of(services, arguments)
    if arguments.layouts is not None:
        from llmb_tui.answers.layouts import layouts_answer
        from llmb_tui.plan.layouts import layouts

        write(layouts_answer(plan, layouts(catalog, plan.selection, arguments.layouts)), arguments)
    else:
        from llmb_tui.answers.plan import plan_answer

        here = None if arguments.cluster is None else _measured_on(services, arguments.cluster, plan)
        write(plan_answer(plan, arguments.cluster, here), arguments)
    for problem in plan.problems:
        if problem.severity == "error":
            print_status(f"llmb-tui: {problem.words}")
    return 0 if plan.launchable else 1


def _measured_on(services: Services, cluster: str, plan: Plan) -> ClusterEstimate | None:
    """Raises `LlmbError` for a cluster that is not known."""
    from llmb_tui.cluster.slurm.profile import LOCAL
    from llmb_tui.plan.calibration import measured_here

    results = services.local_results.of(cluster)
    if not results and cluster != LOCAL:
        services.clusters.profile(cluster)
    return measured_here(plan, results)


def plan_of(services: Services, arguments: argparse.Namespace) -> Plan:
    """The plan of the selection flags. Raises `LlmbError` for what is no selection."""
    return plan_request(services.catalog, selection_mapping(arguments))


def launchable(services: Services, arguments: argparse.Namespace) -> Plan:
    """The plan of the selection flags. Raises `LlmbError` when it cannot be launched."""
    plan = plan_of(services, arguments)
    errors = [problem for problem in plan.problems if problem.severity == "error"]
    if errors:
        reasons = "\n".join(problem.words for problem in errors)
        raise LlmbError("This selection cannot be launched.", reasons, exit_code=1)
    return plan


def _many(catalog: Catalog, source: str) -> int:
    """Lines that are the same are planned once: a list of jobs often holds a configuration again and again."""
    answer = lru_cache(maxsize=_ANSWERS)(lambda line: json_line(plan_line(catalog, line)))
    with _open(source) as lines:
        for line in lines:
            print_streamed(answer(line))
    return 0


def _open(source: str) -> AbstractContextManager[TextIO]:
    # A byte that is no UTF-8 spoils its own line, not the thousands around it.
    if source == "-":
        if sys.stdin is None:
            raise LlmbError("There is nothing to read: stdin is closed.", fix="Send JSON lines to it.", exit_code=1)
        return nullcontext(TextIOWrapper(sys.stdin.buffer, encoding=_UTF_8, errors="replace"))
    try:
        return open(source, encoding=_UTF_8, errors="replace")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise LlmbError(f"{source} cannot be read: {why}.", fix="Name a file of JSON lines.", exit_code=1) from error


def accuracy_verb(arguments: argparse.Namespace) -> int:
    """Leave-one-out errors of the estimate and of naive ways, with refits; a second or two."""
    from llmb_tui.answers.accuracy import accuracy_answer
    from llmb_tui.fit.accuracy import accuracy

    began = time.monotonic()

    def progress(case: str) -> None:
        if time.monotonic() - began > _PATIENCE_S:
            print_status(f"accuracy: {case}")

    write(accuracy_answer(accuracy(user_services(arguments).catalog, progress)), arguments)
    return 0
