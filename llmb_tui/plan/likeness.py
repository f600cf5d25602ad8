"""`Likeness`: what lies between a measured step time and one that is asked, and how much they have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass

from llmb_tui.plan import bands
from llmb_tui.plan.curves import layout_of
from llmb_tui.plan.draft import Draft
from llmb_tui.plan.evidence import Anchors, Evidence
from llmb_tui.plan.measured import Key, architecture

_SEQUENCE_DOUBLINGS = 2.0
"""Sequences that are more than four times as long or as short are not compared."""
# How much of an anchor's correction is its own, and not its GPU type's: all of it for the same model; half in the
# other precision and none for another model, since leaving these out showed that they have little more in common.
_OTHER_PRECISION = 0.5
_OTHER_MODEL = 0.0


@dataclass(frozen=True, slots=True)
class Likeness:
    """How far an anchor is from what is asked, but for the scale, and what the two have in common."""

    half_pct: float
    """Half-width of all differences together."""
    basis: str
    """In words."""
    share: float
    """Of the anchor's own correction that counts."""
    new_layout: bool
    """True where the layout is one that nobody has published."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and what every comparison with an anchor needs of it."""

    draft: Draft
    evidence: Evidence
    architecture: Key
    layout: tuple[int | None, ...]
    listed: bool
    """True where the recipe lists the layout for this scale and GPU type."""

    def likeness(self, anchors: Anchors) -> Likeness | None:
        """What anchors have in common with what is asked; None where nothing follows from them."""
        draft, row, runs = self.draft, anchors.first.row, self.draft.parallelism
        experts = draft.model.experts > 1
        same_model = anchors.architecture == self.architecture
        new_layout = self.layout != layout_of(row) if same_model else not self.listed
        other_release = anchors.first.release != draft.recipe.release
        doublings = abs(math.log2(runs.seq_len / row.seq_len))
        if doublings > _SEQUENCE_DOUBLINGS or (experts and (not same_model or (new_layout and other_release))):
            return None
        found = [*self._hardware(anchors, same_model), *self._precision(anchors, same_model)]
        if new_layout:
            found.append((bands.LAYOUT, "the same model in another layout"))
        if doublings:
            found.append((bands.SEQUENCE * doublings, "the same model with another sequence length"))
        if same_model and row.layers != runs.layers:
            found.append((bands.DEPTH, "the same model with other layers"))
        if same_model and row.gbs * draft.selection.scale != runs.gbs * row.gpus:
            found.append((bands.BATCH, "the same layout with another batch"))
        found.append((bands.CLUSTER, "the same layout on other scales"))
        half = bands.quadrature(*(half for half, _ in found), bands.RELEASE if other_release else 0.0)
        share = 1.0 if experts or row.dtype == draft.selection.dtype else _OTHER_PRECISION
        return Likeness(
            half, found[0][1], share if same_model else _OTHER_MODEL, new_layout=new_layout and not self.listed
        )

    def _hardware(self, anchors: Anchors, same_model: bool) -> list[tuple[float, str]]:
        asked, there, chips = self.draft.selection.gpu, anchors.first.row.gpu, self.evidence.chips
        words = f"{'the same model' if same_model else 'other models'} on {there.upper()}"
        found = []
        if there != asked:
            alike = chips[there].generation == chips[asked].generation
            found.append((bands.SIBLING, words) if alike else (bands.UNSEEN_GPU, f"{words}, another generation"))
        if not same_model:
            found.append((bands.SIZE if asked == self.evidence.fitted_on else bands.SIZE_ELSEWHERE, words))
        return found

    def _precision(self, anchors: Anchors, same_model: bool) -> list[tuple[float, str]]:
        dtype = anchors.first.row.dtype
        if dtype == self.draft.selection.dtype:
            return []
        half = bands.PRECISION_OF_EXPERTS if self.draft.model.experts > 1 else bands.PRECISION
        return [(half, f"the same model in {dtype}" if same_model else f"other models in {dtype}")]


def question(draft: Draft, evidence: Evidence) -> Question:
    """What is asked of the anchors."""
    base, asked = draft.base, draft.selection
    layout = layout_of(draft.parallelism)
    listed = base.gpu == asked.gpu and layout_of(base.row_for(asked.scale)) == layout
    return Question(draft, evidence, architecture(draft.model), layout, listed)
