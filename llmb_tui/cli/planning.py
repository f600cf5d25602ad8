"""`list`, `plan` and `accuracy`: what can be run, how fast, and how good that estimate is, without a cluster."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from functools import lru_cache
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cli.flags import selection_mapping
from llmb_tui.cli.output import json_line, print_json, print_line, print_streamed, print_table, say
from llmb_tui.cli.user import user_services
from llmb_tui.cluster.slurm.profile import LOCAL
from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import (
    count,
    days,
    gigabytes,
    given,
    gpu_hours,
    percent,
    percent_digits,
    step_time,
    step_time_digits,
    step_time_range,
    tokens_per_s,
)
from llmb_tui.language.states import method_word, severity_label
from llmb_tui.plan import make
from llmb_tui.plan.document import document
from llmb_tui.plan.plan import Plan, expected_step_time
from llmb_tui.plan.request import plan_line, plan_request
from llmb_tui.plan.resolved import selections
from llmb_tui.plan.selection import FIELDS, Selection
from llmb_tui.services import Services

if TYPE_CHECKING:
    from llmb_tui.plan.calibration import MeasuredHere
    from llmb_tui.plan.layouts import Layout, Layouts

_LAYOUT = ("TP", "PP", "CP", "EP", "DP", "VP", "MBS", "GA", "step s", "low", "high", "memory", "verdict", "marks")
_ACCURACY = ("case", "way", "rows", "mean %", "p90 %", "worst %", "in band %")
_UTF_8 = "utf-8-sig"
"""With the mark that some editors put before it."""
_ANSWERS = 1 << 12
"""So many different lines are remembered."""
_PATIENCE_S = 1.0
"""What takes longer says what it is doing."""


def list_verb(arguments: argparse.Namespace) -> int:
    """Every published configuration."""
    catalog = user_services(arguments).catalog
    recipes = catalog.releases(arguments.workload.lower()) if arguments.workload else catalog.recipes
    plans = [make.plan(catalog, selection) for recipe in recipes for selection in selections(recipe)]
    if arguments.json:
        print_json([document(plan) for plan in plans])
    else:
        print_table(("workload", "size", "GPU", "dtype", "GPUs", "scaling", "step s", "from"), map(_list_row, plans))
    return 0


def plan_verb(arguments: argparse.Namespace) -> int:
    """One plan from flags, or many from JSON lines."""
    services = user_services(arguments)
    catalog = services.catalog
    if arguments.source is not None:
        if arguments.layouts is not None or arguments.cluster is not None:
            raise Trouble("--from goes with neither --layouts nor --cluster.", fix="Ask for one plan.", exit_code=1)
        if given := selection_mapping(arguments):
            flag = f"--{next(iter(given)).replace('_', '-')}"
            fix = f"Leave {flag} out, or write it into each line."
            raise Trouble("--from goes with no selection: each line says its own.", fix=fix, exit_code=1)
        return _many(catalog, arguments.source)
    if arguments.layouts is not None and arguments.cluster is not None:
        fix = "Leave --cluster out: what it has measured is said of one plan."
        raise Trouble("--layouts does not go with --cluster.", fix=fix, exit_code=1)
    plan = plan_of(services, arguments)
    if arguments.layouts is not None:
        from llmb_tui.plan.layouts import layouts

        print_layouts(plan, layouts(catalog, plan.selection, arguments.layouts), as_json=arguments.json)
    else:
        _print_one(services, plan, arguments)
    for problem in plan.problems:
        if problem.severity == "error":
            say(f"llmb-tui: {problem.field}: {problem.reason}\n{problem.fix}")
    return 0 if plan.launchable else 1


def _print_one(services: Services, plan: Plan, arguments: argparse.Namespace) -> None:
    """One plan, and what a cluster's own runs say about it where one is named."""
    local = None if arguments.cluster is None else _measured_on(services, arguments.cluster, plan)
    if arguments.json:
        print_json(document(plan) | ({} if arguments.cluster is None else {"measured_here": local and asdict(local)}))
        return
    print_plan(plan)
    if local is not None:
        band = step_time_range(local.low_s, local.high_s)
        print_line(f"here       {step_time(local.step_time_s)}  ({band}), {local.label}: {local.basis}")
    elif arguments.cluster is not None:
        print_line(f"here       nothing was measured on {arguments.cluster} that says something about this")


