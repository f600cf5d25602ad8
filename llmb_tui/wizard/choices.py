"""`Choice` and `Switch`: values that can be chosen and options that can be switched on, or the reason why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import Row, results, rows
from llmb_tui.language.quantities import count, gigabytes, plain_number
from llmb_tui.launch.prepared import LaunchPreview
from llmb_tui.plan.options import option_row, profile_steps, why_not
from llmb_tui.plan.selection import ON, OPTIONS, Field, ProcedureId
from llmb_tui.wizard.answers import Answers, node_size, recipe_of, value_of
from llmb_tui.wizard.state import Rules


@dataclass(frozen=True, slots=True)
class Choice:
    """A value that can be chosen, or the reason why it cannot."""

    value: str
    label: str
    detail: str = ""
    disabled_reason: str | None = None
    published: bool | None = None
    """Whether a result is published for a scale; None for other fields."""
    keywords: str = ""
    """Additional words that a search finds."""

    @property
    def search_text(self) -> str:
        """The text that is searched, in lower case."""
        return f"{self.label} {self.detail} {self.keywords}".lower()


@dataclass(frozen=True, slots=True)
class Switch:
    """An option that can be switched on, or the reason why it cannot."""

    field: str
    label: str
    detail: str
    on: bool
    disabled_reason: str = ""

    @property
    def can_switch(self) -> bool:
        """Whether it can be switched. An option that became impossible while it was on can still be switched off."""
        return self.on or not self.disabled_reason


def choices(catalog: Catalog, full: Answers, field: str) -> tuple[Choice, ...]:
    """The values of a field, each that cannot be chosen with the reason. Empty for a field that is only typed.

    `full`: answers with defaults (`with_defaults`).
    """
    recipe = recipe_of(catalog, full)
    size_rows = [row for row in rows(recipe) if row.size == full.size]
    gpu_rows = [row for row in size_rows if row.gpu == full.gpu]
    match field:
        case "workload":
            return tuple(_workload(known, size) for known in catalog.recipes for size in known.models)
        case "gpu":
            return tuple(_gpu(recipe, full, size_rows, gpu) for gpu in catalog.gpu_types())
        case "dtype":
            return tuple(_dtype(recipe, full, gpu_rows, dtype) for dtype in catalog.dtypes())
        case "scaling":
            return _scalings(recipe, full, size_rows)
        case "scale":
            return _scales(recipe, full, gpu_rows)
        case _:
            return ()


def procedures(rules: Rules, previews: Mapping[ProcedureId, LaunchPreview]) -> tuple[Choice, ...]:
    """The launch methods; the first error of its preview disables one."""

    def choice(name: ProcedureId, preview: LaunchPreview) -> Choice:
        errors = (problem.reason for problem in preview.problems if problem.severity == "error")
        return Choice(name, rules.procedures[name].title, preview.detail, next(errors, None))

    return tuple(choice(name, preview) for name, preview in previews.items())


def switches(catalog: Catalog, full: Answers) -> tuple[Switch, ...]:
    """The options that are on or off."""
    recipe = recipe_of(catalog, full)
    model, chosen = recipe.models[full.size or ""], full.options
    start, stop = profile_steps(recipe)
    start = start if chosen.profile_start is None else chosen.profile_start
    stop = stop if chosen.profile_stop is None else chosen.profile_stop
    details = {
        "profile": f"steps {start}–{stop}",
        "save_checkpoint": f"about {plain_number(model.checkpoint_gb)} GB" if model.checkpoint_gb else "",
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


def option_refusals(catalog: Catalog, full: Answers) -> dict[str, str]:
    """The reason why each typed option cannot be set, by its name; empty if it can."""
    recipe = recipe_of(catalog, full)
    return {option.name: why_not(recipe, full.size or "", option) for option in OPTIONS if option.kind != "switch"}


def details(catalog: Catalog, full: Answers) -> tuple[tuple[str, str], ...]:
    """Facts about the chosen workload: (name, text). `full`: answers with defaults."""
    recipe = recipe_of(catalog, full)
    model = recipe.models[full.size or ""]
    size_rows = [row for row in rows(recipe) if row.size == full.size]
    rule = recipe.rule
    facts = [
        ("recipe", recipe.title),
        ("source", recipe.source),
        ("GPU types", ", ".join(dict.fromkeys(row.gpu.upper() for row in size_rows))),
        ("precisions", ", ".join(dict.fromkeys(row.dtype for row in size_rows))),
        ("scaling", ", ".join(dict.fromkeys(row.scaling for row in size_rows))),
        ("model", f"{model.layers} layers, hidden {model.hidden}, sequence {model.seq_len}"),
        ("result rule", "last step" if rule.kind == "last" else f"mean of iterations {rule.first} to {rule.last}"),
    ]
    if model.gated_access:
        facts.append(("access", f"NVIDIA's scripts need {', '.join(model.gated_access)}"))
    return tuple(facts)


def _workload(recipe: Recipe, size: str) -> Choice:
    size_rows = [row for row in rows(recipe) if row.size == size]
    scales = sorted({row.gpus for row in size_rows})
    gpus = f"{count(scales[0])}–{count(scales[-1])}" if scales else ""
    return Choice(
        f"{recipe.id}/{size}",
        f"{recipe.workload} {size}",
        f"{recipe.release}  {gpus}",
        None if size_rows else "no configuration is published",
        keywords=" ".join((recipe.id, *(row.gpu for row in size_rows), *(row.dtype for row in size_rows))),
    )


def _gpu(recipe: Recipe, full: Answers, size_rows: list[Row], gpu: str) -> Choice:
    if (facts := recipe.gpus.get(gpu)) is None:
        return Choice(gpu, gpu.upper(), disabled_reason=f"not in {recipe.id}")
    detail = f"{gigabytes(facts.memory_gb)}  {facts.gpus_per_node} per node"
    published = any(row.gpu == gpu for row in size_rows)
    return Choice(gpu, gpu.upper(), detail, None if published else f"not published for {full.size}")


def _dtype(recipe: Recipe, full: Answers, gpu_rows: list[Row], dtype: str) -> Choice:
    gpu = recipe.gpus.get(full.gpu or "")
    peak = gpu.peak_tflops.get(dtype) if gpu else None
    detail = f"peak {plain_number(peak)} TFLOPS" if peak else ""
    if any(row.dtype == dtype for row in gpu_rows):
        return Choice(dtype, dtype, detail)
    if dtype not in recipe.dtypes:
        return Choice(dtype, dtype, detail, f"not in {recipe.id}")
    return Choice(dtype, dtype, detail, f"not published for {full.size} on {(full.gpu or '').upper()}")


def _scalings(recipe: Recipe, full: Answers, size_rows: list[Row]) -> tuple[Choice, ...]:
    offered = {row.scaling for row in size_rows if (row.gpu, row.dtype) == (full.gpu, full.dtype)}
    only = f"{next(iter(offered), '')} only"
    everywhere = {row.scaling for row in size_rows} == offered
    only = f"{only} in {recipe.id}" if everywhere else f"{only} on {(full.gpu or '').upper()}"
    return tuple(
        Choice(scaling, scaling, detail, None if scaling in offered or not offered else only)
        for scaling, detail in (("weak", "global batch grows with the GPUs"), ("strong", "global batch stays constant"))
    )


def _scales(recipe: Recipe, full: Answers, gpu_rows: list[Row]) -> tuple[Choice, ...]:
    scaling = "strong" if full.strong else "weak"
    row_of = {row.gpus: row for row in gpu_rows if row.dtype == full.dtype and row.scaling == scaling}
    result_of = {
        result.gpus: result
        for result in results(recipe)
        if (result.size, result.gpu, result.dtype, result.scaling) == (full.size, full.gpu, full.dtype, scaling)
    }
    scales = sorted({row.gpus for row in gpu_rows})
    # The plan uses a result of another release as evidence, and does not count it as published for this one.
    published = {gpus for gpus, result in result_of.items() if result.release in (None, recipe.release)}
    step_times = {gpus: f"{plain_number(result.step_time_s)} s" for gpus, result in result_of.items()}
    shown = {gpus: step_times[gpus] if gpus in published else "no result" for gpus in row_of}
    width = max(map(len, shown.values()), default=0)

    def choice(gpus: int) -> Choice:
        row = row_of.get(gpus)
        if row is None:
            return Choice(str(gpus), count(gpus), disabled_reason=f"not published for {scaling} scaling, {full.dtype}")
        nodes = -(-gpus // node_size(recipe, row.gpu))
        parts = [f"{shown[gpus]:<{width}} {count(nodes):>3} node{'' if nodes == 1 else 's'}"]
        if row.proxy:
            parts.append(f"{row.layers}/{recipe.models[row.size].layers} layers")
        if gpus in result_of and gpus not in published:
            parts.append(f"{step_times[gpus]} in {result_of[gpus].release}")
        return Choice(str(gpus), count(gpus), "  ".join(parts), published=gpus in published)

    return tuple(map(choice, scales))


def _steps(recipe: Recipe, option: Field) -> str:
    row = option_row(recipe, option)
    return f"{row.steps} steps" if row is not None and row.steps else ""
