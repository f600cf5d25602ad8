"""`ResolvedSelection`: a selection with everything that it names looked up, its published rows, and its parallelism."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from llmb_tui.catalog.catalog import Catalog, Unknown
from llmb_tui.catalog.recipe import Gpu, Model, Recipe, Variant
from llmb_tui.catalog.rows import Row, gbs_by_rule, rows
from llmb_tui.plan.plan import Parallelism, Scaling
from llmb_tui.plan.selection import Selection


@dataclass(frozen=True, slots=True)
class Base:
    """The rows of one size, GPU type, precision and scaling, and the rule for the scales between them.

    Where the recipe does not have the GPU type, precision or scaling that is asked for, the rows are those of
    its first one: `gpu`, `dtype` and `strong` say which these are. Layers are cut for the memory of one GPU type, so
    another type has the rows of the whole model alone.
    """

    gpu: str
    dtype: str
    strong: bool
    rows: dict[int, Row]
    """By number of GPUs, ascending."""
    full: Row
    """The smallest scale with all layers: scales that are not listed take its layout."""
    gbs_rule: str

    def lists(self, selection: Selection) -> bool:
        """True where a row answers for GPU type, precision, scaling and scale."""
        same_table = (self.gpu, self.dtype, self.strong) == (selection.gpu, selection.dtype, selection.strong_scaling)
        return same_table and selection.scale in self.rows

    def row_for(self, scale: int) -> Row:
        """The row of a listed scale, else the one whose layout it takes."""
        return self.rows.get(scale, self.full)

    def gbs_for(self, scale: int) -> int | None:
        """Global batch size at a scale; None where the rule gives no whole number."""
        return self.rows[scale].gbs if scale in self.rows else gbs_by_rule(self.gbs_rule, scale)


def selections(recipe: Recipe) -> Iterator[Selection]:
    """One selection for each published configuration, in the order of the tables."""
    for row in rows(recipe):
        strong = row.scaling == "strong"
        yield Selection(recipe.workload, recipe.release, row.size, row.gpu, row.dtype, row.gpus, strong)


# Keyed by what a selection can name, so it stays small.
@lru_cache(maxsize=1024)
def base_of(recipe: Recipe, size: str, gpu: str, dtype: str, strong: bool) -> Base:
    """Where a selection of these starts; cached. The size must be one of the recipe's."""
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
    return Base(gpu, dtype, scaling == "strong", by_scale, full, gbs_rule)


def _one_of(name: str, choices: Sequence[str]) -> str:
    return name if name in choices else choices[0]


@dataclass(frozen=True, slots=True)
class ResolvedSelection:
    """What a plan is made from: facts and numbers, before anything is checked or estimated."""

    selection: Selection
    recipe: Recipe
    model: Model
    gpu: Gpu
    """Facts of the GPU type that is asked for, from another recipe where this one does not have it."""
    base: Base
    by_hand: dict[str, int]
    """The overrides that can be used: those above zero."""
    parallelism: Parallelism
    variant: Variant | None

    @property
    def listed(self) -> bool:
        """True where a row of the recipe answers for GPU type, precision, scaling and scale."""
        return self.base.lists(self.selection)

    @property
    def divides(self) -> bool:
        """True where the GPUs divide into whole replicas, expert groups and batches."""
        return self.parallelism.ga is not None and not (self.parallelism.dp or 0) % self.parallelism.ep

    @property
    def scaling(self) -> Scaling:
        """How results of this scale with the GPU count, or `proxy` with fewer layers than the model has."""
        if self.parallelism.layers < self.model.layers:
            return "proxy"
        return "strong" if self.selection.strong_scaling else "weak"


def resolve(catalog: Catalog, selection: Selection) -> ResolvedSelection:
    """Looks up what a selection names. Raises `Unknown` for a recipe, size or GPU type that no preset has."""
    recipe = catalog.recipe(selection.workload, selection.release)
    model = recipe.models.get(selection.size)
    if model is None:
        raise Unknown("size", selection.size, recipe.models)
    gpu = recipe.gpus.get(selection.gpu) or _from_another(catalog, selection.gpu)
    base = base_of(recipe, selection.size, selection.gpu, selection.dtype, selection.strong_scaling)
    by_hand = {name: value for name, value in selection.overrides.set_fields().items() if value > 0}
    runs, variant = _parallelism(base, selection.scale, by_hand), recipe.variant(selection.dtype)
    return ResolvedSelection(selection, recipe, model, gpu, base, by_hand, runs, variant)


def quotient(number: int, divisor: int) -> int | None:
    """`number` / `divisor` where that is whole and positive, else None."""
    whole, remainder = divmod(number, divisor)
    return whole if whole > 0 and not remainder else None


def _from_another(catalog: Catalog, gpu: str) -> Gpu:
    for recipe in catalog.recipes:
        if gpu in recipe.gpus:
            return recipe.gpus[gpu]
    raise Unknown("gpu", gpu, catalog.gpu_types())


def _parallelism(base: Base, scale: int, by_hand: dict[str, int]) -> Parallelism:
    row = base.row_for(scale)
    tp, pp, cp = by_hand.get("tp", row.tp), by_hand.get("pp", row.pp), by_hand.get("cp", row.cp)
    mbs, vp = by_hand.get("mbs", row.mbs), by_hand.get("vp", row.vp)
    # A rule that gives no whole batch is a problem of the scale; the batch shown is the one below.
    gbs = by_hand.get("gbs") or base.gbs_for(scale) or max(1, row.gbs * scale // row.gpus)
    dp = quotient(scale, tp * pp * cp)
    return Parallelism(
        tp=tp,
        pp=pp,
        cp=cp,
        ep=by_hand.get("ep", row.ep),
        dp=dp,
        vp=None if vp == 1 else vp,
        mbs=mbs,
        gbs=gbs,
        ga=dp and quotient(gbs, mbs * dp),
        seq_len=by_hand.get("seq_len", row.seq_len),
        layers=by_hand.get("layers", row.layers),
    )