def _measured_on(services: Services, cluster: str, plan: Plan) -> MeasuredHere | None:
    """Raises `Trouble` for a cluster that is not known."""
    results = services.local_results.of(cluster)
    if not results and cluster != LOCAL:
        services.clusters.profile(cluster)
    from llmb_tui.plan.calibration import measured_here

    return measured_here(plan, results)


def plan_of(services: Services, arguments: argparse.Namespace) -> Plan:
    """The plan of the selection flags. Raises `Trouble` for what is no selection."""
    return plan_request(services.catalog, selection_mapping(arguments))


def launchable(services: Services, arguments: argparse.Namespace) -> Plan:
    """The plan of the selection flags. Raises `Trouble` when it cannot be launched."""
    plan = plan_of(services, arguments)
    errors = [problem for problem in plan.problems if problem.severity == "error"]
    if errors:
        reasons = "\n".join(f"{e.field}: {e.reason} {e.fix}".rstrip() for e in errors)
        raise Trouble("This selection cannot be launched.", reasons, exit_code=1)
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
            raise Trouble("There is nothing to read: stdin is closed.", fix="Send JSON lines to it.", exit_code=1)
        return nullcontext(TextIOWrapper(sys.stdin.buffer, encoding=_UTF_8, errors="replace"))
    try:
        return open(source, encoding=_UTF_8, errors="replace")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Trouble(f"{source} cannot be read: {why}.", fix="Name a file of JSON lines.", exit_code=1) from error


def _list_row(plan: Plan) -> tuple[str, ...]:
    selection, estimate = plan.selection, plan.estimate
    return (
        selection.recipe_id,
        selection.size,
        selection.gpu,
        selection.dtype,
        str(selection.scale),
        plan.scaling,
        expected_step_time(estimate.method)(estimate.step_time_s) if estimate else "–",
        method_word(estimate.method) if estimate else "no number",
    )


def _words(selection: Selection) -> str:
    gpus = f"{count(selection.scale)} GPUs"
    return f"{selection.recipe_id} {selection.size} · {selection.gpu.upper()} · {selection.dtype} · {gpus}"


def print_plan(plan: Plan) -> None:
    """A plan for a person: what will run, how fast, and what stands in the way."""
    print_line(f"{_words(plan.selection)} ({plan.nodes} × {plan.gpus_per_node}) · {plan.scaling} scaling")
    cells = (
        f"{FIELDS[name].label if name in FIELDS else name.upper()} {'–' if value is None else value}"
        for name, value in asdict(plan.parallelism).items()
    )
    print_line("  ".join(cells))
    if plan.estimate is not None:
        e = plan.estimate
        method = method_word(e.method) + (f", {e.basis}" if e.method == "modelled" else "")
        print_line(f"step time  {e.step_time_text}  ({step_time_range(e.low_s, e.high_s)}), {method}: {e.anchor}")
        print_line(f"tokens/s   {tokens_per_s(e.tokens_per_s)}")
        print_line(f"MFU        {percent(e.mfu_pct)} of {given(e.peak_tflops)} TFLOPS, {e.flops_formula}")
        if e.days_per_1t_tokens is not None:
            print_line(f"1T tokens  {days(e.days_per_1t_tokens)}")
    if plan.memory is not None:
        m = plan.memory
        print_line(
            f"memory     {gigabytes(m.peak_gb)} of {gigabytes(m.capacity_gb)}, {gigabytes(m.state_gb)} of it for the "
            f"state: {m.verdict}"
        )
    if plan.gpu_hours is not None:
        print_line(f"this run   {gpu_hours(plan.gpu_hours)} for {plan.steps} steps, and start-up")
    for problem in plan.problems:
        if problem.severity != "error":
            print_line(
                f"{severity_label(problem.severity).word}: {problem.reason}"
                + (f" {problem.fix}" if problem.fix else "")
            )


