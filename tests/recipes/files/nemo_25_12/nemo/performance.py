"""What NeMo's performance scripts share since 25.08: options with a part for Slurm, tasks bound to NUMA nodes."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Any

import nemo_run as run
from nemo.plugins import NsysPlugin, PerfEnvPlugin
from nemo.training import pretrain
from nemo_run.config import get_nemorun_home
from nemo_run.core.execution.launcher import SlurmTemplate

CACHE = str(Path.home() / ".cache" / "nemo")
RACK_NODES = 18
TEMPLATE = """
#!/usr/bin/env bash
set -euo pipefail

bash -c '{{ pre_cmds }} {{ command }}'
"""


def truth(text: str) -> bool:
    """An option's `true`, `1`, `false` or `0`."""
    return text.lower() in ("true", "1", "t", "yes", "y")


def parser() -> argparse.ArgumentParser:
    """Options of every performance script."""
    made = argparse.ArgumentParser(description="NeMo2.0 Performance Pretraining and Fine-Tuning")
    slurm = made.add_subparsers(dest="cluster_type").add_parser("slurm")
    slurm.add_argument("-a", "--account", required=True)
    slurm.add_argument("-p", "--partition", required=True)
    slurm.add_argument("-l", "--log_dir", default=get_nemorun_home())
    slurm.add_argument("-t", "--time_limit", default="00:30:00")
    made.add_argument("-g", "--gpu", required=True)
    made.add_argument("-i", "--container_image", default="nvcr.io/nvidia/nemo:dev")
    made.add_argument("-c", "--compute_dtype", choices=["bf16", "fp8"], default="bf16")
    made.add_argument("-fr", "--fp8_recipe", choices=["ds", "cs", "mxfp8", "ss"], default="ds")
    made.add_argument("-en", "--enable_nsys", action="store_true")
    made.add_argument("-hf", "--hf_token")
    made.add_argument("-nh", "--nemo_home", default=os.environ.get("NEMO_HOME", CACHE))
    made.add_argument("-d", "--dryrun", action="store_true")
    for words in ("tp tensor", "pp pipeline", "cp context", "vp virtual_pipeline", "ep expert"):
        letters, name = words.split()
        made.add_argument(f"-{letters}", f"--{name}_parallel_size", type=int)
    for words in ("mb micro_batch_size", "gb global_batch_size", "ng num_gpus", "nlay num_layers", "hs hidden_size"):
        letters, name = words.split()
        made.add_argument(f"-{letters}", f"--{name}", type=int)
    made.add_argument("-gn", "--gpus_per_node", type=int, default=8)
    made.add_argument("-ms", "--max_steps", type=int, default=50)
    for words in ("cg cuda_graphs", "fsdp use_mcore_fsdp", "cps checkpoint_save", "vb enable_vboost"):
        letters, name = words.split()
        made.add_argument(f"-{letters}", f"--{name}", type=truth)
    made.add_argument("-cpl", "--checkpoint_load_path")
    made.add_argument("-pss", "--profiling_start_step", type=int, default=46)
    made.add_argument("-pso", "--profiling_stop_step", type=int, default=50)
    made.add_argument("-pgm", "--profiling_gpu_metrics", action="store_true")
    made.add_argument("-cm", "--custom_mounts", type=lambda text: text.split(","), default=[])
    return made


def slurm_executor(args: argparse.Namespace) -> Any:
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
    if args.gpu != "b200":
        variables["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    if args.gpu == "gb200":
        variables |= {"NCCL_NET_GDR_LEVEL": "PHB", "NCCL_NET_GDR_C2C": "1"}
    if args.hf_token is not None:
        variables |= {"HF_TOKEN": args.hf_token, "TRANSFORMERS_OFFLINE": "0"}
    mounts = [f"{args.nemo_home}:{args.nemo_home}", f"{args.log_dir}:{args.log_dir}"] if args.nemo_home != CACHE else []
    nodes = -(-args.num_gpus // args.gpus_per_node)
    divisors = (count for count in range(RACK_NODES, 0, -1) if nodes % count == 0)
    node = f"$((SLURM_LOCALID/{2 if args.gpu == 'gb200' else 4}))"
    return run.SlurmExecutor(
        account=args.account,
        partition=args.partition,
        tunnel=run.LocalTunnel(job_dir=os.path.join(args.log_dir, "experiments")),
        nodes=nodes,
        ntasks_per_node=args.gpus_per_node,
        container_image=args.container_image,
        container_mounts=[*mounts, *args.custom_mounts],
        env_vars=variables,
        srun_args=[
            "--mpi=pmix",
            "--container-writable",
            "--no-container-mount-home",
            f"--container-env={','.join(variables)}",
        ],
        time=args.time_limit,
        mem="0",
        exclusive=True,
        packager=run.Packager(),
        segment=next(divisors) if args.gpus_per_node == 4 and nodes > RACK_NODES else None,
        launcher=SlurmTemplate(
            template_inline=TEMPLATE,
            template_vars={"pre_cmds": f"numactl --cpunodebind={node} --membind={node}"},
        ),
    )


def main(script: str, model: str, size: str) -> None:
    """Run a performance script."""
    args = parser().parse_args()
    task = run.Partial(
        pretrain,
        model=model,
        size=size,
        release="25.12",
        dtype=args.compute_dtype,
        max_steps=args.max_steps,
        global_batch_size=args.global_batch_size,
        tensor_parallel=args.tensor_parallel_size,
        pipeline_parallel=args.pipeline_parallel_size,
        context_parallel=args.context_parallel_size,
        enable_checkpointing=bool(args.checkpoint_save),
        checkpoint=args.checkpoint_load_path or "",
    )
    layout = (
        f"gpus{args.num_gpus}_tp{args.tensor_parallel_size}_pp{args.pipeline_parallel_size}"
        f"_cp{args.context_parallel_size}_vp{args.virtual_pipeline_parallel_size}"
        f"_mbs{args.micro_batch_size}_gbs{args.global_batch_size}"
    )
    name = f"{script}_{args.compute_dtype}_{layout}"
    plugins: list[Any] = [PerfEnvPlugin(enable_vboost=bool(args.enable_vboost), nccl_pp_comm_chunksize=2097152)]
    if args.enable_nsys:
        plugins.append(NsysPlugin(start_step=args.profiling_start_step, end_step=args.profiling_stop_step))
    with run.Experiment(name) as experiment:
        experiment.add(task, executor=slurm_executor(args), name=name, plugins=plugins)
        if args.dryrun:
            experiment.dryrun()
        else:
            experiment.run(sequential=True, detach=True)
