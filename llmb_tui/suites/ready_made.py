"""The suites that come with the program, made of one selection. Pure."""

from __future__ import annotations

from dataclasses import replace

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.errors import Trouble
from llmb_tui.language.labels import gpus_label
from llmb_tui.language.text import clean_line, plural
from llmb_tui.plan.layouts import layouts
from llmb_tui.plan.make import plan
from llmb_tui.plan.resolved import resolve, selections
from llmb_tui.plan.selection import Overrides, Selection
from llmb_tui.suites.suite import MOST_RUNS, SuiteKind
from llmb_tui.suites.suite_plan import Nodes

REPEATS = 5
"""Runs of a `repeat`: with fewer the interval of the mean is wide (t is 2.78 for 5, 12.7 for 2)."""
LAYOUTS = 4
SHORT_STEPS = 25
"""Of the runs that a `tune` tries layouts by: 5 to warm up, 20 to compare."""
_PUBLISHED = ("published", "other_release")


def most_gpus(catalog: Catalog, selection: Selection, nodes: Nodes) -> int | None:
    """How many GPUs these nodes have; None where that is not known."""
    gpus = catalog.recipe(selection.workload, selection.release).gpus.get(selection.gpu)
    return nodes.all * gpus.gpus_per_node if nodes.all is not None and gpus is not None else None


def ready_made(
    kind: SuiteKind, catalog: Catalog, selection: Selection, most: int | None = None, count: int | None = None
) -> tuple[str, list[Selection]]:
    """Name and runs of one of these suites on a cluster with at most so many GPUs; None: as large as published.

    `count`: repeats of each run, or of a `tune` the layouts that are tried. A scale in `selection` is not looked at
    where the suite has scales of its own, nor are size, precision and layout in an acceptance. Raises Trouble (exit
    code 1) where nothing is left to run, or more than anybody means.
    """
    each = {
        "tune": lambda: _tune(catalog, selection, count or LAYOUTS),
        "repeat": lambda: [selection],
        "scaling": lambda: _scaling(catalog, selection),
        "precision": lambda: _precision(catalog, selection),
        "acceptance": lambda: _acceptance(catalog, selection),
    }[kind]()
    each = [one for one in each if most is None or one.scale <= most]
    times = 1 if kind == "tune" else count or (REPEATS if kind == "repeat" else 1)
    if (runs := len(each) * times) > MOST_RUNS:
        what, why = f"These are {plural(runs, 'run')}.", f"A suite has at most {plural(MOST_RUNS, 'run')}."
        raise Trouble(what, why, "Repeat each less often.", exit_code=1)
    wanted = [one for one in each for _ in range(times)]
    name = clean_line(f"{kind} {_about(kind, selection)}")
    if not wanted:
        on = f" with at most {gpus_label(most, selection.gpu)}" if most is not None else ""
        published = kind in ("scaling", "acceptance")
        why = "No published configuration is left." if published else "No configuration of it can be launched."
        fix = "Choose another size, GPU type or scale; `llmb-tui list` shows what is published."
        raise Trouble(f"There is nothing to run for {name}{on}.", why, fix, exit_code=1)
    return name, wanted


def _scaling(catalog: Catalog, selection: Selection) -> list[Selection]:
    """Every listed scale of the whole model; where there are only proxies, of which each is another model, none."""
    base = resolve(catalog, selection).base
    return [replace(selection, scale=gpus) for gpus, row in base.rows.items() if not row.proxy]


def _precision(catalog: Catalog, selection: Selection) -> list[Selection]:
    recipe = catalog.recipe(selection.workload, selection.release)
    each = [replace(selection, dtype=dtype) for dtype in recipe.dtypes]
    return [one for one in each if plan(catalog, one).launchable]


def _acceptance(catalog: Catalog, selection: Selection) -> list[Selection]:
    """Those of which a step time is published: no other could pass."""
    recipe = catalog.recipe(selection.workload, selection.release)
    mine = [one for one in selections(recipe) if one.gpu == selection.gpu]
    steps, time_limit, options = selection.steps, selection.time_limit, selection.options
    plans = [plan(catalog, replace(one, steps=steps, time_limit=time_limit, options=options)) for one in mine]
    return [one.selection for one in plans if one.estimate and one.estimate.method in _PUBLISHED]


def _tune(catalog: Catalog, selection: Selection, count: int) -> list[Selection]:
    """The fastest layouts in short runs, then the full run of the one that the model thinks best."""
    own = Overrides(seq_len=selection.overrides.seq_len, layers=selection.overrides.layers, gbs=selection.overrides.gbs)
    start = replace(selection, overrides=own)
    best = [replace(start, overrides=one.overrides) for one in layouts(catalog, start, count).best]
    usable = [one for one in best if plan(catalog, one).launchable]
    steps = min(SHORT_STEPS, plan(catalog, selection).steps)
    return [*(replace(one, steps=steps) for one in usable), *usable[:1]]


def _about(kind: SuiteKind, selection: Selection) -> str:
    if kind == "acceptance":
        return f"{selection.recipe_id} {selection.gpu}"
    words = [selection.recipe_id, selection.size, selection.gpu]
    words += [] if kind == "precision" else [selection.dtype]
    return " ".join(words if kind == "scaling" else [*words, str(selection.scale)])
