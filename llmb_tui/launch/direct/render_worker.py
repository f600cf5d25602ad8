"""Render batch scripts with NeMo-Run: each line on stdin, a socket, is a `LaunchSpec` as JSON; answers use the socket.

A separate program, because importing nemo-run takes seconds and 125 MB, and fails if stdout is not a real file.
NeMo-Run is used only as a renderer: no Experiment, no connecting tunnel, no files.
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
    """Answer each spec with a script, and finally remove the home directory, because the caller may be gone by then."""
    try:
        with socket.socket(fileno=os.dup(0)) as link, link.makefile(encoding="utf-8") as specs:
            for spec in specs:
                link.sendall(json.dumps({"script": materialize(json.loads(spec))}).encode() + b"\n")
    finally:  # also if the caller ended before it had its answer
        shutil.rmtree(os.environ["NEMORUN_HOME"], ignore_errors=True)


def materialize(spec: dict[str, Any]) -> str:
    """Text of the batch script. Values that NeMo-Run does not quote were quoted or checked before."""
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
    way, _, gpu_type = spec["gpu_request"].partition(":")
    gpus = f"{gpu_type}:{spec['tasks_per_node']}" if gpu_type else spec["tasks_per_node"]
    executor = run.SlurmExecutor(
        account=spec["account"],
        partition=spec["partition"] or None,
        nodes=spec["nodes"],
        ntasks_per_node=spec["tasks_per_node"],
        gpus_per_node=gpus if way == "gpus-per-node" else None,
        gres=f"gpu:{gpus}" if way == "gres" else None,
        mem=spec["memory"],
        exclusive=True,
        time=spec["time_limit"],
        # If Slurm restarted the job by itself, one result would mix two runs.
        additional_parameters={"no_requeue": True}
        # NeMo-Run quotes a value as a shell needs it, but sbatch reads a backslash as an escape also between quotes.
        | {name: True if value is None else value.replace("\\", "\\\\") for name, value in spec["options"]},
        container_image=spec["container_image"],
        container_mounts=list(spec["mounts"]),
        # Without this, Pyxis prefers the image's value of a variable that the image defines.
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
    """NeMo's own first step, in its words. If `sudo` asks for a password, the step fails and the job continues."""
    folder = spec["experiment_dir"]
    step = ["srun", f"--ntasks={spec['nodes']}", "--ntasks-per-node=1", "--output", f"{folder}/vboost.out"]
    step += ["--error", f"{folder}/vboost.err", "bash", "-c", VBOOST]
    return f"\n# Command 0: enable vboost\n\n{shlex.join(step)}"


if __name__ == "__main__":
    main()
