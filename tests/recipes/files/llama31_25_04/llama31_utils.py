"""Stand-in for tests: options of Llama 3.1's performance script, and its layouts."""

from __future__ import annotations

import argparse

from nemo.performance import parser

SIZES = {"8b": (16, 1, 1, 2), "70b": (2, 4, 4, 2), "405b": (0.5, 8, 8, 2)}
"""Global batch size for each GPU, TP, PP, CP."""
PROXIES = {32: (64, 1), 64: (64, 4), 128: (128, 4)}
"""Number of GPUs of 405b: global batch size and PP."""


def llama31_parse_cli_args() -> argparse.ArgumentParser:
    """Those of every performance script, and more."""
    made: argparse.ArgumentParser = parser()
    made.add_argument("-ns", "--enable_profiling", action="store_true")
    made.add_argument("-nt", "--enable_nccltrace", action="store_true")
    made.add_argument("-on", "--optimization_name", default="")
    made.add_argument("-oc", "--optimization_code", default="")
    made.add_argument("-m", "--model_size", required=True)
    made.add_argument("-fw", "--framework_version", required=True)
    made.add_argument("-gsw", "--gsw_version", required=True)
    made.add_argument("-dp", "--disable_perfrun", action="store_true")
    return made


def llama31_auto_configs(args: argparse.Namespace) -> None:
    """Fill in the layout."""
    per_gpu, tp, pp, cp = SIZES[args.model_size]
    gbs = int(args.num_gpus * per_gpu)
    if args.model_size == "70b" and args.compute_dtype == "fp8":
        pp, cp = 8, 1
    if args.model_size == "405b":
        gbs, pp = PROXIES.get(args.num_gpus, (gbs, pp))
    args.global_batch_size = gbs
    args.tensor_parallel_size, args.pipeline_parallel_size, args.context_parallel_size = tp, pp, cp
