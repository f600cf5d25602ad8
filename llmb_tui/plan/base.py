"""`Base`: the published rows that a selection starts from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from llmb_tui.catalog.recipe import ConfigTable, Recipe
from llmb_tui.catalog.rows import Row, gbs_by_rule, rows


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

    def row_for(self, scale: int) -> Row:
        """The row of a listed scale, else the one whose layout it takes."""
        return self.rows.get(scale, self.full)

    def gbs_for(self, scale: int) -> int | None:
        """Global batch size at a scale; None where the rule gives no whole number."""
        return self.rows[scale].gbs if scale in self.rows else gbs_by_rule(self.gbs_rule, scale)


# Keyed by what a selection can name, so it stays small.
@lru_cache(maxsize=1024)
def base_of(recipe: Recipe, size: str, gpu: str, dtype: str, strong: bool) -> Base:
    """Where a selection of these starts; cached. The size must be one of the recipe's."""
    tables = [table for table in recipe.tables if table.size == size]
    asked = gpu
    gpu = _one_of(gpu, [name for name in recipe.gpus if any(t.gpu == name for t in tables)])
    tables = [table for table in tables if table.gpu == gpu]
    dtype = _one_of(dtype, [name for name in recipe.dtypes if any(name in t.dtypes for t in tables)])
    tables = [table for table in tables if dtype in table.dtypes]
    scaling = _one_of("strong" if strong else "weak", [table.scaling for table in tables])
    tables = [table for table in tables if table.scaling == scaling]
    found = {
        row.gpus: row
        for row in sorted(rows(recipe), key=lambda row: row.gpus)
        if (row.size, row.gpu, row.dtype, row.scaling) == (size, gpu, dtype, scaling)
    }
    whole = {gpus: row for gpus, row in found.items() if not row.proxy}
    full = next(iter(whole.values()), None) or max(found.values(), key=lambda row: row.layers)
    if gpu != asked and whole:
        found = whole
    return Base(gpu, dtype, scaling == "strong", found, full, _table_with(full, tables).gbs_rule)


def _one_of(wanted: str, offered: Sequence[str]) -> str:
    return wanted if wanted in offered else offered[0]


def _table_with(row: Row, tables: Iterable[ConfigTable]) -> ConfigTable:
    return next(t for t in tables if any(cells[t.columns.index("gpus")] == row.gpus for cells in t.rows))
