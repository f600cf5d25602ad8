"""The suites that come with the program, made of one selection. Pure.

A screen offers `SUITE_KINDS`, asks for a selection, and calls `ready_made`; how many GPUs the cluster's partition has
is `suite_plan.all_nodes` times the GPUs of a node. What came of one is `outcome.outcome_of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.errors import Trouble
from llmb_tui.plan.layouts import layouts
from llmb_tui.plan.make import plan
from llmb_tui.plan.resolved import resolve, selections
from llmb_tui.plan.selection import Overrides, ProcedureId, Selection
from llmb_tui.results.suite.suite import Suite, SuiteKind, make_suite
from llmb_tui.text import clean_line

REPEATS = 5
"""Runs of a `repeat`: with fewer the interval of the mean is wide (t is 2.78 for 5, 12.7 for 2)."""
LAYOUTS = 4
SHORT_STEPS = 25
"""Of the runs that a `tune` tries layouts by: 5 to warm up, 20 to compare."""
_PUBLISHED = ("published", "other_release")


def ready_made(  # noqa: PLR0913 - a suite's own choices
    kind: SuiteKind,
    catalog: Catalog,
    selection: Selection,
    cluster: str,
    procedure: ProcedureId,
    *,
    most_gpus: int | None = None,
    count: int | None = None,
    at_most: int | None = None,
    stop_after: int | None = None,
    shuffle: int | None = None,
) -> Suite:
    """One of these suites on a cluster with `most_gpus`; None: as large as published.

    `count`: repeats of each run, or of a `tune` the layouts that are tried. A scale in `selection` is not looked at
    where the suite has scales of its own, nor is size and precision in an acceptance. Raises Trouble (exit code 1)
    where nothing is left to run.
    """
    wanted: Sequence[Selection]
    if kind == "tune":
        wanted = _tune(catalog, selection, count or LAYOUTS)
    else:
        make = {"scaling": _scaling, "precision": _precision, "acceptance": _acceptance}.get(kind, _repeat)
        times = count or (REPEATS if kind == "repeat" else 1)
        wanted = [one for one in make(catalog, selection) for _ in range(times)]
    if most_gpus is not None:
        wanted = [one for one in wanted if one.scale <= most_gpus]
    if not wanted:
        raise _nothing(kind, selection, most_gpus)
    name = clean_line(f"{kind} {_about(kind, selection)}")
    runs = [(one, procedure) for one in wanted]
    return make_suite(name, cluster, runs, kind=kind, at_most=at_most, stop_after=stop_after, shuffle=shuffle)


def _scaling(catalog: Catalog, selection: Selection) -> Iterable[Selection]:
    """Every listed scale of the whole model; where there are only proxies, of which each is another model, none."""
    base = resolve(catalog, selection).base
    return [replace(selection, scale=gpus) for gpus, row in base.rows.items() if not row.proxy]


def _precision(catalog: Catalog, selection: Selection) -> Iterable[Selection]:
    recipe = catalog.recipe(selection.workload, selection.release)
    each = [replace(selection, dtype=dtype) for dtype in recipe.dtypes]
    return [one for one in each if plan(catalog, one).launchable]


def _repeat(_: Catalog, selection: Selection) -> Iterable[Selection]:
    return [selection]


def _acceptance(catalog: Catalog, selection: Selection) -> Iterable[Selection]:
    """Those of which a step time is published: no other could pass."""
    recipe = catalog.recipe(selection.workload, selection.release)
    mine = [one for one in selections(recipe) if one.gpu == selection.gpu]
    plans = [plan(catalog, replace(one, options=selection.options)) for one in mine]
    return [one.selection for one in plans if one.estimate and one.estimate.method in _PUBLISHED]


def _tune(catalog: Catalog, selection: Selection, count: int) -> Sequence[Selection]:
    """The fastest layouts in short runs, then the full run of the one that the model thinks best."""
    own = Overrides(seq_len=selection.overrides.seq_len, layers=selection.overrides.layers, gbs=selection.overrides.gbs)
    start = replace(selection, overrides=own)
    best = [replace(start, overrides=one.overrides) for one in layouts(catalog, start, count).best]
    usable = [one for one in best if plan(catalog, one).launchable]
    steps = min(SHORT_STEPS, plan(catalog, selection).steps)
    return [*(replace(one, steps=steps) for one in usable), *usable[:1]]


def _about(kind: SuiteKind, selection: Selection) -> str:
    recipe = f"{selection.workload}@{selection.release}"
    if kind == "acceptance":
        return f"{recipe} {selection.gpu}"
    words = [recipe, selection.size, selection.gpu]
    words += [] if kind == "precision" else [selection.dtype]
    return " ".join(words if kind == "scaling" else [*words, str(selection.scale)])


def _nothing(kind: SuiteKind, selection: Selection, most_gpus: int | None) -> Trouble:
    on = f" with at most {most_gpus:,} {selection.gpu.upper()}" if most_gpus is not None else ""
    return Trouble(
        f"There is nothing to run for {kind} {_about(kind, selection)}{on}.",
        "No published configuration is left."
        if kind in ("scaling", "acceptance")
        else "No configuration of it can be launched.",
        "Choose another size, GPU type or scale; `llmb-tui list` shows what is published.",
        exit_code=1,
    )
