"""Pyxis' options of `srun`, without containers: an ordinary user cannot have one.

The image file and the sources of the mounts must exist. The step's program then runs on this machine, with
`python` being the training stand-in, and finds the mounts as pairs in its environment.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from llmb_tui.demo.slurm.options import Parsed

OPTIONS = (
    "container-image= container-mounts= container-workdir= container-name= container-save= container-mount-home "
    "no-container-mount-home container-remap-root no-container-remap-root container-entrypoint "
    "no-container-entrypoint container-entrypoint-log container-writable container-readonly container-env="
)
HELP = """\
Options provided by plugins:
      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH
                              [pyxis] the image to use for the container
                              filesystem. Can be either a docker image given as
                              an enroot URI, or a path to a squashfs file on the
                              remote host filesystem.
      --container-mounts=SRC:DST[:FLAGS][,SRC:DST...]
                              [pyxis] bind mount[s] inside the container. Mount
                              flags are separated with "+", e.g. "ro+rprivate"
      --container-workdir=PATH
                              [pyxis] working directory inside the container
      --container-name=NAME   [pyxis] name to use for saving and loading the
                              container on the host.
      --container-save=PATH   [pyxis] Save the container state to a squashfs
                              file on the remote host filesystem.
      --container-mount-home  [pyxis] bind mount the user's home directory.
      --no-container-mount-home
                              [pyxis] do not bind mount the user's home
                              directory
      --container-remap-root  [pyxis] ask to be remapped to root inside the
                              container.
      --no-container-remap-root
                              [pyxis] do not remap to root inside the container
      --container-entrypoint  [pyxis] execute the entrypoint from the container
                              image
      --no-container-entrypoint
                              [pyxis] do not execute the entrypoint from the
                              container image
      --container-entrypoint-log
                              [pyxis] print the output of the entrypoint script
      --container-writable    [pyxis] make the container filesystem writable
      --container-readonly    [pyxis] make the container filesystem read-only
      --container-env=NAME[,NAME...]
                              [pyxis] names of environment variables to override
                              with the host environment and set at the
                              entrypoint.
"""
MAGIC = b"hsqs"
"""First bytes of a squashfs file."""
MOUNTS = "LLMB_DEMO_MOUNTS"
"""Environment variable of a container step: its mounts as JSON pairs [source, target]."""
START_S = 20.0
"""How long a container takes to start, simulated seconds."""
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class ContainerError(Exception):
    """The container cannot be started: what pyxis says, line by line."""

    def __init__(self, *lines: str) -> None:
        super().__init__(*lines)
        self.lines = lines


def enter(asked: Parsed, root: Path, environment: dict[str, str], folder: str) -> tuple[dict[str, str], str]:
    """Environment and working directory of a step in its container.

    `folder` is the working directory outside. Without --container-image both stay as they are. Raises
    ContainerError.
    """
    if "container-image" not in asked:
        return environment, folder
    _check_image(asked.get("container-image"))
    mounts = _mounts(asked.get("container-mounts"))
    inside = asked.get("container-workdir", "/workspace")
    outside = place(inside, mounts) or (folder if "container-workdir" not in asked else inside)
    if not os.path.isdir(outside):
        raise ContainerError(f"couldn't chdir to {inside}: No such file or directory")
    path = f"{root / 'container-bin'}:{root / 'node-bin'}:{SYSTEM_PATH}"
    return {**environment, "PATH": path, MOUNTS: json.dumps(mounts)}, outside


def place(path: str, mounts: list[tuple[str, str]]) -> str:
    """Where a path in the container lies outside; empty where nothing is mounted there."""
    for source, target in sorted(mounts, key=lambda mount: -len(mount[1])):
        if path == target or path.startswith(target.rstrip("/") + "/"):
            return source + path[len(target.rstrip("/")) :]
    return ""


def _check_image(image: str) -> None:
    if not image.startswith(("/", "./")):
        raise ContainerError(f"failed to import docker image: {image} (simulated cluster: give an imported image)")
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
    mounts = []
    for entry in filter(None, text.split(",")):
        source, colon, rest = entry.partition(":")
        target = rest.partition(":")[0] if colon else source
        if not source or not target:
            raise ContainerError(f"--container-mounts: invalid format: {entry}")
        if not os.path.exists(source):
            raise ContainerError(f"--container-mounts: source path does not exist: {source}")
        mounts.append((source, target))
    return mounts
