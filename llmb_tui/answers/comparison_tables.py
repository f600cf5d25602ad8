"""Comparisons as tables: runs, groups of repeats, differences, changes, scaling, nodes. Pure."""

from __future__ import annotations

from llmb_tui.analysis.compare import Comparison
from llmb_tui.analysis.likeness import distinctions
from llmb_tui.answers.table import Column, Table, quantity
from llmb_tui.language.node_list import compress
from llmb_tui.language.quantities import (
    days_digits,
    given,
    percent_digits,
    step_time_digits,
    tflops,
    tokens_per_s,
    two_digits,
)

_FIGURES: tuple[Column, ...] = (
    Column("mean s", quantity("steady.mean", step_time_digits)),
    Column("median s", quantity("steady.median", step_time_digits)),
    Column("deviation s", quantity("steady.stdev", two_digits)),
    Column("tokens/s", quantity("figures.tokens_per_s", tokens_per_s)),
    Column("TFLOPS/GPU", quantity("figures.tflops_per_gpu", tflops)),
    Column("MFU %", quantity("figures.mfu_pct", percent_digits)),
    Column("days/1T", quantity("figures.days_per_1t_tokens", days_digits)),
    Column("of published %", quantity("of_published_pct", percent_digits)),
    Column("verdict", "verdict.result"),
)
RUN: tuple[Column, ...] = (
    Column("run", "id"),
    Column("configuration", "configuration.label"),
    Column("release", "configuration.release"),
    Column("cluster", "cluster"),
    Column("procedure", "procedure"),
    Column("state", "state"),
    Column("step s", quantity("step_time_s", step_time_digits)),
    Column("rule", "rule_words"),
    *_FIGURES,
)
"""Of runs; step times by the recipe's rule, and of the steps that count."""
_GROUP: tuple[Column, ...] = (
    Column("runs", lambda one: len(one.runs)),
    Column("mean s", quantity("mean_s", step_time_digits)),
    Column("noise %", quantity("noise_pct", two_digits)),
    Column("± mean %", quantity("half_width_pct", two_digits)),
    Column("± own steps %", quantity("within_run_pct", two_digits)),
    Column("published s", quantity("published_s", given)),
    Column("of published %", quantity("of_published_pct", percent_digits)),
)
POINT: tuple[Column, ...] = (
    Column("GPUs", "gpus"),
    Column("runs", lambda one: len(one.group.runs)),
    Column("step s", quantity("group.mean_s", step_time_digits)),
    Column("tokens/s", quantity("tokens_per_s", tokens_per_s)),
    Column("efficiency %", quantity("efficiency_pct", percent_digits)),
    Column("± %", quantity("efficiency_half_width_pct", two_digits)),
    Column("published s", quantity("published_s", given)),
    Column("published efficiency %", quantity("published_efficiency_pct", percent_digits)),
)
"""Of a scaling curve."""
NODE: tuple[Column, ...] = (
    Column("node", lambda one: compress(one.nodes)),
    Column("runs with", "runs_with"),
    Column("without", "runs_without"),
    Column("difference %", quantity(lambda one: _hundredths(one.difference_pct), two_digits)),
    Column("noise %", quantity(lambda one: _hundredths(one.noise_pct), two_digits)),
    Column("chance", quantity("chance", two_digits)),
    Column("", "words"),
)
"""Of nodes with their evidence; `chance`: how likely noise alone lets any node come out as far."""
CHANGE: tuple[Column, ...] = (
    Column("", "part"),
    Column("name", "name"),
    Column("before", lambda one: one.before or ""),
    Column("after", lambda one: one.after or ""),
)
"""Of what else differs between two runs."""


def comparison_table(comparison: Comparison) -> Table:
    """Runs on a terminal: what all of them have in common is left out."""
    names = dict(zip((run.id for run in comparison.runs), distinctions(comparison.runs), strict=True))
    columns: tuple[Column, ...] = (
        Column("run", "id"),
        Column("", lambda run: names[run.id]),
        Column("step s", quantity("step_time_s", step_time_digits)),
    )
    return Table.by((*columns, *_FIGURES), comparison.runs)


def groups_table(comparison: Comparison) -> Table:
    """Repeats with their noise: between runs, of their mean, and for a single run by its own steps."""
    return Table.by((Column("", comparison.name), *_GROUP), comparison.groups)


def contrasts_table(comparison: Comparison) -> Table:
    """What differs, and whether that is more than the noise."""
    columns: tuple[Column, ...] = (
        Column("base", lambda one: comparison.name(one.base)),
        Column("other", lambda one: comparison.name(one.other)),
        Column("difference %", quantity("difference_pct", two_digits)),
        Column("± %", quantity("half_width_pct", two_digits)),
        Column("outcome", "outcome"),
        Column("", "words"),
    )
    return Table.by(columns, comparison.contrasts)


def _hundredths(percent: float | None) -> float | None:
    return None if percent is None else round(percent, 2)
