"""`anchored_estimate`: the modelled step time, corrected by measurements of the most similar configurations.

step time = modelled step time * measured / modelled step time of the anchor. The correction removes the model's errors
for an architecture, a machine or a release; `Similarity` has the share of it that carries over. The band covers the
remaining differences. For models with experts, leaving rows out shows that a constant MFU predicts better than the
model (2 against 4 %), except for the other precision; so the anchor's step time is scaled by FLOPs there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from llmb_tui.catalog.recipe import VARIANT_WORDS, Variant
from llmb_tui.catalog.rows import Row
from llmb_tui.plan import bands
from llmb_tui.plan.evidence import Anchor, Anchors, Evidence
from llmb_tui.plan.measurements import architecture, layout_of
from llmb_tui.plan.physics import Terms
from llmb_tui.plan.plan import Expectation, Parallelism
from llmb_tui.plan.resolved import ResolvedSelection
from llmb_tui.plan.throughput import flops_per_sample

_SEQUENCE_DOUBLINGS = 2.0
"""Sequence lengths that differ by more than a factor of four are not compared."""
# The share of an anchor's correction that applies beyond its GPU type's: all of it for the same model, half in the
# other precision, none for another model. Leaving rows out showed that these have little else in common.
_OTHER_PRECISION = 0.5
_OTHER_MODEL = 0.0


Pair = tuple[Anchors, "Similarity"]


def anchored_estimate(resolved: ResolvedSelection, evidence: Evidence, work: Terms) -> Expectation | None:
    """The estimate from the best anchors; None without a comparable measurement."""
    if evidence.model is None:
        return None
    query = _AnchorQuery(resolved, evidence)
    for group in query.groups():
        pairs = [(anchors, like) for anchors in group if (like := query.similarity(anchors))]
        if pairs:
            return query.expectation(evidence.model.seconds(work), pairs)
    return None


@dataclass(frozen=True, slots=True)
class Similarity:
    """Similarity of anchors to the configuration to estimate, apart from the scale."""

    half_pct: float
    """Half-width of the band from all differences, per cent."""
    basis: str
    """The largest difference in words, such as `the same model in fp8`."""
    share: float
    """Share of the anchor's correction that applies, 0 to 1."""
    new_layout: bool
    """True if the layout was never published."""


def other_variant(resolved: ResolvedSelection, variant: Variant | None) -> str:
    """A sentence about a step time with another scaling of the precision; empty for the recipe's scaling."""
    if variant == resolved.variant:
        return ""
    dtype, ours = resolved.selection.dtype.upper(), VARIANT_WORDS[resolved.variant]
    return f"The expected step time is based on {dtype} with {VARIANT_WORDS[variant]}; the recipe uses {ours}."


