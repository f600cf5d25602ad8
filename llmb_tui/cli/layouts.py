"""`plan --layouts`: which layouts are valid for a selection, and how fast they should be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from llmb_tui.cli.output import print_json, print_line, print_table
from llmb_tui.plan.document import document
from llmb_tui.plan.layouts import Layout, Layouts
from llmb_tui.plan.plan import Plan

_HEADINGS = ("TP", "PP", "CP", "EP", "DP", "VP", "MBS", "GA", "step s", "low", "high", "memory GB", "memory", "marks")


def print_layouts(made: Plan, found: Layouts, *, as_json: bool) -> None:
    """The ranking: a table with a line above and below it, or one JSON document."""
    if as_json:
        print_json(layouts_document(made, found))
        return
    chosen, runs = made.selection, made.parallelism
    print_line(
        f"{chosen.workload}@{chosen.release} {chosen.size} · {chosen.gpu.upper()} · {chosen.dtype} · "
        f"{chosen.scale} GPUs · GBS {runs.gbs}, sequence {runs.seq_len}, {runs.layers} layers"
    )
    if found.best:
        print_table(_HEADINGS, map(_row, found.best))
    print_line(
        f"{len(found.best)} of {found.valid:,} valid layouts. Two whose bands overlap are equally fast as far as is "
        f"known; a layout that nobody has tuned can be slower than its band."
    )


def layouts_document(made: Plan, found: Layouts) -> dict[str, Any]:
    """The JSON object: the selection, how many layouts are valid, and the best of them as parts of a plan."""
    return {
        "selection": document(made)["selection"],
        "valid": found.valid,
        "layouts": [_document(made, layout) for layout in found.best],
    }


def _document(made: Plan, layout: Layout) -> dict[str, Any]:
    parts = document(replace(made, parallelism=layout.parallelism, estimate=layout.estimate, memory=layout.memory))
    return {
        "overrides": layout.overrides.given(),
        **{name: parts[name] for name in ("parallelism", "estimate", "memory")},
        "published": layout.published,
        "unusual": list(layout.unusual),
    }


def _row(layout: Layout) -> tuple[str, ...]:
    runs, estimate, memory = layout.parallelism, layout.estimate, layout.memory
    numbers = (runs.tp, runs.pp, runs.cp, runs.ep, runs.dp, runs.vp, runs.mbs, runs.ga)
    seconds = (estimate.step_time_s, estimate.low_s, estimate.high_s) if estimate else (None, None, None)
    return (
        *("–" if number is None else str(number) for number in numbers),
        *("–" if one is None else f"{one:.4g}" for one in seconds),
        f"{memory.peak_gb:.1f}" if memory else "–",
        memory.verdict if memory else "–",
        " ".join([*(["published"] if layout.published else []), *layout.unusual]),
    )
