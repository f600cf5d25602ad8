"""`rows` and `results`: the tables of a recipe, one object for each published row."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from llmb_tui.catalog.recipe import ConfigTable, Recipe, ResultTable, Scaling, Variant
from llmb_tui.catalog.settings import LAYOUT

PRINTED_COLUMNS = (*LAYOUT, "dp", "ga")
"""Columns of a README's configuration table, without the GPU count that names the row."""


@dataclass(frozen=True, slots=True)
class Row:
    """One published configuration, as the recipe's script runs it and as the README prints it.

    `printed` holds the README's cells: None for NA and for a missing column. The other fields hold the values of the
    script: corrections are applied, `dp` and `ga` are derived.
    """

    size: str
    gpu: str
    dtype: str
    gpus: int
    scaling: Scaling
    tp: int
    pp: int
    cp: int
    ep: int
    """1 without experts."""
    vp: int | None
    """None without virtual stages."""
    mbs: int
    gbs: int
    seq_len: int
    layers: int
    dp: int
    """GPUs / (TP * PP * CP), with expert parallelism inside it."""
    ga: int
    """GBS / (MBS * DP)."""
    printed: dict[str, int | None] = field(hash=False)
    notes: tuple[str, ...]
    """Differences between the script and the README, or within the README."""
    proxy: bool
    """Fewer layers than the model has."""
    source: str


@dataclass(frozen=True, slots=True)
class ResultRow:
    """One published result, digits as printed."""

    size: str
    gpu: str
    dtype: str
    gpus: int
    scaling: Scaling
    step_time_s: float
    tokens_per_s: float
    mfu_pct: float
    days_per_1t_tokens: float | None
    """None if the table prints NA or has no such row."""
    source: str
    note: str | None
    """Note on a misprint."""
    release: str | None
    """Release that published the result; None: the recipe's."""
    variant: Variant | None = None
    container: str | None = None
    """Image of the measurement, as `Gpu.container`; None for another release that does not name its image."""


# There are few recipes and they live as long as the catalog: the caches stay small.
@lru_cache(maxsize=64)
def rows(recipe: Recipe) -> tuple[Row, ...]:
    """Published configurations, one for each size, GPU type, precision, scale and scaling; cached."""
    return tuple(
        row_of(recipe, table, cells, dtype) for table in recipe.tables for dtype in table.dtypes for cells in table.rows
    )


@lru_cache(maxsize=64)
def results(recipe: Recipe) -> tuple[ResultRow, ...]:
    """Published results in the order of the tables; cached."""
    return tuple(_result(recipe, table, index) for table in recipe.results for index in range(len(table.gpus)))


def row_of(recipe: Recipe, table: ConfigTable, cells: tuple[int | str, ...], dtype: str) -> Row:
    """The configuration of one row of a table.

    `dp` and `ga` are rounded down if the numbers do not divide; such a preset is refused.
    """
    cell = {name: value if isinstance(value, int) else None for name, value in zip(table.columns, cells, strict=True)}
    gpus = cell.pop("gpus") or 0
    model = recipe.models[table.size]
    corrections = [c for c in recipe.corrections if c.size == table.size and (not c.gpus or gpus in c.gpus)]
    runs = cell | {c.column: c.value for c in corrections}
    tp, pp, cp = (runs.get(name) or 1 for name in ("tp", "pp", "cp"))
    vp, mbs, gbs = (runs.get(name) or 1 for name in ("vp", "mbs", "gbs"))
    layers = runs.get("layers") or model.layers
    dp = gpus // (tp * pp * cp)
    note = table.notes.get(str(gpus))
    return Row(
        size=table.size,
        gpu=table.gpu,
        dtype=dtype,
        gpus=gpus,
        scaling=table.scaling,
        tp=tp,
        pp=pp,
        cp=cp,
        ep=runs.get("ep") or 1,
        vp=vp if vp > 1 else None,
        mbs=mbs,
        gbs=gbs,
        seq_len=runs.get("seq_len") or model.seq_len,
        layers=layers,
        dp=dp,
        ga=gbs // (mbs * dp) if dp else 0,
        printed={name: cell.get(name) for name in PRINTED_COLUMNS},
        notes=(*((note,) if note else ()), *(f"{c.reason} ({c.source})" for c in corrections)),
        proxy=layers < model.layers,
        source=table.source,
    )


@lru_cache(maxsize=4096)
def gbs_by_rule(rule: str, gpus: int) -> int | None:
    """Global batch size by a table's `gbs_rule` at a scale; None if it is not a whole number of samples.

    Raises ValueError for a rule that is neither `const N` nor a positive number or fraction of the GPU count.
    """
    kind, _, constant = rule.partition(" ")
    gbs = Fraction(constant) if kind == "const" else Fraction(rule) * gpus
    if gbs <= 0:
        raise ValueError(f"not positive: {rule}")
    return gbs.numerator if gbs.denominator == 1 else None


def _result(recipe: Recipe, table: ResultTable, index: int) -> ResultRow:
    days = table.days_per_1t_tokens[index] if table.days_per_1t_tokens else "NA"
    return ResultRow(
        size=table.size,
        gpu=table.gpu,
        dtype=table.dtype,
        gpus=table.gpus[index],
        scaling=table.scaling,
        step_time_s=table.step_time_s[index],
        tokens_per_s=table.tokens_per_s[index],
        mfu_pct=table.mfu_pct[index],
        days_per_1t_tokens=None if days == "NA" else days,
        source=table.source,
        note=table.notes.get(str(table.gpus[index])),
        release=table.release,
        variant=table.precision_variant or recipe.variant(table.dtype),
        container=table.container if table.release else recipe.gpus[table.gpu].container,
    )
