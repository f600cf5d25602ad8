"""Divisibility rules of a layout, for preset rows, the checks of a plan and the list of layouts."""

from __future__ import annotations

import math

from llmb_tui.catalog.recipe import Model


def shared_heads(model: Model) -> int:
    """The number that TP must divide: query heads and key/value groups are split over the tensor ranks.

    Source: Megatron Core 0.11 to 0.14, transformer_config.py, which refuses a TP that does not divide both.
    """
    return math.gcd(model.heads, model.query_groups)


def stage_places(model: Model, layers: int) -> int:
    """The number that PP x VP must divide: the layers, plus those that the embedding and the loss stand for."""
    return layers + model.stage_extra_layers


def sequence_pieces(tp: int, cp: int) -> int:
    """The number that must divide the sequence length.

    Context parallelism gives each rank two pieces of a causal sequence, sequence parallelism splits them over the
    tensor ranks.
    """
    return tp * cp * (2 if cp > 1 else 1)


def fills_pipeline(ga: int, pp: int) -> bool:
    """True if virtual stages can run: the micro-batches come in groups of PP.

    Source: Megatron Core 0.11 to 0.14, schedules.py, which stops with an error for any other number.
    """
    return ga % pp == 0
