"""Comparisons as tables: runs, groups of repeats, differences, changes, scaling, nodes. Pure."""

from __future__ import annotations

from llmb_tui.analysis.compare import Comparison
from llmb_tui.analysis.likeness import distinctions
from llmb_tui.analysis.table import Column, Table, quantity
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
    ("mean s", quantity("steady.mean", step_time_digits)),
    ("median s", quantity("steady.median", step_time_digits)),
    ("deviation s", quantity("steady.stdev", two_digits)),
    ("tokens/s", quantity("figures.tokens_per_s", tokens_per_s)),
    ("TFLOPS/GPU", quantity("figures.tflops_per_gpu", tflops)),
    ("MFU %", quantity("figures.mfu_pct", percent_digits)),
    ("days/1T", quantity("figures.days_per_1t_tokens", days_digits)),
    ("of published %", quantity("of_published_pct", percent_digits)),
    ("verdict", "verdict.result"),
)
RUN: tuple[Column, ...] = (
    ("run", "id"),
    ("configuration", "configuration.label"),
    ("release", "configuration.release"),
    ("cluster", "cluster"),
    ("procedure", "procedure"),
    ("state", "state"),
    ("step s", quantity("step_time_s", step_time_digits)),
    ("rule", "rule_words"),
    *_FIGURES,
)
"""Of runs; step times by the recipe's rule, and of the steps that count."""
_GROUP: tuple[Column, ...] = (
    ("runs", lambda one: len(one.runs)),
    ("mean s", quantity("mean_s", step_time_digits)),
    ("noise %", quantity("noise_pct", two_digits)),
    ("± mean %", quantity("half_width_pct", two_digits)),
    ("± own steps %", quantity("within_run_pct", two_digits)),
    ("published s", quantity("published_s", given)),
    ("of published %", quantity("of_published_pct", percent_digits)),
)
POINT: tuple[Column, ...] = (
    ("GPUs", "gpus"),
    ("runs", lambda one: len(one.group.runs)),
    ("step s", quantity("group.mean_s", step_time_digits)),
    ("tokens/s", quantity("tokens_per_s", tokens_per_s)),
    ("efficiency %", quantity("efficiency_pct", percent_digits)),
    ("± %", quantity("efficiency_half_width_pct", two_digits)),
    ("published s", quantity("published_s", given)),
    ("published efficiency %", quantity("published_efficiency_pct", percent_digits)),
)
"""Of a scaling curve."""
NODE: tuple[Column, ...] = (
    ("node", lambda one: compress(one.nodes)),
    ("runs with", "runs_with"),
    ("without", "runs_without"),
    ("difference %", quantity(lambda one: _hundredths(one.difference_pct), two_digits)),
    ("noise %", quantity(lambda one: _hundredths(one.noise_pct), two_digits)),
    ("chance", quantity("chance", two_digits)),
    ("", "words"),
)
"""Of nodes with their evidence; `chance`: how likely noise alone lets any node come out as far."""
CHANGE: tuple[Column, ...] = (
    ("", "part"),
    ("name", "name"),
    ("before", lambda one: one.before or ""),
    ("after", lambda one: one.after or ""),
)
"""Of what else differs between two runs."""


def comparison_table(comparison: Comparison) -> Table:
    """Runs on a terminal: what all of them have in common is left out."""
    names = dict(zip((run.id for run in comparison.runs), distinctions(comparison.runs), strict=True))
    columns: tuple[Column, ...] = (
        ("run", "id"),
        ("", lambda run: names[run.id]),
        ("step s", quantity("step_time_s", step_time_digits)),
    )
    return Table.by((*columns, *_FIGURES), comparison.runs)


def groups_table(comparison: Comparison) -> Table:
    """Repeats with their noise: between runs, of their mean, and for a single run by its own steps."""
    return Table.by((("", comparison.name), *_GROUP), comparison.groups)


def contrasts_table(comparison: Comparison) -> Table:
    """What differs, and whether that is more than the noise."""
    columns: tuple[Column, ...] = (
        ("base", lambda one: comparison.name(one.base)),
        ("other", lambda one: comparison.name(one.other)),
        ("difference %", quantity("difference_pct", two_digits)),
        ("± %", quantity("half_width_pct", two_digits)),
        ("outcome", "outcome"),
        ("", "words"),
    )
    return Table.by(columns, comparison.contrasts)


def _hundredths(percent: float | None) -> float | None:
    return None if percent is None else round(percent, 2)
