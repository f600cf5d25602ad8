"""What divides what: the arithmetic of a layout, for the checks of a draft and for the list of layouts."""

from __future__ import annotations

from math import gcd

from llmb_tui.catalog.recipe import Model
from llmb_tui.plan.draft import Draft


def shared_heads(model: Model) -> int:
    """What tensor parallelism must divide: query heads and key/value groups are split over its ranks.

    Source: Megatron Core 0.11 to 0.14, transformer_config.py, which refuses a TP that does not divide both.
    """
    return gcd(model.heads, model.query_groups)


def tensor_reach(draft: Draft) -> int:
    """The largest TP that stays on NVLink: a node, or further where the recipe's own TP reaches further."""
    return max(draft.gpu.gpus_per_node, draft.base.row_for(draft.selection.scale).tp)


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


def runs_as_listed(draft: Draft) -> bool:
    """True where what runs is the recipe's own row for this scale."""
    if not draft.listed:
        return False
    row, runs = draft.base.rows[draft.selection.scale], draft.parallelism
    return (row.tp, row.pp, row.cp, row.ep, row.vp, row.mbs, row.gbs, row.seq_len, row.layers) == (
        runs.tp, runs.pp, runs.cp, runs.ep, runs.vp, runs.mbs, runs.gbs, runs.seq_len, runs.layers,
    )  # fmt: skip
