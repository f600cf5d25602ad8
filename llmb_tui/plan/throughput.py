"""The formulas of the recipes' READMEs: operations of a sequence; from a step time throughput, utilisation and days."""

from __future__ import annotations

from llmb_tui.catalog.recipe import Flops, Model

_SECONDS_PER_DAY = 86_400
_TOKENS = 1e12


def flops_per_sample(flops: Flops, model: Model, layers: int, seq_len: int) -> float:
    """FLOPs of one sequence, forward and backward, not rounded.

    `layers` and `seq_len` are those that run: a proxy has fewer layers than the model, and its output layer
    is counted whole. The formula is in `Flops`; its variants differ between the recipes' READMEs.
    """
    groups = model.counted_query_groups / model.heads if flops.grouped_queries else 1.0
    scores = seq_len / model.hidden / (2 if flops.causal else 1)
    attention = 12 * layers * model.hidden**2 * (1 + groups + scores)
    mlp = (18 if model.gated else 12) * layers * model.ffn * model.hidden * model.experts_per_token
    embedding = 6 * model.vocab * model.hidden
    return seq_len * (attention + mlp + embedding)


def tokens_per_s(gbs: int, seq_len: int, step_time_s: float) -> float:
    """Tokens that all GPUs together process in a second."""
    return gbs * seq_len / step_time_s


def tflops_per_gpu(gbs: int, model_flops_per_sample: float, step_time_s: float, gpus: int) -> float:
    """Model TFLOPS (1e12 FLOPs in a second) that one GPU sustains."""
    return gbs * model_flops_per_sample / (step_time_s * gpus) / 1e12


def mfu_pct(tflops: float, peak_tflops: float) -> float:
    """Model FLOPs utilisation in per cent: sustained over peak, both TFLOPS of one GPU."""
    return 100 * tflops / peak_tflops


def days_per_1t_tokens(tokens_per_second: float) -> float:
    """Days that 1e12 tokens take."""
    return _TOKENS / tokens_per_second / _SECONDS_PER_DAY


def gpu_hours(gpus: int, steps: int, step_time_s: float) -> float:
    """GPU-hours of the training steps; start-up is not in it."""
    return gpus * steps * step_time_s / 3600
