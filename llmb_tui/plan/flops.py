"""Floating point operations of one training sequence, as the recipes' own formulas count them."""

from __future__ import annotations

from llmb_tui.catalog.recipe import Flops, Model


def flops_per_sample(flops: Flops, model: Model, layers: int, seq_len: int) -> float:
    """FLOPs of one sequence, forward and backward, not rounded.

    `layers` and `seq_len` are those that run: a proxy has fewer layers than the model, and its output layer
    is counted whole. The formula is in `Flops`; its variants differ between the recipes' READMEs.
    """
    groups = model.query_groups / model.heads if flops.grouped_queries else 1.0
    scores = seq_len / model.hidden / (2 if flops.causal else 1)
    attention = 12 * layers * model.hidden**2 * (1 + groups + scores)
    mlp = (18 if model.gated else 12) * layers * model.ffn * model.hidden * model.experts_per_token
    embedding = 6 * model.vocab * model.hidden
    return seq_len * (attention + mlp + embedding)
