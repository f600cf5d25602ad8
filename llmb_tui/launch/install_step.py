"""`InstallStep`: one thing that has to be on a cluster, and how it gets there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InJob:
    """How a step runs as a job."""

    command: str
    """It does so where the node that it is started on lacks this program; empty: everywhere."""
    options: tuple[str, ...]
    """Of sbatch."""


@dataclass(frozen=True, slots=True)
class InstallStep:
    """One idempotent step. It is done when every one of `results` is there, whoever made it."""

    id: str
    """Also the name of its folder on the cluster."""
    title: str
    results: tuple[str, ...]
    """Absolute paths of directories, or of files that are not empty."""
    work: str
    """Body of a POSIX sh function that makes them; it sees `$dir`, the step's folder, and `$owner`, which no other
    attempt has."""
    args: tuple[str, ...]
    """Arguments of that function."""
    size: str = ""
    """What it will take on the disk, where that matters."""
    growing: str = ""
    """Beginning of the names of the files that grow while it works."""
    image: str = ""
    """The container image that it fetches, such as `nvidia/nemo:25.02.01`: the registry knows how big it is."""
    in_job: InJob | None = None
    """None: it always runs where it is started."""
