"""`ResolvedSelection`: a selection with its recipe, model, GPU facts, published rows and parallelism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from llmb_tui.catalog.catalog import Catalog, UnknownNameError
from llmb_tui.catalog.recipe import Gpu, Model, Recipe, Variant
from llmb_tui.catalog.rows import Row, gbs_by_rule, rows
from llmb_tui.plan.plan import Parallelism, Scaling
from llmb_tui.plan.selection import Selection


@dataclass(frozen=True, slots=True)
class ScaleRows:
    """The rows of one size, GPU type, precision and scaling, and the batch rule for other scales.

    If the recipe lacks the selected GPU type, precision or scaling, the rows are those of its first one, named by
    `gpu`, `dtype` and `strong`. Layers are reduced for the memory of one GPU type, so another type only has the rows of
    the whole model.
    """

    gpu: str
    dtype: str
    strong: bool
    rows: dict[int, Row]
    """By number of GPUs, ascending."""
    full: Row
    """Row of the smallest scale with all layers; unlisted scales use its layout."""
    gbs_rule: str

    def lists(self, selection: Selection) -> bool:
        """True if a row has the GPU type, precision, scaling and scale of the selection."""
        same_table = (self.gpu, self.dtype, self.strong) == (selection.gpu, selection.dtype, selection.strong_scaling)
        return same_table and selection.scale in self.rows

    def row_for(self, scale: int) -> Row:
        """The row of a listed scale, else the row whose layout it uses."""
        return self.rows.get(scale, self.full)

    def gbs_for(self, scale: int) -> int | None:
        """Global batch size at a scale; None if the rule gives a fraction."""
        return self.rows[scale].gbs if scale in self.rows else gbs_by_rule(self.gbs_rule, scale)


def selections(recipe: Recipe) -> Iterator[Selection]:
    """One selection for each published configuration, in the order of the tables."""
    for row in rows(recipe):
        strong = row.scaling == "strong"
        yield Selection(recipe.workload, recipe.release, row.size, row.gpu, row.dtype, row.gpus, strong)


# The keys are values of selections, so the cache stays small.
@lru_cache(maxsize=1024)
def scale_rows(recipe: Recipe, size: str, gpu: str, dtype: str, strong: bool) -> ScaleRows:
    """Published rows for a selection; cached. The size must be one of the recipe's."""
    tables = [table for table in recipe.tables if table.size == size]
    selected_gpu = gpu
    gpu = _one_of(gpu, [name for name in recipe.gpus if any(t.gpu == name for t in tables)])
    tables = [table for table in tables if table.gpu == gpu]
    dtype = _one_of(dtype, [name for name in recipe.dtypes if any(name in t.dtypes for t in tables)])
    tables = [table for table in tables if dtype in table.dtypes]
    scaling = _one_of("strong" if strong else "weak", [table.scaling for table in tables])
    tables = [table for table in tables if table.scaling == scaling]
    by_scale = {
        row.gpus: row
        for row in sorted(rows(recipe), key=lambda row: row.gpus)
        if (row.size, row.gpu, row.dtype, row.scaling) == (size, gpu, dtype, scaling)
    }
    whole = {gpus: row for gpus, row in by_scale.items() if not row.proxy}
    full = next(iter(whole.values()), None) or max(by_scale.values(), key=lambda row: row.layers)
    if gpu != selected_gpu and whole:
        by_scale = whole
    gbs_rule = next(t.gbs_rule for t in tables if any(cells[t.columns.index("gpus")] == full.gpus for cells in t.rows))
    return ScaleRows(gpu, dtype, scaling == "strong", by_scale, full, gbs_rule)


def _one_of(name: str, choices: Sequence[str]) -> str:
    return name if name in choices else choices[0]


@dataclass(frozen=True, slots=True)
class ResolvedSelection:
    """Facts and numbers of a plan before checks and estimates."""

    selection: Selection
    recipe: Recipe
    model: Model
    gpu: Gpu
    """Facts of the selected GPU type, from another recipe if this one lacks it."""
    base: ScaleRows
    overrides: dict[str, int]
    """The overrides above zero, by name."""
    parallelism: Parallelism
    variant: Variant | None

    @property
    def listed(self) -> bool:
        """True if the recipe lists the GPU type, precision, scaling and scale."""
        return self.base.lists(self.selection)

    @property
    def divides(self) -> bool:
        """True if the GPUs divide into whole replicas, expert groups and batches."""
        return self.parallelism.ga is not None and not (self.parallelism.dp or 0) % self.parallelism.ep

    @property
    def scaling(self) -> Scaling:
        """Weak or strong scaling; `proxy` for a reduced model, which has fewer layers."""
        if self.parallelism.layers < self.model.layers:
            return "proxy"
        return "strong" if self.selection.strong_scaling else "weak"


def resolve(catalog: Catalog, selection: Selection) -> ResolvedSelection:
    """Look up the parts of a selection. Raises `UnknownNameError` for a recipe, size or GPU type without a preset."""
    recipe = catalog.recipe(selection.workload, selection.release)
    model = recipe.models.get(selection.size)
    if model is None:
        raise UnknownNameError("size", selection.size, recipe.models)
    gpu = recipe.gpus.get(selection.gpu) or _from_another(catalog, selection.gpu)
    base = scale_rows(recipe, selection.size, selection.gpu, selection.dtype, selection.strong_scaling)
    overrides = {name: value for name, value in selection.overrides.set_fields().items() if value > 0}
    runs, variant = _parallelism(base, selection.scale, overrides), recipe.variant(selection.dtype)
    return ResolvedSelection(selection, recipe, model, gpu, base, overrides, runs, variant)


def quotient(number: int, divisor: int) -> int | None:
    """`number` / `divisor` if that is whole and positive, else None."""
    whole, remainder = divmod(number, divisor)
    return whole if whole > 0 and not remainder else None


def _from_another(catalog: Catalog, gpu: str) -> Gpu:
    for recipe in catalog.recipes:
        if gpu in recipe.gpus:
            return recipe.gpus[gpu]
    raise UnknownNameError("gpu", gpu, catalog.gpu_types())


def _parallelism(base: ScaleRows, scale: int, overrides: dict[str, int]) -> Parallelism:
    row = base.row_for(scale)
    tp, pp, cp = overrides.get("tp", row.tp), overrides.get("pp", row.pp), overrides.get("cp", row.cp)
    mbs, vp = overrides.get("mbs", row.mbs), overrides.get("vp", row.vp)
    # If the rule gives a fraction, the plan has an error for the scale and shows the next smaller batch.
    gbs = overrides.get("gbs") or base.gbs_for(scale) or max(1, row.gbs * scale // row.gpus)
    dp = quotient(scale, tp * pp * cp)
    return Parallelism(
        tp=tp,
        pp=pp,
        cp=cp,
        ep=overrides.get("ep", row.ep),
        dp=dp,
        vp=None if vp == 1 else vp,
        mbs=mbs,
        gbs=gbs,
        ga=dp and quotient(gbs, mbs * dp),
        seq_len=overrides.get("seq_len", row.seq_len),
        layers=overrides.get("layers", row.layers),
    )
