"""Stand-in for tests of Llama 3.1's performance script: up to three tasks in one experiment, a job for each."""

from __future__ import annotations

import argparse
import logging
from typing import Any

import nemo_run as run
from nemo.performance import environment_plugin, pinned, recipe
from nemo.plugins import NsysPlugin

from .llama31_utils import llama31_auto_configs, llama31_parse_cli_args

TRACE_STEPS, TRACE_TIME = 5, "00:15:00"


def executor(args: argparse.Namespace, more: dict[str, str] | None = None, **changes: Any) -> Any:
    """The executor, with all its variables named to the container."""
    made = pinned(args, more, **changes)
    made.srun_args.append("--container-env=" + ",".join(made.env_vars))
    return made


def main() -> None:
    """Submit."""
    args = llama31_parse_cli_args().parse_args()
    llama31_auto_configs(args)
    name = f"pretrain_llama3.1_{args.model_size}_{args.compute_dtype}_{args.num_gpus}"
    tasks: list[tuple[str, int, Any, list[Any]]] = []
    if not args.disable_perfrun:
        tasks.append((name, args.max_steps, executor(args), []))
    if args.enable_profiling:
        nsys = NsysPlugin(start_step=args.profiling_start_step, end_step=args.profiling_stop_step)
        tasks.append((f"{name}_nsys", args.profiling_stop_step, executor(args), [nsys]))
    if args.enable_nccltrace:
        trace = {"NCCL_DEBUG_SUBSYS": "COLL,P2P,NET", "NCCL_DEBUG": "INFO"}
        tasks.append((f"{name}_nccltrace", TRACE_STEPS, executor(args, trace, time=TRACE_TIME), []))
    logging.info("GSW: MODEL=llama3.1 MODEL_SIZE=%s DTYPE=$%s JOB_ID=TODO", args.model_size, args.compute_dtype)
    with run.Experiment(name) as experiment:
        for task, steps, where, plugins in tasks:
            what = recipe(args, "llama3.1", args.model_size, max_steps=steps)
            experiment.add(what, executor=where, name=task, plugins=[environment_plugin(args), *plugins])
        if args.dryrun:
            experiment.dryrun()
        else:
            experiment.run(sequential=False, detach=True)


if __name__ == "__main__":
    main()
