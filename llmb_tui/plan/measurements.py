"""`Measurement`: one published step time; `Curve`: step times that differ only in the number of GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

from llmb_tui.catalog.catalog import Catalog, release_order
from llmb_tui.catalog.recipe import Model, Recipe, Variant
from llmb_tui.catalog.rows import ResultRow, Row, results, rows
from llmb_tui.language.labels import gpus_label, workload_label
from llmb_tui.language.quantities import plain_number
from llmb_tui.plan.plan import Parallelism

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Measurement:
    """One step time. Compared by identity, so that single ones can be left out."""

    recipe: Recipe
    row: Row
    step_time_s: float
    release: str
    """Release that published it: the recipe's, or another with the same configurations."""
    result: ResultRow | None
    """The row of the result tables; None for a worked example."""

    @property
    def model(self) -> Model:
        """Architecture of the measured model."""
        return self.recipe.models[self.row.size]

    @property
    def variant(self) -> Variant | None:
        """Scaling of the precision."""
        return self.result.variant if self.result else self.recipe.variant(self.row.dtype)

    @property
    def description(self) -> str:
        """The measurement in words."""
        row = self.row
        example = "" if self.result else ", worked example"
        name = workload_label(f"{self.recipe.workload}@{self.release}", row.size, row.dtype)
        return f"{name}, {gpus_label(row.gpus, row.gpu)}, {plain_number(self.step_time_s)} s{example}"


def architecture(model: Model) -> Key:
    """Key of an architecture, independent of its name; with the numbers of the FLOPs formula."""
    shape = (model.layers, model.hidden, model.ffn, model.heads, model.counted_query_groups, model.vocab)
    return (*shape, model.gated, model.experts, model.experts_per_token)


@lru_cache(maxsize=8)
def measurements(catalog: Catalog) -> tuple[Measurement, ...]:
    """All measurements in the order of the presets: result tables first, then worked examples; cached."""
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
    """Step times over the number of GPUs with equal model, GPU type, precision, scaling, layout and batch per GPU."""

    recipe: Recipe
    release: str
    """Release of the results: the recipe's, or another with the same configurations."""
    variant: Variant | None
    points: dict[int, ResultRow]
    """By number of GPUs, ascending."""

    @property
    def name(self) -> str:
        """`workload@release`."""
        return f"{self.recipe.workload}@{self.release}"


def is_own(curve: Curve, recipe: Recipe) -> bool:
    """True for results of the recipe's own release."""
    return curve.recipe is recipe and curve.release == recipe.release


def curves_of(measurements: Iterable[Measurement]) -> dict[Key, tuple[Curve, ...]]:
    """The curves of each configuration, newest release first, without worked examples."""
    groups: dict[Key, dict[tuple[Recipe, str, Variant | None], dict[int, ResultRow]]] = {}
    for measurement in measurements:
        if measurement.result is not None:
            origin = (measurement.recipe, measurement.release, measurement.variant)
            points = groups.setdefault(key_of(measurement), {}).setdefault(origin, {})
            points[measurement.row.gpus] = measurement.result
    by_key = {}
    for key, group in groups.items():
        curves = [Curve(*common, dict(sorted(points.items()))) for common, points in group.items()]
        by_key[key] = tuple(sorted(curves, key=lambda curve: release_order(curve.release), reverse=True))
    return by_key


def layout_of(runs: Row | Parallelism) -> tuple[int | None, ...]:
    """The numbers that define a layout."""
    return (runs.tp, runs.pp, runs.cp, runs.ep, runs.vp, runs.mbs)


@lru_cache(maxsize=4096)
def key_of(measurement: Measurement) -> Key:
    """The key of the measurement's curve; cached, because `accuracy` asks often."""
    row = measurement.row
    return curve_key(measurement.model, row.gpu, row.dtype, row.gpus, row)


def curve_key(model: Model, gpu: str, dtype: str, scale: int, runs: Row | Parallelism) -> Key:
    """The common values of a curve's points besides release and variant; the batch per GPU is a reduced fraction."""
    common = gcd(runs.gbs, scale)
    batch = (runs.gbs // common, scale // common)
    return (architecture(model), gpu, dtype, runs.layers, runs.seq_len, layout_of(runs), *batch)
