"""`list` and `plan`: what can be run and how fast, without a cluster."""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from io import TextIOWrapper
from typing import TextIO

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.cli.arguments import selection_mapping
from llmb_tui.cli.output import print_json, print_line, print_table
from llmb_tui.cli.user import user_services
from llmb_tui.errors import Trouble
from llmb_tui.plan.calibration import MeasuredHere, measured_here
from llmb_tui.plan.document import document
from llmb_tui.plan.listing import listed
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.services import Services


def list_verb(arguments: argparse.Namespace) -> int:
    """Every published configuration."""
    catalog = user_services().catalog()
    recipes = [catalog.recipe(arguments.workload)] if arguments.workload else catalog.recipes
    made = [plan(catalog, selection) for recipe in recipes for selection in listed(recipe)]
    if arguments.json:
        print_json([document(one) for one in made])
    else:
        print_table(("workload", "size", "GPU", "dtype", "GPUs", "scaling", "step s", "from"), map(_list_row, made))
    return 0


def plan_verb(arguments: argparse.Namespace) -> int:
    """One plan from flags, or many from JSON lines."""
    services = user_services()
    catalog = services.catalog()
    if arguments.source is not None:
        if arguments.layouts is not None or arguments.cluster is not None:
            raise Trouble("--from goes with neither --layouts nor --cluster.", fix="Ask for one plan.", exit_code=1)
        return _many(catalog, arguments.source)
    from llmb_tui.plan.request import read_request

    made = plan(catalog, read_request(catalog, selection_mapping(arguments)))
    if arguments.layouts is not None:
        from llmb_tui.cli.layouts import print_layouts
        from llmb_tui.plan.layouts import layouts

        print_layouts(made, layouts(catalog, made.selection, arguments.layouts), as_json=arguments.json)
    else:
        _print_one(services, made, arguments)
    for problem in made.problems:
        if problem.severity == "error":
            print(f"llmb-tui: {problem.field}: {problem.reason}\n{problem.fix}", file=sys.stderr)
    return 0 if made.launchable else 1


def _print_one(services: Services, made: Plan, arguments: argparse.Namespace) -> None:
    """One plan, and what a cluster's own runs say about it where one is named."""
    here = None if arguments.cluster is None else _measured_on(services, arguments.cluster, made)
    if arguments.json:
        print_json(document(made) | ({} if arguments.cluster is None else {"measured_here": here and asdict(here)}))
        return
    print_plan(made)
    if here is not None:
        band = f"({here.low_s:.4g} to {here.high_s:.4g})"
        print_line(f"here       {here.step_time_s:.4g} s  {band}, measured here: {here.basis}")
    elif arguments.cluster is not None:
        print_line(f"here       nothing was measured on {arguments.cluster} that says something about this")


def _measured_on(services: Services, cluster: str, made: Plan) -> MeasuredHere | None:
    """Raises `Trouble` for a cluster that is not known."""
    from llmb_tui.cluster.local_profile import NAME

    results = services.own_results(cluster)
    if not results and cluster != NAME:
        services.profile(cluster)
    return measured_here(made, results)


def launchable(services: Services, arguments: argparse.Namespace) -> Plan:
    """The plan of the selection flags. Raises `Trouble` when it cannot be launched."""
    from llmb_tui.plan.request import read_request

    made = plan(services.catalog(), read_request(services.catalog(), selection_mapping(arguments)))
    errors = [problem for problem in made.problems if problem.severity == "error"]
    if errors:
        reasons = "\n".join(f"{e.field}: {e.reason} {e.fix}".rstrip() for e in errors)
        raise Trouble("This selection cannot be launched.", reasons, exit_code=1)
    return made


def _many(catalog: Catalog, source: str) -> int:
    from llmb_tui.plan.request import plan_lines

    with _open(source) as lines:
        for answer in plan_lines(catalog, lines):
            print_json(answer)
    return 0


def _open(source: str) -> AbstractContextManager[TextIO]:
    # A byte that is no UTF-8 spoils its own line, not the thousands around it.
    if source == "-":
        return nullcontext(TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace"))
    try:
        return open(source, encoding="utf-8", errors="replace")
    except OSError as error:
        raise Trouble(
            f"{source} cannot be read: {error.strerror}.", fix="Name a file of JSON lines.", exit_code=1
        ) from error


def _list_row(made: Plan) -> tuple[str, ...]:
    chosen, estimate = made.selection, made.estimate
    return (
        f"{chosen.workload}@{chosen.release}",
        chosen.size,
        chosen.gpu,
        chosen.dtype,
        str(chosen.scale),
        made.scaling,
        f"{estimate.step_time_s:.3g}" if estimate else "–",
        estimate.method.replace("_", " ") if estimate else "no number",
    )


def print_plan(made: Plan) -> None:
    """A plan for a person: what will run, how fast, and what stands in the way."""
    chosen, layout = made.selection, made.parallelism
    print(
        f"{chosen.workload}@{chosen.release} {chosen.size} · {chosen.gpu.upper()} · {chosen.dtype} · "
        f"{chosen.scale} GPUs ({made.nodes} × {made.gpus_per_node}) · {made.scaling} scaling"
    )
    names = ("TP", "PP", "CP", "EP", "DP", "VP", "MBS", "GBS", "GA", "seq", "layers")
    values = (layout.tp, layout.pp, layout.cp, layout.ep, layout.dp, layout.vp, layout.mbs, layout.gbs, layout.ga,
              layout.seq_len, layout.layers)  # fmt: skip
    print("  ".join(f"{name} {'–' if value is None else value}" for name, value in zip(names, values, strict=True)))
    if made.estimate is not None:
        e = made.estimate
        method = e.method.replace("_", " ") + (f", {e.basis}" if e.method == "modelled" else "")
        print(f"step time  {e.step_time_s:.4g} s  ({e.low_s:.4g} to {e.high_s:.4g}), {method}: {e.anchor}")
        print(f"tokens/s   {e.tokens_per_s:,.0f}")
        print(f"MFU        {e.mfu_pct:.2f} % of {e.peak_tflops:g} TFLOPS, {e.flops_formula}")
        if e.days_per_1t_tokens is not None:
            print(f"1T tokens  {e.days_per_1t_tokens:.2f} days")
    if made.memory is not None:
        m = made.memory
        print(f"memory     {m.peak_gb:.1f} of {m.capacity_gb:g} GB, {m.state_gb:.1f} of it for the state: {m.verdict}")
    if made.gpu_hours is not None:
        print(f"this run   {made.gpu_hours:.1f} GPU-hours for {made.steps} steps, and start-up")
    for problem in made.problems:
        if problem.severity != "error":
            print(f"{problem.severity}: {problem.reason}" + (f" {problem.fix}" if problem.fix else ""))
