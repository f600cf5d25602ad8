"""Rank 0 of a training in the rig's stand-in for a container: prints NeMo's log, computes nothing.

It supports the same programs as the demo cluster's trainer, which is copied next to this file, and prints the same
lines. It also supports the programs that the recipes' own launch scripts start: NeMo-Run's runner, with the arguments
that NeMo-Run recorded, and the Hydra program without a plan of llmb-tui. Files in /run/rig are switches: `speed`
(multiple of real time), `faults/fail-at-step`, `faults/hang-at-step`, `faults/slow` (as on the demo cluster),
`faults/oom` (take memory until Slurm kills the process or OOM_MB is reached), and `step-s` (seconds of a step if no
plan contains the step time).
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from llmb_tui.demo.slurm.store import Store

KNOBS = Path("/run/rig")
PLAN = Path("/nemo_run/configs/plan.json")
OOM_MB = 2000
"""Upper limit of the memory that the training takes, in MB."""


class Clock:
    """The job of the trainer: its number and its clock."""

    def __init__(self, number: int, speed: float) -> None:
        self.id = number
        self.speed = speed
        self._began = time.time()

    def now(self) -> float:
        """Seconds of Unix time, on the job's clock."""
        return self._began + (time.time() - self._began) * self.speed


class Jobs:
    """The part of the demo cluster's Slurm that the trainer uses."""

    path = KNOBS

    def read(self, number: int) -> Clock:
        """The job with that number."""
        return Clock(number, float((KNOBS / "speed").read_text()))


def main(end_file: str, words: list[str]) -> int:
    """Run `python WORD…` as rank 0; the other ranks wait for the file `over`."""
    by_runner = words[0] == "-m"
    sys.path.insert(0, str(KNOBS / "lib"))
    from llmb_tui.demo import trainer
    from llmb_tui.demo.slurm.options import RefusedError
    from llmb_tui.demo.slurm.pyxis import MOUNTS

    mounts = [["", "/"]]  # unlike on the demo cluster, paths need no translation
    if not PLAN.exists():
        folder = Path(tempfile.mkdtemp())
        mounts.insert(0, [str(folder), str(PLAN.parent)])
        settings = recorded_arguments(words[-1]) if by_runner else hydra_arguments(words)
        (folder / PLAN.name).write_text(json.dumps(plan_of(settings)))
        if by_runner:
            (folder / "pretrain.py").touch()
            words = [str(folder / "pretrain.py"), str(PLAN)]
    os.environ[MOUNTS] = json.dumps(mounts)

    if (KNOBS / "faults" / "oom").exists():
        take_memory()
    try:
        return trainer.main(cast("Store", Jobs()), words)
    except RefusedError as refusal:
        sys.stderr.write(f"{refusal.text}\n")
        return refusal.code
    finally:
        Path(end_file).touch()


def recorded_arguments(path: str) -> dict[str, Any]:
    """Arguments of the function that NeMo-Run recorded in a file."""
    document = json.loads(zlib.decompress(base64.urlsafe_b64decode(Path(path).read_text())))
    items = document["objects"][document["root"]["key"]]["items"]
    return {leaf["paths"][0].rpartition(".")[2]: leaf["value"] for _, leaf in items}


def hydra_arguments(words: list[str]) -> dict[str, Any]:
    """The same arguments, from a Hydra command and the launch script's environment variables."""
    overrides = dict(word.lstrip("+").split("=", 1) for word in words if "=" in word)
    return {
        "model": os.environ["MODEL"],
        "size": os.environ["MODEL_SIZE"],
        "release": os.environ["GSW_VERSION"],
        "max_steps": int(overrides["trainer.max_steps"]),
        "global_batch_size": int(overrides["model.global_batch_size"]),
    }


def plan_of(args: dict[str, Any]) -> dict[str, Any]:
    """The fields of a plan that the trainer reads."""
    step_s = KNOBS / "step-s"
    selection = {"release": args["release"], "workload": args["model"], "size": args["size"], "gpu": "h100"}
    return {
        "selection": {**selection, "scale": int(os.environ["SLURM_NTASKS"])},
        "parallelism": {"gbs": args["global_batch_size"]},
        "steps": args["max_steps"],
        "estimate": {"step_time_s": float(step_s.read_text())} if step_s.exists() else {},
    }


def take_memory() -> None:
    """Take memory and hold it for a while, so that Slurm notices."""
    blocks = [bytearray(os.urandom(1_000_000)) for _ in range(OOM_MB)]
    time.sleep(60)
    raise MemoryError(f"Slurm did not react to {len(blocks)} MB")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
