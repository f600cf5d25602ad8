"""`Draft`: a selection with everything that it names looked up, and the parallelism that follows."""

from __future__ import annotations

from dataclasses import dataclass

from llmb_tui.catalog.catalog import Catalog, Unknown
from llmb_tui.catalog.recipe import Gpu, Model, Recipe
from llmb_tui.plan.base import Base, base_of
from llmb_tui.plan.plan import Parallelism, Scaling
from llmb_tui.plan.selection import Selection


@dataclass(frozen=True, slots=True)
class Draft:
    """What a plan is made from: facts and numbers, before anything is checked or estimated."""

    selection: Selection
    recipe: Recipe
    model: Model
    gpu: Gpu
    """Facts of the GPU type that is asked for, from another recipe where this one does not have it."""
    base: Base
    own: dict[str, int]
    """The values set by hand that can be used: those above zero."""
    parallelism: Parallelism

    @property
    def listed(self) -> bool:
        """True where a row of the recipe answers for GPU type, precision, scaling and scale."""
        asked, base = self.selection, self.base
        found = (base.gpu, base.dtype, base.strong) == (asked.gpu, asked.dtype, asked.strong_scaling)
        return found and asked.scale in base.rows

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


def draft_of(catalog: Catalog, selection: Selection) -> Draft:
    """Looks up what a selection names. Raises `Unknown` for a recipe, size or GPU type that no preset has."""
    recipe = catalog.recipe(selection.workload, selection.release)
    model = recipe.models.get(selection.size)
    if model is None:
        raise Unknown("size", selection.size, recipe.models)
    gpu = recipe.gpus.get(selection.gpu) or _from_another(catalog, selection.gpu)
    base = base_of(recipe, selection.size, selection.gpu, selection.dtype, selection.strong_scaling)
    own = {name: value for name, value in selection.overrides.given().items() if value > 0}
    return Draft(selection, recipe, model, gpu, base, own, _parallelism(base, selection.scale, own))


def quotient(number: int, divisor: int) -> int | None:
    """`number` / `divisor` where that is whole and positive, else None."""
    whole, left = divmod(number, divisor)
    return whole if whole > 0 and not left else None


def _from_another(catalog: Catalog, gpu: str) -> Gpu:
    for recipe in catalog.recipes:
        if gpu in recipe.gpus:
            return recipe.gpus[gpu]
    raise Unknown("gpu", gpu, catalog.gpu_types())


def _parallelism(base: Base, scale: int, own: dict[str, int]) -> Parallelism:
    row = base.row_for(scale)
    tp, pp, cp = own.get("tp", row.tp), own.get("pp", row.pp), own.get("cp", row.cp)
    mbs, vp = own.get("mbs", row.mbs), own.get("vp", row.vp)
    # A rule that gives no whole batch is a problem of the scale; the batch shown is the one below.
    gbs = own.get("gbs") or base.gbs_for(scale) or max(1, row.gbs * scale // row.gpus)
    dp = quotient(scale, tp * pp * cp)
    return Parallelism(
        tp=tp,
        pp=pp,
        cp=cp,
        ep=own.get("ep", row.ep),
        dp=dp,
        vp=None if vp == 1 else vp,
        mbs=mbs,
        gbs=gbs,
        ga=dp and quotient(gbs, mbs * dp),
        seq_len=own.get("seq_len", row.seq_len),
        layers=own.get("layers", row.layers),
    )
