"""Ready-made suites, created from one selection. Pure."""

from __future__ import annotations

from dataclasses import replace

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.errors import LlmbError
from llmb_tui.language.labels import gpus_label
from llmb_tui.language.text import clean_line, plural
from llmb_tui.plan.layouts import layouts
from llmb_tui.plan.make import plan
from llmb_tui.plan.resolved import resolve, selections
from llmb_tui.plan.selection import Overrides, Selection
from llmb_tui.suites.suite import MOST_RUNS, SuiteKind
from llmb_tui.suites.suite_plan import Nodes

REPEATS = 5
"""Default number of runs of a `repeat`: with fewer the interval of the mean is wide (t is 2.78 for 5, 12.7 for 2)."""
LAYOUTS = 4
SHORT_STEPS = 25
"""Steps of the short runs of a `tune`: 5 to warm up, 20 to compare."""
_PUBLISHED = ("published", "other_release")


def most_gpus(catalog: Catalog, selection: Selection, nodes: Nodes) -> int | None:
    """Number of GPUs of these nodes; None if it is unknown."""
    gpus = catalog.recipe(selection.workload, selection.release).gpus.get(selection.gpu)
    return nodes.all * gpus.gpus_per_node if nodes.all is not None and gpus is not None else None


def ready_made(
    kind: SuiteKind, catalog: Catalog, selection: Selection, most: int | None = None, count: int | None = None
) -> tuple[str, list[Selection]]:
    """Name and runs of a ready-made suite on a cluster with at most `most` GPUs; None: all published scales.

    `count`: repeats of each run, or for a `tune` the number of layouts to try. The scale of `selection` is ignored if
    the suite has its own scales, and so are size, precision and layout for an acceptance. Raises LlmbError (exit code
    1) if no run remains, or if there are too many.
    """
    each = {
        "tune": lambda: _tune(catalog, selection, count or LAYOUTS),
        "repeat": lambda: [selection],
        "scaling": lambda: _scaling(catalog, selection),
        "precision": lambda: _precision(catalog, selection),
        "acceptance": lambda: _acceptance(catalog, selection),
    }[kind]()
    each = [run for run in each if most is None or run.scale <= most]
    times = 1 if kind == "tune" else count or (REPEATS if kind == "repeat" else 1)
    if (runs := len(each) * times) > MOST_RUNS:
        what, why = f"These are {plural(runs, 'run')}.", f"A suite has at most {plural(MOST_RUNS, 'run')}."
        raise LlmbError(what, why, "Use fewer repeats.", exit_code=1)
    wanted = [run for run in each for _ in range(times)]
    name = clean_line(f"{kind} {_about(kind, selection)}")
    if not wanted:
        on = f" with at most {gpus_label(most, selection.gpu)}" if most is not None else ""
        published = kind in ("scaling", "acceptance")
        why = "No published configuration fits." if published else "No configuration of it can be launched."
        fix = "Choose another size, GPU type or scale; `llmb-tui list` shows what is published."
        raise LlmbError(f"{name} has no runs{on}.", why, fix, exit_code=1)
    return name, wanted


def _scaling(catalog: Catalog, selection: Selection) -> list[Selection]:
    """Every listed scale of the whole model; no proxies, because each of them is a different model."""
    base = resolve(catalog, selection).base
    return [replace(selection, scale=gpus) for gpus, row in base.rows.items() if not row.proxy]


def _precision(catalog: Catalog, selection: Selection) -> list[Selection]:
    recipe = catalog.recipe(selection.workload, selection.release)
    by_dtype = [replace(selection, dtype=dtype) for dtype in recipe.dtypes]
    return [run for run in by_dtype if plan(catalog, run).launchable]


def _acceptance(catalog: Catalog, selection: Selection) -> list[Selection]:
    """Configurations with a published step time, because no other one can pass."""
    recipe = catalog.recipe(selection.workload, selection.release)
    own = [one for one in selections(recipe) if one.gpu == selection.gpu]
    steps, time_limit, options = selection.steps, selection.time_limit, selection.options
    plans = [plan(catalog, replace(one, steps=steps, time_limit=time_limit, options=options)) for one in own]
    return [one.selection for one in plans if one.estimate and one.estimate.method in _PUBLISHED]


def _tune(catalog: Catalog, selection: Selection, count: int) -> list[Selection]:
    """Short runs of the fastest layouts, then the full run of the one with the best estimate."""
    own = Overrides(seq_len=selection.overrides.seq_len, layers=selection.overrides.layers, gbs=selection.overrides.gbs)
    start = replace(selection, overrides=own)
    best = [replace(start, overrides=layout.overrides) for layout in layouts(catalog, start, count).best]
    usable = [run for run in best if plan(catalog, run).launchable]
    steps = min(SHORT_STEPS, plan(catalog, selection).steps)
    return [*(replace(run, steps=steps) for run in usable), *usable[:1]]


def _about(kind: SuiteKind, selection: Selection) -> str:
    if kind == "acceptance":
        return f"{selection.recipe_id} {selection.gpu}"
    words = [selection.recipe_id, selection.size, selection.gpu]
    words += [] if kind == "precision" else [selection.dtype]
    return " ".join(words if kind == "scaling" else [*words, str(selection.scale)])
