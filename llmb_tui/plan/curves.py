"""`Curves`: every published step time of a catalog, ordered so that comparable ones lie on one curve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from llmb_tui.catalog.catalog import Catalog, release_order
from llmb_tui.catalog.recipe import Model, Recipe
from llmb_tui.catalog.rows import ResultRow, Row, results, rows
from llmb_tui.plan.plan import Parallelism

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """Step times over the number of GPUs, all else equal: model, GPU, precision, layout and batch for each GPU."""

    recipe: Recipe
    release: str
    """Whose results these are: the recipe's own release, or another one with the same configurations."""
    points: dict[int, ResultRow]
    """By number of GPUs, ascending."""

    @property
    def name(self) -> str:
        """`workload@release`."""
        return f"{self.recipe.workload}@{self.release}"


@dataclass(frozen=True, slots=True)
class Curves:
    """The curves of a catalog, newest release first, and the hardware that each model was measured on."""

    by_key: dict[Key, tuple[Curve, ...]]
    measured: frozenset[Key]

    def of(self, key: Key, recipe: Recipe) -> list[Curve]:
        """The curves of a configuration, the recipe's own first."""
        return sorted(self.by_key.get(key, ()), key=lambda curve: not is_own(curve, recipe))


def is_own(curve: Curve, recipe: Recipe) -> bool:
    """True for results that the recipe's own release published."""
    return curve.recipe is recipe and curve.release == recipe.release


@lru_cache(maxsize=8)
def curves_of(catalog: Catalog) -> Curves:
    """All curves of a catalog; cached."""
    found: dict[Key, dict[tuple[Recipe, str], dict[int, ResultRow]]] = {}
    for recipe, row, result in _measured_rows(catalog):
        key = curve_key(recipe.models[row.size], row.gpu, row.dtype, row.gpus, row)
        points = found.setdefault(key, {}).setdefault((recipe, result.release or recipe.release), {})
        points[row.gpus] = result
    by_key = {}
    for key, group in found.items():
        curves = [Curve(recipe, release, dict(sorted(points.items()))) for (recipe, release), points in group.items()]
        by_key[key] = tuple(sorted(curves, key=lambda curve: release_order(curve.release), reverse=True))
    return Curves(by_key, frozenset(key[:3] for key in by_key))


def hardware_key(model: Model, gpu: str, dtype: str) -> Key:
    """What a result must at least share: the model's numbers, the GPU type and the precision."""
    shape = (model.layers, model.hidden, model.ffn, model.heads, model.query_groups, model.vocab, model.gated)
    return ((*shape, model.experts, model.experts_per_token), gpu, dtype)


def curve_key(model: Model, gpu: str, dtype: str, scale: int, runs: Row | Parallelism) -> Key:
    """What all points of a curve share. The batch for each GPU stands as a reduced fraction."""
    common = gcd(runs.gbs, scale)
    layout = (runs.tp, runs.pp, runs.cp, runs.ep, runs.vp, runs.mbs)
    return (
        *hardware_key(model, gpu, dtype),
        runs.layers,
        runs.seq_len,
        layout,
        runs.gbs // common,
        scale // common,
    )


def _measured_rows(catalog: Catalog) -> Iterator[tuple[Recipe, Row, ResultRow]]:
    for recipe in catalog.recipes:
        by_name = {(row.size, row.gpu, row.dtype, row.scaling, row.gpus): row for row in rows(recipe)}
        for result in results(recipe):
            row = by_name[result.size, result.gpu, result.dtype, result.scaling, result.gpus]
            yield recipe, row, result
