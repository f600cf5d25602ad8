"""The stand-ins' git repositories: NVIDIA's repositories that the presets name, with content of our own.

A commit's id follows from its content, so it cannot be the real one. The stand-in's id replaces the real one in the
stand-ins' files and in copies of the presets.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FILES = Path(__file__).parent / "files"
RECIPES = {
    "v24.11.1": {"llama3.1": "llama31_24_11"},
    "v25.02": {"grok1": "grok1_25_02"},
    "v25.04": {"nemotron": "nemotron_25_04", "llama3.1": "llama31_25_04"},
    "v25.12": {"nemotron4-340b": "nemotron4_340b_25_12"},
}
"""Folders of the recipe repository by tag, and the folders of their files here."""
NEMO_25_04 = "d2b21556f2455b52ad7217f334bb66eaa13c0f83"
NEMO_25_12 = "1f422a19d942fab0aa54e3099f4b5752d871cb5d"
NEMO_25_12_NEW = "f260da5d65fccdf9c78283647f7497d9428fb654"
"""For H100 and GB300: no source confirms that the real commit is public."""
COMMITS = {
    "NeMo": (NEMO_25_04, NEMO_25_12, NEMO_25_12_NEW),
    "Megatron-LM": (
        "ee6737da824b18f945946b4c798adf2328374cb7",
        "ac198fc0d60a8c748597e01ca4c6887d3a7bcf3d",
        "20d73fe76eb03672c02f637e9b47e562b9010d4c",
    ),
    "NeMo-Run": ("fb550a3738768fbf1100e1579f3ca0e2207c6487", "04f900a9c1cde79ce6beca6a175b4c62b99d7982"),
}
"""Real ids that the setup scripts fetch, oldest first."""
NAMES = ("dgxc-benchmarking", *COMMITS)
_DATE = "2025-04-30T12:00:00+00:00"


@dataclass(frozen=True)
class Repositories:
    """Bare repositories `NAME.git` in one folder."""

    folder: Path
    ids: dict[str, str]
    """Commit id of the stand-in by the real one."""

    def path(self, name: str) -> Path:
        """Path of a repository."""
        return self.folder / f"{name}.git"

    def translated(self, text: str) -> str:
        """Text with the stand-ins' ids in place of the real ones."""
        for real, ours in self.ids.items():
            text = text.replace(real, ours)
        return text


def make(folder: Path, wheels: Path) -> Repositories:
    """Make all repositories. NeMo-Run's is the release in `wheels`, the one after the oldest commit."""
    repositories = Repositories(folder, {})
    trees: dict[str, Callable[[Path, int], None]] = {
        "NeMo": _fill_nemo,
        "Megatron-LM": lambda tree, _: _fill_package(tree, "megatron"),
        "NeMo-Run": lambda tree, _: _fill_nemo_run(tree, wheels),
    }
    for name, fill in trees.items():
        tree = _begin(repositories, name)
        for number, real in enumerate(COMMITS[name]):
            fill(tree, number)
            # One branch for each commit, so that a commit can be removed.
            _git(tree, "checkout", "-q", "-b", real[:7])
            repositories.ids[real] = _commit(repositories, tree, f"Stand-in for {real}")
        _git(tree, "checkout", "-q", "-b", "main", f"{COMMITS[name][0][:7]}")
        _end(repositories, tree, name)
    tree = _begin(repositories, "dgxc-benchmarking")
    for tag, folders in RECIPES.items():
        _empty(tree)
        for place, files in folders.items():
            shutil.copytree(FILES / files, tree / place, ignore=shutil.ignore_patterns("__pycache__"))
        _commit(repositories, tree, f"Stand-in for {tag}")
        _git(tree, "tag", tag)
    _git(tree, "branch", "-m", "main")
    _end(repositories, tree, "dgxc-benchmarking")
    return repositories


def make_checkout(tree: Path) -> None:
    """NeMo as an image has it: a repository with one commit."""
    tree.mkdir(parents=True)
    _git(tree, "init", "-q")
    _git(tree, "commit", "-q", "--allow-empty", "--message", "Stand-in for the NeMo of an image")


def _begin(made: Repositories, name: str) -> Path:
    tree = made.folder / name
    tree.mkdir(parents=True)
    _git(tree, "init", "-q")
    return tree


def _end(made: Repositories, tree: Path, name: str) -> None:
    path = made.path(name)
    _git(tree, "clone", "-q", "--bare", str(tree), str(path))
    shutil.rmtree(tree)
    _git(path, "remote", "remove", "origin")
    # As on GitHub: any commit can be fetched by its id, with or without its files.
    _git(path, "config", "uploadpack.allowAnySHA1InWant", "true")
    _git(path, "config", "uploadpack.allowFilter", "true")


def _commit(made: Repositories, tree: Path, message: str) -> str:
    for path in tree.rglob("*.sh"):
        path.write_text(made.translated(path.read_text()))
    _git(tree, "add", "--all")
    _git(tree, "commit", "-q", "--allow-empty", "--message", message)
    return _git(tree, "rev-parse", "HEAD").strip()


def _empty(tree: Path) -> None:
    for path in tree.iterdir():
        if path.name != ".git":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _fill_nemo(tree: Path, number: int) -> None:
    _fill_package(tree, "nemo_25_04")
    if number:
        _fill_package(tree, "nemo_25_12")
        (tree / "CHANGES").write_text(f"{number}\n")


def _fill_package(tree: Path, files: str) -> None:
    for source in (FILES / "package", FILES / files):
        ignore = shutil.ignore_patterns("__pycache__")
        # With the current time: git takes a file of the same size and time for the one in its index.
        shutil.copytree(source, tree, dirs_exist_ok=True, ignore=ignore, copy_function=shutil.copy)


def _fill_nemo_run(tree: Path, wheels: Path) -> None:
    """Fill in the real NeMo-Run from its wheel, with the stand-ins' build backend, and the little one next to it."""
    wheel = next(wheels.glob("nemo_run-*.whl"))
    version = wheel.name.split("-")[1]
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tree, [name for name in archive.namelist() if name.startswith("nemo_run/")])
        about_it = f"nemo_run-{version}.dist-info"
        metadata = archive.read(f"{about_it}/METADATA").decode().split("\n\n")[0].splitlines()
        entry_points = archive.read(f"{about_it}/entry_points.txt").decode()
    about = {
        "name": "nemo_run",
        "version": version,
        "packages": ["nemo_run"],
        "metadata": [line for line in metadata if line.startswith(("Requires-Dist", "Provides-Extra"))],
        "entry_points": entry_points,
        "little": "little",
    }
    for source, target in ((FILES / "package", tree), (FILES / "nemo_run_little", tree / "little")):
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "stand_in.json").write_text(json.dumps(about, indent=2))


def _git(folder: Path, *words: str) -> str:
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.defpath}
    for who in ("AUTHOR", "COMMITTER"):
        own |= {f"GIT_{who}_NAME": "stand-in", f"GIT_{who}_EMAIL": "stand-in@localhost", f"GIT_{who}_DATE": _DATE}
    return subprocess.run(["git", *words], cwd=folder, env=own, check=True, capture_output=True, text=True).stdout
