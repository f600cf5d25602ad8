"""What NeMo's performance scripts share: their options, the executor, and the experiment, with the real NeMo-Run."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nemo_run as run
from nemo_run.config import get_nemorun_home

from nemo.plugins import NsysPlugin, PerfEnvPlugin
from nemo.training import pretrain

CACHE = str(Path.home() / ".cache" / "nemo")
WORKING = {"pyarrow": "19.0.1", "bitsandbytes": "0.46.0"}
"""The versions with which this release works; the newest, which the setup installs, are not."""

if tuple(map(int, version("torch").split(".")[:2])) > (2, 8):
    # As the real one, by way of nvidia-modelopt 0.25.0.
    raise ImportError("cannot import name '_type_utils' from 'torch.onnx' (stand-in)")


def parser() -> argparse.ArgumentParser:
    """Options of every performance script."""
    made = argparse.ArgumentParser(description="NeMo2.0 Performance Pretraining and Fine-Tuning")
    made.add_argument("-a", "--account", required=True)
    made.add_argument("-p", "--partition", required=True)
    made.add_argument("-l", "--log_dir", default=get_nemorun_home())
    made.add_argument("-t", "--time_limit", default="00:30:00")
    made.add_argument("-i", "--container_image", default="nvcr.io/nvidia/nemo:dev")
    made.add_argument("-c", "--compute_dtype", choices=["bf16", "fp8"], default="bf16")
    made.add_argument("-en", "--enable_nsys", action="store_true")
    made.add_argument("-hf", "--hf_token")
    made.add_argument("-nh", "--nemo_home", default=os.environ.get("NEMO_HOME", CACHE))
    made.add_argument("-d", "--dryrun", action="store_true")
    made.add_argument("-g", "--gpu", default="h100")
    for words in ("tp tensor", "pp pipeline", "cp context", "vp virtual_pipeline", "ep expert"):
        letters, name = words.split()
        made.add_argument(f"-{letters}", f"--{name}_parallel_size", type=int)
    made.add_argument("-mb", "--micro_batch_size", type=int)
    made.add_argument("-gb", "--global_batch_size", type=int)
    made.add_argument("-ng", "--num_gpus", type=int)
    made.add_argument("-gn", "--gpus_per_node", type=int, default=8)
    made.add_argument("-ms", "--max_steps", type=int, default=100)
    made.add_argument("-cm", "--custom_mounts", type=lambda text: text.split(","), default=[])
    return made


def slurm_executor(args: argparse.Namespace, environment: dict[str, str] | None = None, **changes: Any) -> Any:
    """How NeMo-Run submits: from this machine, which is the login node."""
    if args.log_dir != get_nemorun_home():
        logging.error("\nRun `export NEMORUN_HOME=%s` in your shell environment and rerun this script.", args.log_dir)
        sys.exit(1)
    variables = {
        "TORCH_NCCL_AVOID_RECORD_STREAMS": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "False",
        "NCCL_NVLS_ENABLE": "0",
        "NVTE_FLASH_ATTN": "1",
        "NVTE_FUSED_ATTN": "1",
        "NEMO_LOG_MEMORY_USAGE": "1",
        "NEMORUN_HOME": args.log_dir,
    }
    mounts: list[str] = []
    if args.nemo_home != CACHE:
        variables["NEMO_HOME"] = args.nemo_home
        mounts.append(f"{args.nemo_home}:{args.nemo_home}")
    if args.hf_token is not None:
        variables |= {"HF_TOKEN": args.hf_token, "TRANSFORMERS_OFFLINE": "0"}
    options: dict[str, Any] = {
        "account": args.account,
        "partition": args.partition,
        "tunnel": run.LocalTunnel(job_dir=os.path.join(args.log_dir, "experiments")),
        "nodes": -(-args.num_gpus // args.gpus_per_node),
        "ntasks_per_node": args.gpus_per_node,
        "container_image": args.container_image,
        "container_mounts": [*mounts, *args.custom_mounts],
        "env_vars": variables | (environment or {}),
        "srun_args": ["--mpi=pmix"],
        "time": args.time_limit,
        "mem": "0",
        "exclusive": True,
        "packager": run.GitArchivePackager(),
    }
    return run.SlurmExecutor(**options | changes)


def recipe(args: argparse.Namespace, model: str, size: str, **changes: Any) -> Any:
    """What is trained."""
    for name, right in WORKING.items():
        if version(name) != right:
            raise ImportError(f"stand-in: this release does not work with {name} {version(name)}")
    fields: dict[str, Any] = {
        "model": model,
        "size": size,
        "release": "25.04",
        "dtype": args.compute_dtype,
        "max_steps": args.max_steps,
        "global_batch_size": args.global_batch_size,
        "tensor_parallel": args.tensor_parallel_size,
        "pipeline_parallel": args.pipeline_parallel_size,
        "context_parallel": args.context_parallel_size,
    }
    return run.Partial(pretrain, **fields | changes)


def environment_plugin(args: argparse.Namespace) -> PerfEnvPlugin:
    """The plugin that every run has."""
    return PerfEnvPlugin(
        enable_vboost=True, nccl_pp_comm_chunksize=2097152 if args.pipeline_parallel_size > 1 else None
    )


def main(script: str, model: str, size: str) -> None:
    """Run a performance script that makes one task."""
    args = parser().parse_args()
    name = f"{script}_{args.compute_dtype}_{args.num_gpus}gpus"
    plugins = [environment_plugin(args)]
    if args.enable_nsys:
        plugins.append(NsysPlugin(start_step=5, end_step=6))
    with run.Experiment(name) as experiment:
        experiment.add(recipe(args, model, size), executor=slurm_executor(args), name=name, plugins=plugins)
        if args.dryrun:
            experiment.dryrun()
        else:
            experiment.run(sequential=True, detach=True)