def print_layouts(plan: Plan, ranking: Layouts, *, as_json: bool) -> None:
    """The ranking: a table with a line above and below it, or one JSON document."""
    if as_json:
        best = [_layout_document(plan, layout) for layout in ranking.best]
        print_json({"selection": document(plan)["selection"], "valid": ranking.valid, "layouts": best})
        return
    runs = plan.parallelism
    print_line(f"{_words(plan.selection)} · GBS {runs.gbs}, sequence {runs.seq_len}, {runs.layers} layers")
    if ranking.best:
        print_table(_LAYOUT, map(_layout_row, ranking.best))
    print_line(
        f"{len(ranking.best)} of {count(ranking.valid)} valid layouts. Two whose bands overlap are equally fast as far "
        f"as is known; a layout that was never tuned can be slower than its band."
    )


def _layout_document(plan: Plan, layout: Layout) -> dict[str, Any]:
    parts = document(replace(plan, parallelism=layout.parallelism, estimate=layout.estimate, memory=layout.memory))
    return {
        "overrides": layout.overrides.set_fields(),
        **{name: parts[name] for name in ("parallelism", "estimate", "memory")},
        "published": layout.published,
        "unusual": list(layout.unusual),
    }


def _layout_row(layout: Layout) -> tuple[str, ...]:
    runs, estimate, memory = layout.parallelism, layout.estimate, layout.memory
    numbers = (runs.tp, runs.pp, runs.cp, runs.ep, runs.dp, runs.vp, runs.mbs, runs.ga)
    times = ["–"] * 3
    if estimate is not None:
        expected = expected_step_time(estimate.method)(estimate.step_time_s)
        times = [expected, step_time_digits(estimate.low_s), step_time_digits(estimate.high_s)]
    return (
        *("–" if number is None else str(number) for number in numbers),
        *times,
        gigabytes(memory.peak_gb) if memory else "–",
        memory.verdict if memory else "–",
        " ".join([*(["published"] if layout.published else []), *layout.unusual]),
    )


def accuracy_verb(arguments: argparse.Namespace) -> int:
    """Leave-one-out errors of the estimate and of naive ways, with refits; a second or two."""
    from llmb_tui.fit.accuracy import accuracy

    began = time.monotonic()

    def progress(case: str) -> None:
        if time.monotonic() - began > _PATIENCE_S:
            say(f"accuracy: {case}")

    cases = accuracy(user_services(arguments).catalog, progress)
    if arguments.json:
        print_json(cases)
        return 0
    print_line("Absolute error of step times that were left out, also of the fit, in per cent of the published ones.")
    print_table(_ACCURACY, [line for case, numbers in cases.items() for line in _accuracy_lines(case, numbers)])
    print_line("With experts nothing is left to estimate from when a size or a recipe is out: those rows are refused.")
    return 0


def _accuracy_lines(case: str, numbers: dict[str, Any]) -> list[tuple[str, ...]]:
    """The estimate's line, and one for each naive way."""
    name = case.replace("_", " ")
    first = (name, "estimate", *_figures(numbers), percent_digits(numbers["coverage_pct"]))
    return [first, *(("", way.replace("_", " "), *_figures(one), "") for way, one in numbers["baselines"].items())]


def _figures(numbers: dict[str, Any]) -> tuple[str, ...]:
    return (str(numbers["n"]), *(percent_digits(numbers[key]) for key in ("mean_pct", "p90_pct", "worst_pct")))
