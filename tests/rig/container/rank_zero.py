"""Rank 0 of a training in the rig's stand-in for a container: prints NeMo's log, computes nothing.

The programs and their lines are those of the demo cluster's trainer, which is copied beside this file. What the
recipes' own launch scripts start counts as such a program too: NeMo-Run's runner, with what NeMo-Run has written down,
and the Hydra program without a plan of ours. Files in /run/rig: `speed` (how much faster than real time),
`faults/fail-at-step`, `faults/hang-at-step`, `faults/slow` (as the demo cluster has them), `faults/oom`: memory is
taken until Slurm puts an end to it, or a limit is reached, and `step-s`: seconds of a step where no plan of ours says
how long one takes.
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
"""How much memory is taken at most."""


class Clock:
    """What the trainer asks of a job: its number and its clock."""

    def __init__(self, number: int, speed: float) -> None:
        self.id = number
        self.speed = speed
        self._began = time.time()

    def now(self) -> float:
        """Seconds of Unix time, on the job's clock."""
        return self._began + (time.time() - self._began) * self.speed


class Jobs:
    """What the trainer asks of the demo cluster's Slurm."""

    path = KNOBS

    def read(self, number: int) -> Clock:
        """The job of that number."""
        return Clock(number, float((KNOBS / "speed").read_text()))


def main(over: str, words: list[str]) -> int:
    """Run `python WORD…`; the other ranks wait for the file `over`."""
    by_runner = words[0] == "-m"
    sys.path.insert(0, str(KNOBS / "lib"))
    from llmb_tui.demo import trainer
    from llmb_tui.demo.slurm.options import RefusedError
    from llmb_tui.demo.slurm.pyxis import MOUNTS

    mounts = [["", "/"]]  # unlike on the demo cluster, everything is where it says
    if not PLAN.exists():
        folder = Path(tempfile.mkdtemp())
        mounts.insert(0, [str(folder), str(PLAN.parent)])
        settings = recorded(words[-1]) if by_runner else overridden(words)
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
        Path(over).touch()


def recorded(path: str) -> dict[str, Any]:
    """Arguments of the function that NeMo-Run has written down in a file."""
    document = json.loads(zlib.decompress(base64.urlsafe_b64decode(Path(path).read_text())))
    items = document["objects"][document["root"]["key"]]["items"]
    return {leaf["paths"][0].rpartition(".")[2]: leaf["value"] for _, leaf in items}


def overridden(words: list[str]) -> dict[str, Any]:
    """The same of a Hydra command, and of what the launch script leaves in the environment."""
    given = dict(word.lstrip("+").split("=", 1) for word in words if "=" in word)
    return {
        "model": os.environ["MODEL"],
        "size": os.environ["MODEL_SIZE"],
        "release": os.environ["GSW_VERSION"],
        "max_steps": int(given["trainer.max_steps"]),
        "global_batch_size": int(given["model.global_batch_size"]),
    }


def plan_of(told: dict[str, Any]) -> dict[str, Any]:
    """What the trainer reads of a plan."""
    step_s = KNOBS / "step-s"
    selection = {"release": told["release"], "workload": told["model"], "size": told["size"], "gpu": "h100"}
    return {
        "selection": {**selection, "scale": int(os.environ["SLURM_NTASKS"])},
        "parallelism": {"gbs": told["global_batch_size"]},
        "steps": told["max_steps"],
        "estimate": {"step_time_s": float(step_s.read_text())} if step_s.exists() else {},
    }


def take_memory() -> None:
    """Take memory and keep it for a while, for Slurm to notice."""
    taken = [bytearray(os.urandom(1_000_000)) for _ in range(OOM_MB)]
    time.sleep(60)
    raise MemoryError(f"nobody minded {len(taken)} MB")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
