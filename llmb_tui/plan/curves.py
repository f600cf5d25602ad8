"""`Curves`: published step times, ordered so that comparable ones lie on one curve."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd

from llmb_tui.catalog.catalog import release_order
from llmb_tui.catalog.recipe import Model, Recipe
from llmb_tui.catalog.rows import ResultRow, Row
from llmb_tui.plan.measured import Key, Measured, architecture
from llmb_tui.plan.plan import Parallelism


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
    """The curves of a configuration, newest release first."""

    by_key: dict[Key, tuple[Curve, ...]]

    def of(self, key: Key, recipe: Recipe) -> list[Curve]:
        """The curves of a configuration, the recipe's own first."""
        return sorted(self.by_key.get(key, ()), key=lambda curve: not is_own(curve, recipe))


def is_own(curve: Curve, recipe: Recipe) -> bool:
    """True for results that the recipe's own release published."""
    return curve.recipe is recipe and curve.release == recipe.release


def curves_of(found: Iterable[Measured]) -> Curves:
    """The curves through these step times; worked examples are on none."""
    groups: dict[Key, dict[tuple[Recipe, str], dict[int, ResultRow]]] = {}
    for each in found:
        if each.result is not None:
            row = each.row
            key = curve_key(each.model, row.gpu, row.dtype, row.gpus, row)
            points = groups.setdefault(key, {}).setdefault((each.recipe, each.release), {})
            points[row.gpus] = each.result
    by_key = {}
    for key, group in groups.items():
        curves = [Curve(recipe, release, dict(sorted(points.items()))) for (recipe, release), points in group.items()]
        by_key[key] = tuple(sorted(curves, key=lambda curve: release_order(curve.release), reverse=True))
    return Curves(by_key)


def layout_of(runs: Row | Parallelism) -> tuple[int | None, ...]:
    """The numbers that split the work: two runs with the same ones have the same layout."""
    return (runs.tp, runs.pp, runs.cp, runs.ep, runs.vp, runs.mbs)


def curve_key(model: Model, gpu: str, dtype: str, scale: int, runs: Row | Parallelism) -> Key:
    """What all points of a curve share. The batch for each GPU stands as a reduced fraction."""
    common = gcd(runs.gbs, scale)
    batch = (runs.gbs // common, scale // common)
    return (architecture(model), gpu, dtype, runs.layers, runs.seq_len, layout_of(runs), *batch)
