"""Formulas of the recipes' READMEs: FLOPs of a sequence; throughput, MFU and days from a step time."""

from __future__ import annotations

from llmb_tui.catalog.recipe import Flops, Model

_SECONDS_PER_DAY = 86_400
_TOKENS = 1e12


def flops_per_sample(flops: Flops, model: Model, layers: int, seq_len: int) -> float:
    """FLOPs of one sequence, forward and backward, not rounded.

    `layers` and `seq_len` are those of the run: a reduced model has fewer layers, and its output layer counts fully.
    `Flops` has the formula; the recipes' READMEs use different variants.
    """
    groups = model.counted_query_groups / model.heads if flops.grouped_queries else 1.0
    scores = seq_len / model.hidden / (2 if flops.causal else 1)
    attention = 12 * layers * model.hidden**2 * (1 + groups + scores)
    mlp = (18 if model.gated else 12) * layers * model.ffn * model.hidden * model.experts_per_token
    embedding = 6 * model.vocab * model.hidden
    return seq_len * (attention + mlp + embedding)


def tokens_per_s(gbs: int, seq_len: int, step_time_s: float) -> float:
    """Tokens per second of all GPUs together."""
    return gbs * seq_len / step_time_s


def tflops_per_gpu(gbs: int, model_flops_per_sample: float, step_time_s: float, gpus: int) -> float:
    """Model TFLOPS (1e12 FLOPs in a second) that one GPU sustains."""
    return gbs * model_flops_per_sample / (step_time_s * gpus) / 1e12


def mfu_pct(tflops: float, peak_tflops: float) -> float:
    """Model FLOPs utilisation in per cent: sustained over peak, both TFLOPS of one GPU."""
    return 100 * tflops / peak_tflops


def days_per_1t_tokens(tokens_per_second: float) -> float:
    """Days for 1e12 tokens."""
    return _TOKENS / tokens_per_second / _SECONDS_PER_DAY


def gpu_hours(gpus: int, steps: int, step_time_s: float) -> float:
    """GPU-hours of the training steps, without start-up."""
    return gpus * steps * step_time_s / 3600
