"""`Measurement`: one published step time; `Curve`: those that differ in the number of GPUs alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from llmb_tui.catalog.catalog import Catalog, release_order
from llmb_tui.catalog.recipe import Model, Recipe, Variant
from llmb_tui.catalog.rows import ResultRow, Row, results, rows
from llmb_tui.language.labels import gpus_label, workload_label
from llmb_tui.language.quantities import given
from llmb_tui.plan.plan import Parallelism

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """One step time. Compared by identity, so that some can be left out."""

    recipe: Recipe
    row: Row
    step_time_s: float
    release: str
    """That published it: the recipe's own, or another one with the same configurations."""
    result: ResultRow | None
    """The row of the result tables; None for a worked example."""

    @property
    def model(self) -> Model:
        """The architecture."""
        return self.recipe.models[self.row.size]

    @property
    def variant(self) -> Variant | None:
        """Of the precision."""
        return self.result.variant if self.result else self.recipe.variant(self.row.dtype)

    @property
    def description(self) -> str:
        """In words, for a person."""
        row = self.row
        example = "" if self.result else ", worked example"
        name = workload_label(f"{self.recipe.workload}@{self.release}", row.size, row.dtype)
        return f"{name}, {gpus_label(row.gpus, row.gpu)}, {given(self.step_time_s)} s{example}"


def architecture(model: Model) -> Key:
    """What makes two models the same one, whatever their recipes call it; as the formulas count them."""
    shape = (model.layers, model.hidden, model.ffn, model.heads, model.counted_query_groups, model.vocab)
    return (*shape, model.gated, model.experts, model.experts_per_token)


@lru_cache(maxsize=8)
def measurements(catalog: Catalog) -> tuple[Measurement, ...]:
    """Everything that was measured, in the order of the presets: rows of tables first, then worked examples; cached."""
    return tuple(measurement for recipe in catalog.recipes for measurement in _of(recipe))


def _of(recipe: Recipe) -> Iterator[Measurement]:
    by_name = {(row.size, row.gpu, row.dtype, row.scaling, row.gpus): row for row in rows(recipe)}
    for result in results(recipe):
        row = by_name[result.size, result.gpu, result.dtype, result.scaling, result.gpus]
        yield Measurement(recipe, row, result.step_time_s, result.release or recipe.release, result)
    for example in recipe.examples:
        row = by_name[example.size, example.gpu, example.dtype, example.scaling, example.gpus]
        yield Measurement(recipe, row, example.step_time_s, recipe.release, None)


@dataclass(frozen=True, slots=True)
class Curve:
    """Step times over the number of GPUs, all else equal: model, GPU, precision with its variant, layout, batch."""

    recipe: Recipe
    release: str
    """Whose results these are: the recipe's own release, or another one with the same configurations."""
    variant: Variant | None
    points: dict[int, ResultRow]
    """By number of GPUs, ascending."""

    @property
    def name(self) -> str:
        """`workload@release`."""
        return f"{self.recipe.workload}@{self.release}"


def is_own(curve: Curve, recipe: Recipe) -> bool:
    """True for results that the recipe's own release published."""
    return curve.recipe is recipe and curve.release == recipe.release


def curves_of(measurements: Iterable[Measurement]) -> dict[Key, tuple[Curve, ...]]:
    """The curves of each configuration, newest release first; worked examples are on none."""
    groups: dict[Key, dict[tuple[Recipe, str, Variant | None], dict[int, ResultRow]]] = {}
    for each in measurements:
        if each.result is not None:
            row = each.row
            points = groups.setdefault(key_of(each), {}).setdefault((each.recipe, each.release, each.variant), {})
            points[row.gpus] = each.result
    by_key = {}
    for key, group in groups.items():
        curves = [Curve(*common, dict(sorted(points.items()))) for common, points in group.items()]
        by_key[key] = tuple(sorted(curves, key=lambda curve: release_order(curve.release), reverse=True))
    return by_key


def layout_of(runs: Row | Parallelism) -> tuple[int | None, ...]:
    """The numbers that split the work: two runs with the same ones have the same layout."""
    return (runs.tp, runs.pp, runs.cp, runs.ep, runs.vp, runs.mbs)


@lru_cache(maxsize=4096)
def key_of(each: Measurement) -> Key:
    """The key of the curve on which it lies, or would lie; cached, for accuracy asks for evidence again and again."""
    return curve_key(each.model, each.row.gpu, each.row.dtype, each.row.gpus, each.row)


def curve_key(model: Model, gpu: str, dtype: str, scale: int, runs: Row | Parallelism) -> Key:
    """What all points of a curve share beside release and variant. The batch for each GPU is a reduced fraction."""
    common = gcd(runs.gbs, scale)
    batch = (runs.gbs // common, scale // common)
    return (architecture(model), gpu, dtype, runs.layers, runs.seq_len, layout_of(runs), *batch)
