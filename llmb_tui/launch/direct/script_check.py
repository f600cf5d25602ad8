"""`script_differences`: compare a batch script with the run's record."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import asdict

from llmb_tui.launch.spec import LaunchSpec

CHECKED = "variables, command, image, nodes and time limit"
_EXPORTED = re.compile(r"(?m)^export ([A-Za-z_][A-Za-z0-9_]*)=(.*)$")
_NEMO_RUNS = {"PYTHONUNBUFFERED", "SLURM_UNBUFFEREDIO", "TORCHX_MAX_RETRIES"}
"""Variables that NeMo-Run writes into every script, before the run's own."""
_HEAD = {"nodes": "nodes", "ntasks-per-node": "tasks_per_node", "time": "time_limit", "job-name": "job_name"}


def script_differences(spec: LaunchSpec, script: str) -> Iterator[str]:
    """Names of the parts in which the script differs from the record."""
    exported: dict[str, list[str]] = {}
    for name, text in _EXPORTED.findall(script):
        exported.setdefault(name, []).append(text)
    env = {name: shlex.quote(value) for name, value in spec.env}
    for name, value in env.items():
        values = exported.get(name, [])
        if values[-1:] != [value] or (len(values) > 1 and name not in _NEMO_RUNS):
            yield name
    yield from (f"{name} (no setting)" for name in exported if name not in env and name not in _NEMO_RUNS)
    if shlex.join(spec.command) not in script:
        yield "command"
    if f"--container-image {spec.container_image} " not in script:
        yield "image"
    head = dict(re.findall(r"(?m)^#SBATCH --([a-z-]+)=(.*)$", script))
    fields = asdict(spec)
    yield from (option for option, name in _HEAD.items() if head.get(option) != str(fields[name]))
