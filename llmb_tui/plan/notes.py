"""What is odd about the published numbers that a plan shows: problems of severity `note`."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.catalog.rows import ResultRow, Row
from llmb_tui.plan.draft import Draft
from llmb_tui.plan.estimate import Expectation
from llmb_tui.plan.flops import flops_per_sample
from llmb_tui.plan.plan import Estimate, Memory, Problem


def row_notes(draft: Draft, row: Row) -> Iterator[Problem]:
    """Where the script runs something else than the README prints, and what is odd about the row or the model."""
    corrections = [c for c in draft.recipe.corrections if c.size == row.size and (not c.gpus or row.gpus in c.gpus)]
    for correction in corrections:
        yield note(correction.column, correction.reason)
    if draft.listed:
        for text in row.notes:
            if not any(text.startswith(correction.reason) for correction in corrections):
                yield note("printed", text)
    if draft.model.note:
        yield note("size", draft.model.note)


def result_notes(draft: Draft, result: ResultRow, estimate: Estimate) -> Iterator[Problem]:
    """A misprint, and the MFU where the printed one was made with a formula that upstream corrected."""
    if result.note:
        yield note("published", result.note)
    printed = draft.recipe.printed_flops
    if printed:
        flops = flops_per_sample(printed, draft.model, draft.parallelism.layers, draft.parallelism.seq_len)
        yield note(
            "mfu_pct",
            f"Printed {result.mfu_pct:g} %, made with an older formula ({_scientific(flops)} FLOPs per sample); "
            f"the corrected one ({_scientific(estimate.model_flops_per_sample)}) gives {estimate.mfu_pct:.1f} %.",
        )


def formula_notes(draft: Draft) -> Iterator[Problem]:
    """What keeps an MFU from being compared with that of another recipe."""
    if draft.recipe.flops.causal:
        yield note("mfu_pct", "The formula counts attention scores half (causal); the other recipes count them whole.")


def estimate_notes(expected: Expectation, memory: Memory | None) -> Iterator[Problem]:
    """Where a run can be slower than the band of a modelled step time says."""
    high = expected.step_time_s * (1 + expected.half_width_pct / 100)
    if expected.new_layout:
        yield note(
            "estimate",
            f"Nobody has published this layout. Published ones are tuned: a poor one can take longer than {high:.3g} s",
        )
    if expected.method == "modelled" and memory and memory.verdict == "needs recompute or sharding":
        yield note(
            "estimate", "The recomputation or sharding that memory asks for takes time that is not in the estimate"
        )


def note(field: str, reason: str) -> Problem:
    """Something to know; there is nothing to mend."""
    return Problem(field, "note", reason if reason.endswith(".") else f"{reason}.", "")


def _scientific(number: float) -> str:
    return f"{number:.4g}".replace("e+", "e")
