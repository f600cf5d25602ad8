"""The physics of a training step: the time of each kind of work at the hardware's peak rates.

Nothing here is fitted: each term is in seconds at peak, for the busiest rank; `step_model` has the coefficients. Forms:
Megatron's papers (arXiv 2104.04473 for tensor and interleaved pipeline parallelism, 2205.05198 for sequence
parallelism); bytes of the collectives: NCCL's bus bandwidths. Rates come from the presets, with their sources.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from llmb_tui.catalog.hardware import Chip
from llmb_tui.catalog.recipe import Gpu, Model
from llmb_tui.catalog.rows import Row
from llmb_tui.plan.plan import Parallelism

_BF16_BYTES = 2
_OPTIMIZER_BYTES = 26
"""Bytes per parameter of a step of Adam: FP32 weight and two moments, a gradient, and the BF16 weight."""
_MOE_BYTES = 48
"""Bytes per hidden value of a routed token: permuting, padding and weighting in both directions, in BF16."""
_LAYER_LATENCY_S = 100e-6
"""Time to launch the kernels of a layer, forward and backward; order of magnitude."""
_NODE = 8
"""GPUs of one node; doublings count from here."""


class Terms(NamedTuple):
    """Seconds at peak rates, without the pipeline's bubble; the last two are not times."""

    linear_bf16: float
    """Matrix products of the layers, at the BF16 peak; 0 in another precision."""
    linear_fp8: float
    """Matrix products of the layers at the FP8 peak; 0 in another precision."""
    attention: float
    """Scores and their product with the values, causal, at the BF16 peak in every precision."""
    memory: float
    """HBM traffic of norms, activations and residuals."""
    cast: float
    """The same HBM traffic again, for quantisation; 0 in BF16."""
    moe: float
    """HBM traffic of routing tokens to experts; 0 without experts."""
    tp: float
    """All-gathers and reduce-scatters of activations over a tensor parallel group."""
    cp: float
    """Keys and values around a context parallel ring."""
    ep: float
    """All-to-alls of tokens between experts."""
    latency: float
    """Kernel launches of a stage's layers, for every micro-batch."""
    head: float
    """Output layer, at the BF16 peak in every precision; the other stages wait for it."""
    pp: float
    """Activations between pipeline stages."""
    dp: float
    """Reduce-scatter of gradients and all-gather of weights over the data parallel group."""
    optimizer: float
    """HBM traffic of a sharded step of Adam."""
    bubble: float
    """Share that an interleaved pipeline adds to the time of its stages, (PP - 1) / (VP * GA); not a time."""
    doublings: float
    """Doublings of the number of GPUs above one node of 8; not a time."""


TIMES = Terms._fields[: Terms._fields.index("bubble")]
"""Names of the terms that are times."""
IN_STAGES = Terms._fields[: Terms._fields.index("head")]
"""Names of the terms that the bubble extends."""


def has_terms(gpu: Gpu, dtype: str) -> bool:
    """True if the model has a term for a precision and the GPU type has the peaks for it."""
    return f"linear_{dtype}" in TIMES and gpu.peak_tflops.keys() >= {"bf16", dtype}


class Machine(NamedTuple):
    """One GPU type in one precision."""

    gpu: Gpu
    """GPU type for which `has_terms` is true."""
    chip: Chip
    dtype: str


def terms(model: Model, machine: Machine, gpus: int, runs: Row | Parallelism) -> Terms:
    """The work of one step; the layout must divide the number of GPUs."""
    gpu, chip, dtype = machine
    tp, pp, cp, vp = runs.tp, runs.pp, runs.cp, runs.vp or 1
    replicas = gpus / (tp * pp * cp)
    micro_batches = runs.gbs / (replicas * runs.mbs)
    tokens = runs.seq_len * runs.gbs / gpus
    group_tokens = tokens * tp * pp  # through one stage's tensor parallel group
    stage, last = _busiest_stage(model, runs)
    layers = stage * pp  # layers if every stage were as busy as the busiest
    weights = model.attention_parameters + model.mlp_parameters * model.experts_per_token
    key_value = model.hidden * model.query_groups / model.heads
    peak16, peak = gpu.peak_tflops["bf16"] * 1e12, gpu.peak_tflops[dtype] * 1e12
    linear = 6 * tokens * layers * weights / peak
    ffn = 3 * (3 if model.gated else 2) * model.ffn * model.experts_per_token
    memory = tokens * layers * (12 * model.hidden + ffn) * _BF16_BYTES / (chip.hbm_gb_s * 1e9)
    moe, ep = _experts(model, chip, runs, tokens * layers) if model.experts > 1 else (0.0, 0.0)
    stage_weights, shards = _held_weights(model, runs), replicas * cp
    return Terms(
        linear_bf16=linear if dtype == "bf16" else 0.0,
        linear_fp8=linear if dtype == "fp8" else 0.0,
        attention=6 * tokens * layers * runs.seq_len * model.hidden / peak16,
        memory=memory,
        cast=memory if dtype != "bf16" else 0.0,
        moe=moe,
        tp=8 * group_tokens * stage * model.hidden * _BF16_BYTES * (tp - 1) / tp / _rate(chip, tp),
        cp=6 * group_tokens * stage * key_value / tp * _BF16_BYTES * (cp - 1) / _rate(chip, tp * cp),
        ep=ep,
        latency=micro_batches * stage * _LAYER_LATENCY_S,
        head=6 * tokens * model.hidden * model.vocab / peak16 * pp if last else 0.0,
        pp=2 * group_tokens * model.hidden * _BF16_BYTES / tp * vp / _rate(chip, gpus) if pp > 1 else 0.0,
        dp=2 * _BF16_BYTES * stage_weights * (shards - 1) / shards / _rate(chip, gpus // pp),
        optimizer=_OPTIMIZER_BYTES * stage_weights / shards / (chip.hbm_gb_s * 1e9),
        bubble=(pp - 1) / (vp * micro_batches),
        doublings=math.log2(max(gpus, _NODE) / _NODE),
    )


def _busiest_stage(model: Model, runs: Row | Parallelism) -> tuple[float, bool]:
    """Layers of the slowest pipeline stage, and whether it has the output layer.

    If a recipe counts embedding and loss as layers, the middle stages have more layers than the last.
    """
    if model.stage_extra_layers and runs.pp > 2:
        return (runs.layers + model.stage_extra_layers) / runs.pp, False
    return runs.layers / runs.pp, True


def _experts(model: Model, chip: Chip, runs: Row | Parallelism, token_layers: float) -> tuple[float, float]:
    """Seconds of routing inside a GPU, and between GPUs."""
    routed = token_layers * model.experts_per_token * model.hidden
    traffic = 4 * routed * _BF16_BYTES * (runs.ep - 1) / runs.ep
    return routed * _MOE_BYTES / (chip.hbm_gb_s * 1e9), traffic / _rate(chip, runs.tp * runs.cp * runs.ep)


def _held_weights(model: Model, runs: Row | Parallelism) -> float:
    """Parameters of one rank; in a pipeline, the mean of a stage with an embedding and one without."""
    layers = runs.layers / runs.pp * (model.attention_parameters + model.mlp_parameters * model.experts / runs.ep)
    return (layers + 2 * model.hidden * model.vocab / (1 if runs.pp == 1 else 2)) / runs.tp


def _rate(chip: Chip, gpus: int) -> float:
    """Bytes per second of a GPU in a group: NVLink inside its domain, else the network."""
    return (chip.nvlink_gb_s if gpus <= chip.nvlink_domain else chip.nic_gb_s) * 1e9
