"""`Choice`: what can be chosen, and what cannot, with the reason."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import ResultRow, Row, results, rows
from llmb_tui.wizard.answers import Answers, Field, node_size, recipe_of, settled


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that can be chosen, or the reason why it cannot."""

    value: str
    label: str
    detail: str = ""
    disabled_reason: str | None = None
    published: bool | None = None
    """For a scale: is there a published result?"""
    keywords: str = ""
    """More words that it is found by."""

    @property
    def searched(self) -> str:
        """The text that a search looks in, lower case."""
        return f"{self.label} {self.detail} {self.keywords}".lower()


def choices(catalog: Catalog, answers: Answers, field: Field) -> tuple[Choice, ...]:
    """What can be chosen for a field, and what cannot, with the reason. Empty for a field that is only typed."""
    full = settled(catalog, answers)
    recipe = recipe_of(catalog, full)
    sized = [row for row in rows(recipe) if row.size == full.size]
    here = [row for row in sized if row.gpu == full.gpu]
    found: tuple[Choice, ...] = ()
    if field == "workload":
        found = tuple(_workload(one, size) for one in catalog.recipes for size in one.models)
    elif field == "gpu":
        found = tuple(_gpu(recipe, full, sized, gpu) for gpu in catalog.gpu_types())
    elif field == "dtype":
        found = tuple(_dtype(recipe, full, sized, dtype) for dtype in catalog.dtypes())
    elif field == "scaling":
        found = _scalings(recipe, full, here)
    elif field == "scale":
        found = _scales(recipe, full, here)
    return found


def details(catalog: Catalog, answers: Answers) -> tuple[tuple[str, str], ...]:
    """What is to be known of the chosen workload: (name, text)."""
    full = settled(catalog, answers)
    recipe = recipe_of(catalog, full)
    model = recipe.models[full.size or ""]
    here = [row for row in rows(recipe) if row.size == full.size]
    scalings = dict.fromkeys(row.scaling for row in here)
    rule = recipe.rule
    found = [
        ("recipe", recipe.title),
        ("source", recipe.source),
        ("GPU types", ", ".join(dict.fromkeys(row.gpu.upper() for row in here))),
        ("precisions", ", ".join(dict.fromkeys(row.dtype for row in here))),
        ("scaling", ", ".join(scalings)),
        ("model", f"{model.layers} layers, hidden {model.hidden}, sequence {model.seq_len}"),
        ("result rule", "last step" if rule.kind == "last" else f"mean of iterations {rule.first} to {rule.last}"),
    ]
    if model.gated_access:
        found.append(("needs access", ", ".join(model.gated_access)))
    return tuple(found)


def _workload(recipe: Recipe, size: str) -> Choice:
    here = [row for row in rows(recipe) if row.size == size]
    scales = sorted({row.gpus for row in here})
    reach = f"{scales[0]:,}–{scales[-1]:,}" if scales else ""
    return Choice(
        f"{recipe.id}/{size}",
        f"{recipe.workload} {size}",
        f"{recipe.release}  {reach}",
        None if here else "no configuration is published",
        keywords=" ".join((recipe.id, *(row.gpu for row in here), *(row.dtype for row in here))),
    )


def _gpu(recipe: Recipe, full: Answers, sized: list[Row], gpu: str) -> Choice:
    facts = recipe.gpus.get(gpu)
    if facts is None:
        return Choice(gpu, gpu.upper(), disabled_reason=f"not in {recipe.id}")
    detail = f"{facts.memory_gb:g} GB  {facts.gpus_per_node} per node"
    has = any(row.gpu == gpu for row in sized)
    return Choice(gpu, gpu.upper(), detail, None if has else f"not published for {full.size}")


def _dtype(recipe: Recipe, full: Answers, sized: list[Row], dtype: str) -> Choice:
    gpu = recipe.gpus.get(full.gpu or "")
    peak = gpu.peak_tflops.get(dtype) if gpu else None
    detail = f"peak {peak:,g} TFLOPS" if peak else ""
    if any(row.dtype == dtype and row.gpu == full.gpu for row in sized):
        return Choice(dtype, dtype, detail)
    if dtype not in recipe.dtypes:
        return Choice(dtype, dtype, detail, f"not in {recipe.id}")
    return Choice(dtype, dtype, detail, f"not published for {full.size} on {(full.gpu or '').upper()}")


def _scalings(recipe: Recipe, full: Answers, here: list[Row]) -> tuple[Choice, ...]:
    details = {"weak": "global batch grows with the GPUs", "strong": "global batch stays constant"}
    offered = {row.scaling for row in here if row.dtype == full.dtype}
    other = {"weak": "strong", "strong": "weak"}
    return tuple(
        Choice(
            scaling,
            scaling,
            detail,
            None if scaling in offered or not offered else f"{recipe.id} is {other[scaling]} only",
        )
        for scaling, detail in details.items()
    )


def _scales(recipe: Recipe, full: Answers, here: list[Row]) -> tuple[Choice, ...]:
    scaling = "strong" if full.strong else "weak"
    mine = {row.gpus: row for row in here if row.dtype == full.dtype and row.scaling == scaling}
    printed = {
        result.gpus: result
        for result in results(recipe)
        if (result.size, result.gpu, result.dtype, result.scaling) == (full.size, full.gpu, full.dtype, scaling)
    }
    every = sorted({row.gpus for row in here})
    what = f"{scaling} scaling, {full.dtype}"
    return tuple(_scale(recipe, gpus, mine.get(gpus), printed.get(gpus), what) for gpus in every)


def _scale(recipe: Recipe, gpus: int, row: Row | None, result: ResultRow | None, what: str) -> Choice:
    if row is None:
        return Choice(str(gpus), f"{gpus:,}", disabled_reason=f"not listed for {what}")
    nodes = -(-gpus // node_size(recipe, row.gpu))
    step_time = f"{result.step_time_s:.2f} s" if result else "no result"
    proxy = f"proxy, {row.layers} layers" if row.proxy else ""
    detail = f"{step_time:<9}  {nodes:>3,} node{'' if nodes == 1 else 's'}  {proxy}".rstrip()
    return Choice(str(gpus), f"{gpus:,}", detail, published=result is not None)
