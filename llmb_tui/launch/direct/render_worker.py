"""Batch scripts from NeMo-Run: each line on stdin, a socket, is a `LaunchSpec` as JSON, and is answered there.

A program of its own, because importing nemo-run takes seconds and 125 MB, and fails where stdout is not a real file.
NeMo-Run is used as a renderer only: no Experiment, no tunnel that connects, no file.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
from typing import Any

import nemo_run as run
from nemo_run.core.execution.slurm import SlurmBatchRequest

VBOOST = "sudo -n nvidia-smi boost-slider --vboost 1"


def main() -> None:
    """A script for each spec. Where the program that asks is gone, nobody else removes the directory of this one."""
    try:
        with socket.socket(fileno=os.dup(0)) as link, link.makefile(encoding="utf-8") as specs:
            for spec in specs:
                link.sendall(json.dumps({"script": materialize(json.loads(spec))}).encode() + b"\n")
    finally:  # also where it was gone before it had its answer
        shutil.rmtree(os.environ["NEMORUN_HOME"], ignore_errors=True)


def materialize(spec: dict[str, Any]) -> str:
    """Text of the batch script. What NeMo-Run does not quote itself arrives quoted or was checked before."""
    entrypoint, path, *arguments = map(shlex.quote, spec["command"])
    script = run.Script(path=path, args=arguments, entrypoint=entrypoint)
    request = SlurmBatchRequest(
        launch_cmd=["sbatch", "--parsable"],
        jobs=[spec["task"]],
        command_groups=[script.to_command(with_entrypoint=True)],
        executor=_executor(spec),
        max_retries=0,
        extra_env={},
    )
    text: str = request.materialize()
    return text


def _executor(spec: dict[str, Any]) -> run.SlurmExecutor:
    gpus = spec["tasks_per_node"]
    executor = run.SlurmExecutor(
        account=spec["account"],
        partition=spec["partition"],
        nodes=spec["nodes"],
        ntasks_per_node=gpus,
        gpus_per_node=gpus if spec["gpu_request"] == "gpus-per-node" else None,
        gres=f"gpu:{gpus}" if spec["gpu_request"] == "gres" else None,
        mem=spec["memory"],
        exclusive=True,
        time=spec["time_limit"],
        # A job that Slurm starts again by itself would mix two runs in one result.
        additional_parameters={"no_requeue": True}
        | {name: True if value is None else value for name, value in spec["options"]},
        container_image=spec["container_image"],
        container_mounts=list(spec["mounts"]),
        # Without it Pyxis lets the image's value win for the variables that the image defines.
        container_env=[name for name, _ in spec["env"]],
        env_vars={name: shlex.quote(value) for name, value in spec["env"]},
        srun_args=[shlex.quote(f"--{name}" if value is None else f"--{name}={value}") for name, value in spec["srun"]],
        setup_lines=_vboost(spec) if spec["vboost"] else None,
        tunnel=run.LocalTunnel(job_dir=spec["experiment_dir"]),
        packager=run.Packager(),
    )
    executor.job_name = spec["task"]
    executor.job_dir = spec["task_dir"]
    executor.experiment_dir = spec["experiment_dir"]
    executor.experiment_id = spec["experiment_dir"].rsplit("/", 1)[-1]
    return executor


def _vboost(spec: dict[str, Any]) -> str:
    """NeMo's own first step, as it writes it. Where `sudo` wants a password it fails, and the job goes on."""
    folder = spec["experiment_dir"]
    step = ["srun", f"--ntasks={spec['nodes']}", "--ntasks-per-node=1", "--output", f"{folder}/vboost.out"]
    step += ["--error", f"{folder}/vboost.err", "bash", "-c", VBOOST]
    return f"\n# Command 0: enable vboost\n\n{shlex.join(step)}"


if __name__ == "__main__":
    main()