class _AnchorQuery:
    """The configuration to estimate, prepared for comparisons with anchors."""

    def __init__(self, resolved: ResolvedSelection, evidence: Evidence) -> None:
        base, selection = resolved.base, resolved.selection
        self._resolved = resolved
        self._selection = selection
        self._evidence = evidence
        self._architecture = architecture(resolved.model)
        self._layout = layout_of(resolved.parallelism)
        self._listed = base.gpu == selection.gpu and layout_of(base.row_for(selection.scale)) == self._layout
        """True if the recipe lists the layout for this scale and GPU type."""

    def groups(self) -> Iterator[list[Anchors]]:
        """Groups of anchors, most trusted first: same GPU type before others, same model before others."""
        for gpu in self._gpus():
            of_gpu = self._evidence.anchors.get(gpu, ())
            yield [anchors for anchors in of_gpu if anchors.architecture == self._architecture]
            others = [anchors for anchors in of_gpu if anchors.architecture != self._architecture]
            yield [anchors for anchors in others if anchors.first.model.experts == 1]

    def _gpus(self) -> Iterator[str]:
        """The GPU type; for a dense model also its generation and the GPU type of the fit."""
        gpu_type, chips, anchors = self._selection.gpu, self._evidence.chips, self._evidence.anchors
        yield gpu_type
        if self._resolved.model.experts == 1:
            generation = chips[gpu_type].generation
            yield from (gpu for gpu in anchors if gpu != gpu_type and chips[gpu].generation == generation)
            yield self._evidence.fitted_on or gpu_type

    def similarity(self, anchors: Anchors) -> Similarity | None:
        """Similarity of anchors to the configuration; None if they cannot predict it."""
        resolved, row, runs = self._resolved, anchors.first.row, self._resolved.parallelism
        experts = resolved.model.experts > 1
        same_model = anchors.architecture == self._architecture
        new_layout = self._layout != layout_of(row) if same_model else not self._listed
        other_release = anchors.first.release != resolved.recipe.release
        doublings = abs(math.log2(runs.seq_len / row.seq_len))
        if doublings > _SEQUENCE_DOUBLINGS or (experts and (not same_model or (new_layout and other_release))):
            return None
        steps = [*self._hardware(anchors, same_model), *self._precision(anchors, same_model)]
        if new_layout:
            steps.append((bands.LAYOUT, "the same model in another layout"))
        if doublings:
            steps.append((bands.SEQUENCE * doublings, "the same model with another sequence length"))
        if same_model and row.layers != runs.layers:
            steps.append((bands.DEPTH, "the same model with other layers"))
        if same_model and row.gbs * resolved.selection.scale != runs.gbs * row.gpus:
            steps.append((bands.BATCH, "the same layout with another batch"))
        steps.append((bands.CLUSTER, "the same layout on other scales"))
        half = bands.quadrature(*(half for half, _ in steps), bands.RELEASE if other_release else 0.0)
        share = 1.0 if experts or row.dtype == resolved.selection.dtype else _OTHER_PRECISION
        return Similarity(
            half, steps[0][1], share if same_model else _OTHER_MODEL, new_layout=new_layout and not self._listed
        )

    def _hardware(self, anchors: Anchors, same_model: bool) -> list[tuple[float, str]]:
        gpu, other, chips = self._resolved.selection.gpu, anchors.first.row.gpu, self._evidence.chips
        words = f"{'the same model' if same_model else 'other models'} on {other.upper()}"
        steps = []
        if other != gpu:
            alike = chips[other].generation == chips[gpu].generation
            steps.append((bands.SIBLING, words) if alike else (bands.UNSEEN_GPU, f"{words}, another generation"))
        if not same_model:
            steps.append((bands.SIZE if gpu == self._evidence.fitted_on else bands.SIZE_ELSEWHERE, words))
        return steps

    def _precision(self, anchors: Anchors, same_model: bool) -> list[tuple[float, str]]:
        dtype = anchors.first.row.dtype
        if dtype == self._resolved.selection.dtype:
            if anchors.first.variant == self._resolved.variant:
                return []
            words = f"{dtype} with {VARIANT_WORDS[anchors.first.variant]}"
            return [(bands.VARIANT, f"the same model in {words}" if same_model else f"other models in {words}")]
        half = bands.PRECISION_OF_EXPERTS if self._resolved.model.experts > 1 else bands.PRECISION
        return [(half, f"the same model in {dtype}" if same_model else f"other models in {dtype}")]

    def expectation(self, modelled_s: float, pairs: Sequence[Pair]) -> Expectation:
        """The expectation from the anchor with the narrowest band, at the nearest scale."""
        narrowest = min(like.half_pct for _, like in pairs) + 1e-9
        best = [(anchor, like) for anchors, like in pairs if like.half_pct <= narrowest for anchor in anchors.at]
        anchor, like = min(best, key=lambda pair: self._doublings(pair[0]))
        row = anchor.measurement.row
        if self._resolved.model.experts > 1 and row.dtype == self._selection.dtype:
            more = self._flops(self._resolved.parallelism, self._selection.scale) / self._flops(row, row.gpus)
            step = anchor.measurement.step_time_s * more
        else:
            level = self._evidence.levels.get(row.gpu, 0.0)
            step = modelled_s * math.exp(level + like.share * (anchor.correction - level))
        description, away = anchor.measurement.description, 0.0
        if like.share:
            away = self._doublings(anchor)
        else:  # other models count together, at any scale
            description = f"{sum(len(anchors.at) for anchors, _ in pairs)} step times, one of them {description}"
        half = bands.quadrature(like.half_pct, bands.beyond(away))
        origin = anchor.measurement
        other = other_variant(self._resolved, origin.variant) if row.dtype == self._selection.dtype else ""
        return Expectation(
            step,
            half,
            "modelled",
            description,
            like.basis,
            new_layout=like.new_layout,
            other_variant=other,
            vboost=origin.recipe.always_vboost,
        )

    def _doublings(self, anchor: Anchor) -> float:
        """Doublings between the anchor's scale and the selected one."""
        return abs(math.log2(anchor.measurement.row.gpus / self._selection.scale))

    def _flops(self, runs: Row | Parallelism, gpus: int) -> float:
        """FLOPs of one GPU in a step, by the recipe's formula."""
        recipe, model = self._resolved.recipe, self._resolved.model
        return flops_per_sample(recipe.flops, model, runs.layers, runs.seq_len) * runs.gbs / gpus
