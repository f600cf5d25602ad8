"""Comparisons as tables: runs, groups of repeats, differences, changes, scaling, nodes. Pure."""

from __future__ import annotations

from llmb_tui.analysis.compare import Comparison
from llmb_tui.analysis.likeness import distinctions
from llmb_tui.analysis.table import Cell, Column, Table
from llmb_tui.language.node_list import compress

_FIGURES: tuple[Column, ...] = (
    ("mean s", "steady.mean"),
    ("median s", "steady.median"),
    ("deviation s", "steady.stdev"),
    ("tokens/s", "figures.tokens_per_s"),
    ("TFLOPS/GPU", "figures.tflops_per_gpu"),
    ("MFU %", "figures.mfu_pct"),
    ("days/1T", "figures.days_per_1t_tokens"),
    ("of published %", "of_published_pct"),
    ("verdict", "verdict.result"),
)
RUN: tuple[Column, ...] = (
    ("run", "id"),
    ("configuration", "configuration.label"),
    ("release", "configuration.release"),
    ("cluster", "cluster"),
    ("procedure", "procedure"),
    ("state", "state"),
    ("step s", "step_time_s"),
    ("rule", "rule_words"),
    *_FIGURES,
)
"""Of runs; step times by the recipe's rule, and of the steps that count."""
_GROUP: tuple[Column, ...] = (
    ("runs", lambda one: len(one.runs)),
    ("mean s", "mean_s"),
    ("noise %", "noise_pct"),
    ("± mean %", "half_width_pct"),
    ("± own steps %", "within_run_pct"),
    ("published s", "published_s"),
    ("of published %", "of_published_pct"),
)
POINT: tuple[Column, ...] = (
    ("GPUs", "gpus"),
    ("runs", lambda one: len(one.group.runs)),
    ("step s", "group.mean_s"),
    ("tokens/s", "tokens_per_s"),
    ("efficiency %", "efficiency_pct"),
    ("± %", "efficiency_half_width_pct"),
    ("published s", "published_s"),
    ("published efficiency %", "published_efficiency_pct"),
)
"""Of a scaling curve."""
NODE: tuple[Column, ...] = (
    ("node", lambda one: compress(one.nodes)),
    ("runs with", "runs_with"),
    ("without", "runs_without"),
    ("difference %", lambda one: _hundredths(one.difference_pct)),
    ("noise %", lambda one: _hundredths(one.noise_pct)),
    ("chance", "chance"),
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
    columns: tuple[Column, ...] = (("run", "id"), ("", lambda run: names[run.id]), ("step s", "step_time_s"))
    return Table.by((*columns, *_FIGURES), comparison.runs)


def groups_table(comparison: Comparison) -> Table:
    """Repeats with their noise: between runs, of their mean, and for a single run by its own steps."""
    return Table.by((("", comparison.name), *_GROUP), comparison.groups)


def contrasts_table(comparison: Comparison) -> Table:
    """What differs, and whether that is more than the noise."""
    columns: tuple[Column, ...] = (
        ("base", lambda one: comparison.name(one.base)),
        ("other", lambda one: comparison.name(one.other)),
        ("difference %", "difference_pct"),
        ("± %", "half_width_pct"),
        ("outcome", "outcome"),
        ("", "words"),
    )
    return Table.by(columns, comparison.contrasts)


def _hundredths(percent: float | None) -> Cell:
    return None if percent is None else round(percent, 2)
