"""Pyxis' options of `srun`, without containers, which an ordinary user cannot start.

The image file and the sources of the mounts must exist. The step's program then runs on this machine, where `python`
is the training's stand-in, and finds the mounts as pairs in its environment.
"""

from __future__ import annotations

import json
import os
from argparse import Namespace
from pathlib import Path

VALUES = "--container-image --container-mounts --container-workdir --container-env"
FLAGS = "--container-writable --no-container-mount-home"
HELP = "Options provided by plugins:\n" + "".join(f"      {name}  [pyxis]\n" for name in f"{VALUES} {FLAGS}".split())
MAGIC = b"hsqs"
"""First bytes of a squashfs file."""
MOUNTS = "LLMB_DEMO_MOUNTS"
"""Environment variable of a container step: its mounts as JSON pairs [source, target]."""
START_S = 20.0
"""Simulated seconds that a container takes to start."""
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class ContainerError(Exception):
    """The container cannot be started; the lines are pyxis's message."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


def enter(args: Namespace, root: Path, environment: dict[str, str]) -> tuple[dict[str, str], str]:
    """Environment and working directory for a step in its container. Raises ContainerError."""
    _check_image(args.container_image)
    mounts = _mounts(args.container_mounts or "")
    inside = args.container_workdir or os.getcwd()
    outside = place(inside, mounts) or inside
    if not os.path.isdir(outside):
        raise ContainerError(f"couldn't chdir to {inside}: No such file or directory")
    path = f"{root / 'container-bin'}:{root / 'node-bin'}:{SYSTEM_PATH}"
    return {**environment, "PATH": path, MOUNTS: json.dumps(mounts)}, outside


def container_mounts() -> list[tuple[str, str]]:
    """Mounts of the container that this program runs in."""
    return [(source, target) for source, target in json.loads(os.environ.get(MOUNTS, "[]"))]


def place(path: str, mounts: list[tuple[str, str]]) -> str:
    """Path outside of a path in the container; empty if nothing is mounted there."""
    for source, target in sorted(mounts, key=lambda mount: -len(mount[1])):
        if path == target or path.startswith(target.rstrip("/") + "/"):
            return source + path[len(target.rstrip("/")) :]
    return ""


def _check_image(image: str) -> None:
    try:
        with Path(image).open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError:
        raise _not_created(image, f"No such file or directory: {image}") from None
    if magic != MAGIC:
        raise _not_created(image, f"Invalid image format: {image}")


def _not_created(image: str, error: str) -> ContainerError:
    return ContainerError(
        f"child {os.getpid()} failed with error code: 1",
        f"failed to create container filesystem for image: {image}",
        "printing enroot log file:",
        f"    [ERROR] {error}",
    )


def _mounts(text: str) -> list[tuple[str, str]]:
    """Pairs of source and target, from `SOURCE:TARGET[:FLAGS],…`."""
    mounts = []
    for entry in filter(None, text.split(",")):
        source, target, *_ = [*entry.split(":"), ""]
        if not source or not target:
            raise ContainerError(f"--container-mounts: invalid format: {entry}")
        if not os.path.exists(source):
            raise ContainerError(f"--container-mounts: source path does not exist: {source}")
        mounts.append((source, target))
    return mounts
