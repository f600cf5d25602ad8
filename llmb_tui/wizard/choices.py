"""`Choice` and `Switch`: what can be chosen or switched on, and what cannot, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import ResultRow, Row, results, rows
from llmb_tui.language.quantities import count, gigabytes, given
from llmb_tui.launch.prepared import LaunchPreview
from llmb_tui.plan.options import option_row, profile_steps, why_not
from llmb_tui.plan.selection import ON, OPTIONS, Field, ProcedureId
from llmb_tui.wizard.answers import Answers, node_size, recipe_of, value_of
from llmb_tui.wizard.state import Rules


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


@dataclass(frozen=True, slots=True)
class Switch:
    """One thing that can be switched on, or the reason why it cannot."""

    field: str
    label: str
    detail: str
    on: bool
    disabled_reason: str = ""

    @property
    def movable(self) -> bool:
        """False where it is off and has to stay so. What became impossible while it was on can be switched off."""
        return self.on or not self.disabled_reason


def choices(catalog: Catalog, full: Answers, field: str) -> tuple[Choice, ...]:
    """What can be chosen for a field, and what cannot, with the reason. Empty for a field that is only typed.

    `full`: the answers as they are `settled`.
    """
    recipe = recipe_of(catalog, full)
    of_size = [row for row in rows(recipe) if row.size == full.size]
    of_gpu = [row for row in of_size if row.gpu == full.gpu]
    match field:
        case "workload":
            return tuple(_workload(one, size) for one in catalog.recipes for size in one.models)
        case "gpu":
            return tuple(_gpu(recipe, full, of_size, gpu) for gpu in catalog.gpu_types())
        case "dtype":
            return tuple(_dtype(recipe, full, of_gpu, dtype) for dtype in catalog.dtypes())
        case "scaling":
            return _scalings(recipe, full, of_size)
        case "scale":
            return _scales(recipe, full, of_gpu)
        case _:
            return ()


def procedures(rules: Rules, previews: Mapping[ProcedureId, LaunchPreview]) -> tuple[Choice, ...]:
    """Ways to install and start a run; the first error of its preview disables one."""

    def choice(name: ProcedureId, preview: LaunchPreview) -> Choice:
        errors = (problem.reason for problem in preview.problems if problem.severity == "error")
        return Choice(name, rules.procedures[name].title, preview.detail, next(errors, None))

    return tuple(choice(name, preview) for name, preview in previews.items())


def switches(catalog: Catalog, full: Answers) -> tuple[Switch, ...]:
    """Everything that is simply on or off."""
    recipe = recipe_of(catalog, full)
    model, chosen = recipe.models[full.size or ""], full.options
    start, stop = profile_steps(recipe)
    start = start if chosen.profile_start is None else chosen.profile_start
    stop = stop if chosen.profile_stop is None else chosen.profile_stop
    details = {
        "profile": f"steps {start}–{stop}",
        "save_checkpoint": f"about {given(model.checkpoint_gb)} GB" if model.checkpoint_gb else "",
        "hub_tokenizer": (model.hub_tokenizer or "").rpartition("/")[2],
    }
    return tuple(
        Switch(
            option.name,
            option.label,
            details.get(option.name) or _steps(recipe, option),
            value_of(full, option.name) == ON,
            why_not(recipe, full.size or "", option),
        )
        for option in OPTIONS
        if option.kind == "switch"
    )


def no_typing(catalog: Catalog, full: Answers) -> dict[str, str]:
    """Why a typed option cannot be given, by its name; empty where it can."""
    recipe = recipe_of(catalog, full)
    return {option.name: why_not(recipe, full.size or "", option) for option in OPTIONS if option.kind != "switch"}


def details(catalog: Catalog, full: Answers) -> tuple[tuple[str, str], ...]:
    """What is to be known of the chosen workload: (name, text). `full` as above."""
    recipe = recipe_of(catalog, full)
    model = recipe.models[full.size or ""]
    of_size = [row for row in rows(recipe) if row.size == full.size]
    rule = recipe.rule
    facts = [
        ("recipe", recipe.title),
        ("source", recipe.source),
        ("GPU types", ", ".join(dict.fromkeys(row.gpu.upper() for row in of_size))),
        ("precisions", ", ".join(dict.fromkeys(row.dtype for row in of_size))),
        ("scaling", ", ".join(dict.fromkeys(row.scaling for row in of_size))),
        ("model", f"{model.layers} layers, hidden {model.hidden}, sequence {model.seq_len}"),
        ("result rule", "last step" if rule.kind == "last" else f"mean of iterations {rule.first} to {rule.last}"),
    ]
    if model.gated_access:
        facts.append(("access", f"NVIDIA's scripts need {', '.join(model.gated_access)}"))
    return tuple(facts)


def _workload(recipe: Recipe, size: str) -> Choice:
    of_size = [row for row in rows(recipe) if row.size == size]
    scales = sorted({row.gpus for row in of_size})
    reach = f"{count(scales[0])}–{count(scales[-1])}" if scales else ""
    return Choice(
        f"{recipe.id}/{size}",
        f"{recipe.workload} {size}",
        f"{recipe.release}  {reach}",
        None if of_size else "no configuration is published",
        keywords=" ".join((recipe.id, *(row.gpu for row in of_size), *(row.dtype for row in of_size))),
    )


def _gpu(recipe: Recipe, full: Answers, of_size: list[Row], gpu: str) -> Choice:
    if (facts := recipe.gpus.get(gpu)) is None:
        return Choice(gpu, gpu.upper(), disabled_reason=f"not in {recipe.id}")
    detail = f"{gigabytes(facts.memory_gb)}  {facts.gpus_per_node} per node"
    listed = any(row.gpu == gpu for row in of_size)
    return Choice(gpu, gpu.upper(), detail, None if listed else f"not published for {full.size}")


def _dtype(recipe: Recipe, full: Answers, of_gpu: list[Row], dtype: str) -> Choice:
    gpu = recipe.gpus.get(full.gpu or "")
    peak = gpu.peak_tflops.get(dtype) if gpu else None
    detail = f"peak {given(peak)} TFLOPS" if peak else ""
    if any(row.dtype == dtype for row in of_gpu):
        return Choice(dtype, dtype, detail)
    if dtype not in recipe.dtypes:
        return Choice(dtype, dtype, detail, f"not in {recipe.id}")
    return Choice(dtype, dtype, detail, f"not published for {full.size} on {(full.gpu or '').upper()}")


def _scalings(recipe: Recipe, full: Answers, of_size: list[Row]) -> tuple[Choice, ...]:
    offered = {row.scaling for row in of_size if (row.gpu, row.dtype) == (full.gpu, full.dtype)}
    only = f"{next(iter(offered), '')} only"
    everywhere = {row.scaling for row in of_size} == offered
    only = f"{recipe.id} is {only}" if everywhere else f"{only} on {(full.gpu or '').upper()}"
    return tuple(
        Choice(scaling, scaling, detail, None if scaling in offered or not offered else only)
        for scaling, detail in (("weak", "global batch grows with the GPUs"), ("strong", "global batch stays constant"))
    )


def _scales(recipe: Recipe, full: Answers, of_gpu: list[Row]) -> tuple[Choice, ...]:
    scaling = "strong" if full.strong else "weak"
    mine = {row.gpus: row for row in of_gpu if row.dtype == full.dtype and row.scaling == scaling}
    printed = {
        result.gpus: result
        for result in results(recipe)
        if (result.size, result.gpu, result.dtype, result.scaling) == (full.size, full.gpu, full.dtype, scaling)
    }
    every = sorted({row.gpus for row in of_gpu})
    what = f"{scaling} scaling, {full.dtype}"
    return tuple(_scale(recipe, gpus, mine.get(gpus), printed.get(gpus), what) for gpus in every)


def _scale(recipe: Recipe, gpus: int, row: Row | None, result: ResultRow | None, what: str) -> Choice:
    if row is None:
        return Choice(str(gpus), count(gpus), disabled_reason=f"not listed for {what}")
    nodes = -(-gpus // node_size(recipe, row.gpu))
    # To the plan a result of another release is evidence, and none that is published.
    published = result is not None and result.release in (None, recipe.release)
    step_time = f"{given(result.step_time_s)} s" if result else ""
    shown = [f"{step_time if published else 'no result':<9}", f"{count(nodes):>3} node{'' if nodes == 1 else 's'}"]
    if row.proxy:
        shown.append(f"proxy, {row.layers} layers")
    if result and not published:
        shown.append(f"{step_time} in {result.release}")
    detail = "  ".join(shown)
    return Choice(str(gpus), count(gpus), detail, published=published)


def _steps(recipe: Recipe, option: Field) -> str:
    row = option_row(recipe, option)
    return f"{row.steps} steps" if row is not None and row.steps else ""
