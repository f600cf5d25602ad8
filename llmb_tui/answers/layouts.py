"""`layouts_answer`: the valid layouts of a selection, the fastest by the estimate first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Fact, Grid, Text
from llmb_tui.answers.plan import memory_words, parallelism_column, plan_title, step_time_words
from llmb_tui.answers.table import Cell, Column, State, Table, expected_cell, quantity
from llmb_tui.language.quantities import count, gigabytes, percent_digits, step_time_digits
from llmb_tui.language.states import NO_ESTIMATE, memory_label
from llmb_tui.language.text import plural
from llmb_tui.plan.document import document
from llmb_tui.plan.plan import Plan

if TYPE_CHECKING:
    from llmb_tui.plan.layouts import Layout, Layouts

BANDS = (
    "If the bands of two layouts overlap, either can be the faster one. A layout that was never tuned can be slower "
    "than its band."
)


def _memory_use(layout: Layout) -> Cell:
    memory = layout.memory
    return None if memory is None else State(memory.verdict, memory_label(memory.verdict))


def _remarks(layout: Layout) -> str:
    return " ".join([*(["published"] if layout.published else []), *layout.unusual])


LAYOUT: tuple[Column, ...] = (
    *(parallelism_column(name, "parallelism.") for name in ("tp", "pp", "cp", "ep", "dp", "vp", "mbs", "ga")),
    Column("step s", lambda layout: expected_cell(layout.estimate)),
    Column("low s", quantity("estimate.low_s", step_time_digits)),
    Column("high s", quantity("estimate.high_s", step_time_digits)),
    Column("MFU %", quantity("estimate.mfu_pct", percent_digits)),
    Column("memory", quantity("memory.peak_gb", gigabytes)),
    Column("memory use", _memory_use),
    Column("remarks", _remarks),
)


def layouts_answer(plan: Plan, ranking: Layouts) -> Answer:
    """The layouts of a plan's selection."""
    return Answer(
        f"Layouts of {plan_title(plan)}",
        lambda: tuple(_blocks(plan, ranking)),
        lambda: {
            "selection": document(plan)["selection"],
            "valid": ranking.valid,
            "layouts": [_document(plan, layout) for layout in ranking.best],
        },
    )


def layouts_summary(ranking: Layouts) -> str:
    """Number of valid layouts, and of those that are listed."""
    if not ranking.best:
        return "no layout divides this number of GPUs, this batch and this model: change one of them"
    if ranking.valid <= len(ranking.best):
        return f"all {plural(ranking.valid, 'valid layout')}"
    return f"the fastest {len(ranking.best)} of {count(ranking.valid)} valid layouts"


def layout_facts(layout: Layout) -> Iterator[Fact]:
    """Step time and memory of a layout, and its unusual values."""
    estimate, memory = layout.estimate, layout.memory
    yield Fact("step time", step_time_words(estimate) if estimate else NO_ESTIMATE)
    if memory is not None:
        yield Fact("memory", memory_words(memory), tone=memory_label(memory.verdict).tone)
    yield from (Fact("unusual", words, tone="warning") for words in layout.unusual)


def _blocks(plan: Plan, ranking: Layouts) -> Iterator[Block]:
    batch = plan.parallelism
    sizes = f"GBS {count(batch.gbs)}, sequence {count(batch.seq_len)}, {plural(batch.layers, 'layer')}"
    yield Text(f"{plan_title(plan)} · {sizes}: {layouts_summary(ranking)}", strong=True)
    if ranking.best:
        yield Grid("", Table.by(LAYOUT, ranking.best))
        yield Text(BANDS)


def _document(plan: Plan, layout: Layout) -> dict[str, Any]:
    parts = document(replace(plan, parallelism=layout.parallelism, estimate=layout.estimate, memory=layout.memory))
    return {
        "overrides": layout.overrides.set_fields(),
        **{name: parts[name] for name in ("parallelism", "estimate", "memory")},
        "published": layout.published,
        "unusual": list(layout.unusual),
    }
