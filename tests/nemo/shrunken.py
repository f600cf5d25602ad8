"""The preset `shrunken.toml` and its training on a CPU: here, as srun would start it, or in the rig's containers."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.load import read_preset
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.launch.files import config_files
from llmb_tui.launch.runai.workload import FILES, packed_files, start_script
from llmb_tui.launch.settings import resolve_settings
from llmb_tui.launch.spec import RunaiSpec
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Selection
from llmb_tui.request import RunRequest
from tests.kit.waiting import until
from tests.launch.launch_cases import PROFILE
from tests.nemo import environment
from tests.rig.cluster import Rig
from tests.rig.machine import REPOSITORY

HERE = Path(__file__).parent
PRESET = HERE / "shrunken.toml"
SHIMS = HERE / "shims"
PRETRAIN = REPOSITORY / "llmb_tui" / "remote" / "pretrain.py"
RANKS = 2
SHRUNKEN = Selection("shrunken", "1.0", "tiny", "h100", "fp32", RANKS)

_OF_A_SHELL = ("PATH", "HOME")


@dataclass(frozen=True)
class Ended:
    """Exit code and log of a training's rank."""

    code: int
    log: str


def launch_file(recipe: Recipe, selection: Selection, **settings: Any) -> dict[str, Any]:
    """Content of `launch.json` as the program writes it for a selection, with additional settings at the end."""
    request = RunRequest(recipe, plan(Catalog((recipe,)), selection), PROFILE)
    launch: dict[str, Any] = json.loads(dict(config_files(request, resolve_settings(request)))["configs/launch.json"])
    return launch | {"settings": {name: v for name, v in launch["settings"].items() if name not in settings} | settings}


def shrunken_launch() -> dict[str, Any]:
    """`launch.json` of the shrunken recipe."""
    return launch_file(read_preset(PRESET), SHRUNKEN)


def train(version: str, folder: Path, launch: dict[str, Any]) -> list[Ended]:
    """Run the entry script on one node, a process for each rank, with the variables of Slurm that Lightning reads."""
    (folder / "launch.json").write_text(json.dumps(launch))
    ranks = [folder / f"log-{rank}" for rank in range(RANKS)]
    processes = _start_ranks(version, ranks)
    try:
        # A rank waits forever for a failed one.
        until(lambda: any(p.poll() for p in processes) or _all_ended(processes), "the ranks have ended", 300.0)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [Ended(process.returncode, log.read_text()) for process, log in zip(processes, ranks, strict=True)]


def _start_ranks(version: str, logs: list[Path]) -> list[subprocess.Popen[bytes]]:
    argv, variables = cpu_python(version)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        variables |= {"MASTER_PORT": str(probe.getsockname()[1]), "SLURM_JOB_ID": "1", "SLURM_JOB_NAME": "training"}
    variables |= {"SLURM_NODELIST": "localhost", "SLURM_NODEID": "0", "SLURM_NTASKS_PER_NODE": f"{len(logs)}"}
    variables |= {"SLURM_NTASKS": f"{len(logs)}", "NEMO_LOG_MEMORY_USAGE": "1"}
    processes = []
    for rank, log in enumerate(logs):
        own = {"SLURM_PROCID": f"{rank}", "SLURM_LOCALID": f"{rank}"}
        with log.open("wb") as output:
            processes.append(
                subprocess.Popen(
                    [*argv, str(PRETRAIN), "launch.json"],
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=log.parent,
                    env=variables | own,
                )
            )
    return processes


def _all_ended(processes: list[subprocess.Popen[bytes]]) -> bool:
    return all(process.poll() is not None for process in processes)


def cpu_python(version: str) -> tuple[list[str], dict[str, str]]:
    """Start of an argument list, and the environment, for a Python with a NeMo that trains on a CPU."""
    argv, variables = environment.command(version)
    variables["PYTHONPATH"] = f"{SHIMS}{os.pathsep}{variables['PYTHONPATH']}"
    return argv, variables | {"TORCHDYNAMO_DISABLE": "1"}  # compiling takes longer here than it saves


def container_options(rig: Rig, version: str) -> dict[str, Any]:
    """Fields of a cluster profile with which `python` in the rig's containers is that Python, mounted by its path."""
    argv, variables = cpu_python(version)
    wrapper = rig.new_dir() / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {argv[0]} "$@"\n')
    wrapper.chmod(0o755)
    base = Path(argv[0]).resolve().parents[1]
    folders = [environment.ROOT, HERE, *([] if base == Path("/usr") else [base])]
    mounts = [f"{wrapper}:/usr/local/bin/python", *(f"{rig.lend(folder)}:{folder}:ro" for folder in folders)]
    env = {name: value for name, value in variables.items() if name not in _OF_A_SHELL}
    return {"mounts": tuple(mounts), "env": tuple((env | {"MASTER_PORT": str(rig.block.port())}).items())}


def in_a_pod(version: str, folder: Path, files: tuple[tuple[str, str], ...]) -> str:
    """Run the command of a workload's only pod with torch's own torchrun, until it ends with 0; return its output."""
    argv, variables = cpu_python(version)
    programs = folder / "bin"
    programs.mkdir()
    for name, start in (("python", argv), ("torchrun", [*argv, "-m", "torch.distributed.run"])):
        (programs / name).write_text(f'#!/bin/sh\nexec {shlex.join(start)} "$@"\n')
        (programs / name).chmod(0o755)
    spec = RunaiSpec(
        "1", "shrunken", "shrunken-1", "trainings", "p", None, 1, RANKS, "00:10:00", "i", (), "", None, None, (), files
    )  # fmt: skip
    variables |= {"PATH": f"{programs}:{os.environ['PATH']}", FILES: packed_files(files), "NEMO_LOG_MEMORY_USAGE": "1"}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        variables["MASTER_PORT"] = str(probe.getsockname()[1])
    command = ["bash", "-c", start_script(spec, str(folder / "pod"))]
    return subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables, check=True
    ).stdout
