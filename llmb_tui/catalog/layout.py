"""What a layout must keep, and what divides what: for the rows of a preset, a plan's checks and the list of layouts."""

from __future__ import annotations

import math

from llmb_tui.catalog.recipe import Model


def shared_heads(model: Model) -> int:
    """What tensor parallelism must divide: query heads and key/value groups are split over its ranks.

    Source: Megatron Core 0.11 to 0.14, transformer_config.py, which refuses a TP that does not divide both.
    """
    return math.gcd(model.heads, model.query_groups)


def stage_places(model: Model, layers: int) -> int:
    """What PP x VP must divide: the layers, and what the embedding and the loss count for in this recipe."""
    return layers + model.stage_extra_layers


def sequence_pieces(tp: int, cp: int) -> int:
    """What must divide the sequence length.

    Context parallelism gives each rank two pieces of a causal sequence, sequence parallelism splits them over the
    tensor ranks.
    """
    return tp * cp * (2 if cp > 1 else 1)


def fills_pipeline(ga: int, pp: int) -> bool:
    """Whether virtual stages can run: the micro-batches come in groups of PP.

    Source: Megatron Core 0.11 to 0.14, schedules.py, which stops with an error for any other number.
    """
    return ga % pp == 0
