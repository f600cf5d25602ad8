"""`anchored`: what the model says, corrected by what was measured for the most similar configurations.

step time = modelled step time * measured / modelled step time of the anchor. The correction takes away what the model
does not know of a model, a machine or a release; `likeness` says how much of it carries over. What remains is the
error of the steps between the two, of which the band is made. With experts, leaving rows out shows a constant MFU to be
better than the model (2 against 4 %) but for the other precision, so that is what the anchor's step time follows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llmb_tui.catalog.rows import Row
from llmb_tui.plan import bands
from llmb_tui.plan.draft import Draft
from llmb_tui.plan.evidence import Anchor, Anchors, Evidence
from llmb_tui.plan.flops import flops_per_sample
from llmb_tui.plan.likeness import Likeness, question
from llmb_tui.plan.measured import Key
from llmb_tui.plan.physics import Terms
from llmb_tui.plan.plan import Parallelism

Pair = tuple[Anchors, Likeness]


@dataclass(frozen=True, slots=True)
class Anchored:
    """A step time in seconds, half its band in per cent, and what both rest on."""

    step_time_s: float
    half_width_pct: float
    anchor: str
    basis: str
    """In words."""
    new_layout: bool
    """True where nobody has published the layout."""


def anchored(draft: Draft, evidence: Evidence, work: Terms) -> Anchored | None:
    """The estimate from the best anchors that there are; None where nothing comparable was measured."""
    if evidence.model is None:
        return None
    asked = question(draft, evidence)
    for group in _groups(draft, evidence, asked.architecture):
        found = [(anchors, like) for anchors in group if (like := asked.likeness(anchors))]
        if found:
            return _from(draft, evidence, evidence.model.seconds(work), found)
    return None


def _groups(draft: Draft, evidence: Evidence, asked: Key) -> Iterator[list[Anchors]]:
    """Anchors in the order of trust: the same GPU type before others, the same model before others."""
    for gpu in _gpus(draft, evidence):
        there = evidence.anchors.get(gpu, ())
        yield [anchors for anchors in there if anchors.architecture == asked]
        yield [anchors for anchors in there if anchors.architecture != asked and anchors.first.model.experts == 1]


def _gpus(draft: Draft, evidence: Evidence) -> Iterator[str]:
    """The GPU type itself; for a dense model then those of its generation, and the one the model was fitted on."""
    asked, chips = draft.selection.gpu, evidence.chips
    yield asked
    if draft.model.experts == 1:
        yield from (
            gpu for gpu in evidence.anchors if gpu != asked and chips[gpu].generation == chips[asked].generation
        )
        yield evidence.fitted_on or asked


def _from(draft: Draft, evidence: Evidence, modelled_s: float, found: Sequence[Pair]) -> Anchored:
    """From the anchor with the narrowest band; of several such, from the one at the nearest scale."""
    narrowest = min(like.half_pct for _, like in found) + 1e-9
    best = [(anchor, like) for anchors, like in found if like.half_pct <= narrowest for anchor in anchors.at]
    anchor, like = min(best, key=lambda pair: _doublings(draft, pair[0]))
    row = anchor.measured.row
    if draft.model.experts > 1 and row.dtype == draft.selection.dtype:
        more = _flops(draft, draft.parallelism, draft.selection.scale) / _flops(draft, row, row.gpus)
        step = anchor.measured.step_time_s * more
    else:
        level = evidence.levels.get(row.gpu, 0.0)
        step = modelled_s * math.exp(level + like.share * (anchor.correction - level))
    away = _doublings(draft, anchor) if like.share else 0.0  # other models count as a whole, whatever their scales
    half = bands.quadrature(like.half_pct, bands.beyond(away))
    return Anchored(step, half, _named(anchor, like, found), like.basis, like.new_layout)


def _doublings(draft: Draft, anchor: Anchor) -> float:
    """How far the anchor's scale is from the one that is asked."""
    return abs(math.log2(anchor.measured.row.gpus / draft.selection.scale))


def _named(anchor: Anchor, like: Likeness, found: Sequence[Pair]) -> str:
    if like.share:
        return anchor.measured.named
    count = sum(len(anchors.at) for anchors, _ in found)
    return f"{count} step times, one of them {anchor.measured.named}"


def _flops(draft: Draft, runs: Row | Parallelism, gpus: int) -> float:
    """Of one GPU in a step, by the recipe's formula."""
    return flops_per_sample(draft.recipe.flops, draft.model, runs.layers, runs.seq_len) * runs.gbs / gpus
