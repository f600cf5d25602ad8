"""`Measured`: every step time that somebody has published, with the configuration that it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.recipe import Model, Recipe
from llmb_tui.catalog.rows import ResultRow, Row, results, rows

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
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
    def named(self) -> str:
        """In words, for a person."""
        row = self.row
        example = "" if self.result else ", worked example"
        name = f"{self.recipe.workload}@{self.release} {row.size} {row.dtype}"
        return f"{name}, {row.gpus} x {row.gpu.upper()}, {self.step_time_s:g} s{example}"


def architecture(model: Model) -> Key:
    """What makes two models the same one, whatever their recipes call it."""
    shape = (model.layers, model.hidden, model.ffn, model.heads, model.query_groups, model.vocab, model.gated)
    return (*shape, model.experts, model.experts_per_token)


@lru_cache(maxsize=8)
def measured(catalog: Catalog) -> tuple[Measured, ...]:
    """Everything that was measured, in the order of the presets: rows of tables first, then worked examples; cached."""
    return tuple(found for recipe in catalog.recipes for found in _of(recipe))


def _of(recipe: Recipe) -> Iterator[Measured]:
    by_name = {(row.size, row.gpu, row.dtype, row.scaling, row.gpus): row for row in rows(recipe)}
    for result in results(recipe):
        row = by_name[result.size, result.gpu, result.dtype, result.scaling, result.gpus]
        yield Measured(recipe, row, result.step_time_s, result.release or recipe.release, result)
    for example in recipe.examples:
        row = by_name[example.size, example.gpu, example.dtype, example.scaling, example.gpus]
        yield Measured(recipe, row, example.step_time_s, recipe.release, None)
