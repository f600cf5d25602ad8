"""`memory_of`: memory of one GPU during training, computed from the model's numbers and the layout.

All sizes are decimal GB of one GPU, the fullest one. Parameters P are those of one GPU: P_dense / (TP PP), the experts'
P_expert / (TP PP EP), and the embedding and the output layer, V h / TP each, which share a GPU only if PP is 1.

- state = P (2 + 2) + P (optimizer bytes) / ranks: bf16 weights and bf16 gradients, and the distributed optimizer,
  split over the DP x CP ranks that hold the same parameters (for experts DP x CP / EP).
- activations = 2 bytes x (4 h + (q + 2 kv) + q + MLP) / TP x tokens of a micro-batch / CP x layers / PP x micro-batches
  in flight. The four h are inputs and outputs of the two norms; attention keeps its queries, keys and values and its
  result, no scores (it is fused); a gated MLP keeps three widths, others two.
- logits = 10 bytes x tokens x V / TP on the last stage: bf16, fp32, and the gradient in fp32.
- peak = state + the larger of the first stage's activations and the last one's with the logits + 3 GB.

The 3 GB and the 10 bytes were chosen with two logs in view (tests/plan/test_plan_memory.py), both BF16 without experts;
the state has no free constant. FP8 is counted like BF16: the weights and their transposes are two bytes too, and
activations are no larger. No preset recomputes activations, moves them to the CPU or shards weights. Outside all this
are the CUDA context, NCCL's buffers, fragmentation, and what CUDA graphs hold, which recipes use on Blackwell.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from llmb_tui.catalog.recipe import Model, Recipe
from llmb_tui.language.quantities import gigabytes
from llmb_tui.language.states import MemoryVerdict
from llmb_tui.plan.plan import Memory, Parallelism, Problem, note, warning
from llmb_tui.plan.resolved import ResolvedSelection
from llmb_tui.plan.rules import runs_as_listed

_GB = 1e9
_WEIGHT_AND_GRADIENT = 4
# Master weight and both moments in fp32; where only the master's lower half is kept beside the bf16 weight, 2 less.
_OPTIMIZER = 12
_OPTIMIZER_WITH_REMAINDERS = 10
_ACTIVATION = 2
_LOGIT = 10
_REST_GB = 3.0
_FITS, _TIGHT = 0.90, 1.05
"""Largest shares of the capacity that count as `fits` and `tight`; the computed peak is off by a few per cent."""


def memory_of(resolved: ResolvedSelection) -> Memory | None:
    """State, peak and capacity of a GPU; None if the numbers do not divide."""
    runs, model = resolved.parallelism, resolved.model
    if runs.dp is None or runs.ga is None:
        return None
    selection = resolved.selection
    optimizer = _optimizer_bytes(resolved.recipe, selection.size, selection.gpu, selection.dtype)
    state = _state_bytes(model, runs, runs.dp * runs.cp, optimizer) / _GB
    peak = state + _working_bytes(model, runs, runs.ga) / _GB + _REST_GB
    capacity = resolved.gpu.memory_gb
    return Memory(state, peak, capacity, _verdict(peak / capacity))


def memory_problems(resolved: ResolvedSelection, memory: Memory | None) -> Iterator[Problem]:
    """A problem if the peak is above the capacity, and a note for models with experts."""
    if memory is None:
        return
    if memory.verdict == "needs recompute or sharding":
        yield _too_much(resolved, memory)
    if resolved.model.experts > 1:
        yield note("memory", "The memory of models with experts is computed, and was never compared with a run.")


def _too_much(resolved: ResolvedSelection, memory: Memory) -> Problem:
    counted = f"The computed peak is {gigabytes(memory.peak_gb)} on a GPU of {gigabytes(memory.capacity_gb)}"
    if runs_as_listed(resolved):
        reason = f"{counted}. This is the published configuration, which runs all the same."
        return note("memory", reason)
    reason = f"{counted}: the recipe's settings do not recompute or shard enough for this."
    return warning("memory", reason, "Choose a larger TP, PP or CP, a smaller MBS, or more GPUs.")


def _verdict(share: float) -> MemoryVerdict:
    if share <= _FITS:
        return "fits"
    return "tight" if share <= _TIGHT else "needs recompute or sharding"


def _state_bytes(model: Model, runs: Parallelism, ranks: int, optimizer: int) -> float:
    """Weights, gradients and optimizer of one GPU; `ranks` share the optimizer of the dense parameters."""
    layers = runs.layers / (runs.tp * runs.pp)
    embeddings = (2 if runs.pp == 1 else 1) * model.vocab * model.hidden / runs.tp
    shared = layers * model.attention_parameters + embeddings
    if model.experts == 1:
        return (shared + layers * model.mlp_parameters) * (_WEIGHT_AND_GRADIENT + optimizer / ranks)
    experts = layers * model.mlp_parameters * model.experts / runs.ep
    copies = max(1.0, ranks / runs.ep)
    return shared * (_WEIGHT_AND_GRADIENT + optimizer / ranks) + experts * (_WEIGHT_AND_GRADIENT + optimizer / copies)


def _working_bytes(model: Model, runs: Parallelism, ga: int) -> float:
    """Peak of activations and logits, of the first or the last stage, whichever is larger."""
    tokens = runs.seq_len * runs.mbs / runs.cp
    kv = model.hidden * model.query_groups / model.heads
    mlp = (3 if model.gated else 2) * model.ffn * model.experts_per_token
    split = 4 * model.hidden + (model.hidden + 2 * kv) + model.hidden + mlp
    # Tokens for the experts of a GPU are gathered over its tensor ranks.
    whole = model.experts_per_token * model.hidden if model.experts > 1 else 0
    micro_batch = _ACTIVATION * (split / runs.tp + whole) * tokens * runs.layers / runs.pp
    logits = _LOGIT * tokens * model.vocab / runs.tp
    first, last = _in_flight(runs)
    return max(min(ga, first) * micro_batch + (logits if runs.pp == 1 else 0), min(ga, last) * micro_batch + logits)


def _in_flight(runs: Parallelism) -> tuple[float, float]:
    """Largest number of micro-batches whose activations the first and the last stage hold.

    One forward and one backward in turn: PP and 1. With virtual stages the schedule warms up with
    2 (PP - rank - 1) + (VP - 1) PP pieces, of which VP make a micro-batch.
    """
    if runs.vp is None or runs.pp == 1:
        return runs.pp, 1
    return runs.pp + (runs.pp - 1) / runs.vp, runs.pp - (runs.pp - 1) / runs.vp


# The keys are values of selections, so the cache stays small.
@lru_cache(maxsize=1024)
def _optimizer_bytes(recipe: Recipe, size: str, gpu: str, dtype: str) -> int:
    """Bytes per parameter in the optimizer's shards, by the preset's settings; cached.

    NeMo 1's `distributed_fused_adam` on bf16 weights (nlp/models/language_modeling/megatron_base_model.py,
    `store_param_remainders`, unless the weights are FP8), and Megatron Core's precision-aware optimizer (core 0.13,
    optimizer_config.py) keep half a master weight.
    """
    bytes_each = _OPTIMIZER
    for group in recipe.settings:
        filters = ((group.sizes, size), (group.gpus, gpu), (group.dtypes, dtype))
        if group.when or any(names and name not in names for names, name in filters):
            continue
        optim = (group.base.get("model") or {}).get("optim") or {}
        fused = optim.get("name") == "distributed_fused_adam" and dtype == "bf16"
        if fused or group.recipe.get("optim.config.use_precision_aware_optimizer") is True:
            bytes_each = _OPTIMIZER_WITH_REMAINDERS
    return bytes_each
