"""Makes the JSON files in this folder: `python -m tests.nemo.upstream.make NEMO BENCHMARKS`, two git clones.

NVIDIA's own `launch.sh` runs for every published row, with a `python` that records its arguments; then NVIDIA's Python
scripts run with these arguments (`record.py`). Only the facts are stored, no part of the scripts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmb_tui.catalog.load import load_presets
from llmb_tui.catalog.rows import Row, rows
from tests.nemo import environment

HERE = Path(__file__).parent
OPTIONS: dict[str, dict[str, str]] = {
    "": {},
    "profile": {"ENABLE_PROFILE": "true"},
    "save": {"ENABLE_CHECKPOINT": "true"},
    "load": {"LOAD_CHECKPOINT_PATH": "/checkpoints/one"},
    "trace": {"ENABLE_NCCLTRACE": "true"},
}
"""Variables of `launch.sh` by run option."""


@dataclass(frozen=True)
class Release:
    """The scripts of one release, and the software that they run on."""

    recipe: str
    tag: str
    folder: str
    """Folder in the repository of the benchmarks."""
    commit: str
    """Commit of NeMo."""
    patch: bool
    """Whether the folder has a patch of NeMo's scripts, and perhaps additional scripts for them."""
    nemo: str
    """Version whose environment of `environment.py` runs the scripts; the commit's NeMo replaces its NeMo."""
    options: tuple[str, ...]
    refused: tuple[str, ...] = ()
    """GPU types that the commit's scripts do not accept."""


ALL = ("profile", "save", "load")
RELEASES = (
    Release("nemotron4@25.04", "v25.04.02", "nemotron", "d2b21556f", True, "2.2.1", ALL),
    Release("llama3.1@25.04", "v25.04.02", "llama3.1", "d2b21556f", True, "2.2.1", (*ALL, "trace")),
    Release("nemotron4-340b@25.12", "v25.12", "nemotron4-340b", "1f422a19d", False, "2.4.0", ALL, ("gb300",)),
)


def key_of(row: Row, option: str = "") -> str:
    """Name of a row in the files: `15b h100 bf16 16 weak`, followed by a run option."""
    return f"{row.size} {row.gpu} {row.dtype} {row.gpus} {row.scaling} {option}".rstrip()


def cases_of(release: Release) -> Iterator[tuple[str, dict[str, str]]]:
    """(key, variables of `launch.sh`): every row, and the first of a size, GPU type and precision with each option."""
    (recipe,) = [recipe for recipe in load_presets().recipes if recipe.id == release.recipe]
    seen: set[tuple[str, str, str]] = set()
    for row in rows(recipe):
        if row.gpu in release.refused:
            continue
        first = (row.size, row.gpu, row.dtype) not in seen
        seen.add((row.size, row.gpu, row.dtype))
        variables = {
            "MODEL_SIZE": row.size,
            "GPU_TYPE": row.gpu,
            "DTYPE": row.dtype,
            "JOB_TOTAL_GPUS": str(row.gpus),
            "STRONG_SCALING": "true" if row.scaling == "strong" else "false",
        }
        for option in ("", *release.options) if first else ("",):
            only = {"DISABLE_PERFRUN": "true"} if option in ("profile", "trace") else {}
            yield key_of(row, option), variables | OPTIONS[option] | only


def make(release: Release, nemo: Path, benchmarks: Path) -> None:
    """Write one release's file."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        work = scratch / "work"
        _extract(benchmarks, release.tag, release.folder, scratch)
        (scratch / release.folder).rename(work)
        _extract(nemo, release.commit, "nemo scripts/performance scripts/__init__.py", work / "NeMo")
        if release.patch:
            subprocess.run(["patch", "-p1", "-s", "-i", work / "gsw_nemo.patch"], cwd=work / "NeMo", check=True)
            for file in work.glob("*.py"):
                file.rename(work / "NeMo/scripts/performance/llm" / file.name)
        cases = {key: _arguments(variables, work, scratch) for key, variables in cases_of(release)}
        (scratch / "cases.json").write_text(json.dumps(cases))
        argv, env = environment.command(release.nemo)
        env["PYTHONPATH"] = f"{work / 'NeMo'}{os.pathsep}{env['PYTHONPATH']}"
        (home,) = {case["env"].pop("NEMORUN_HOME") for case in cases.values()}
        env["NEMORUN_HOME"] = home  # NeMo-Run reads the variable when it is imported
        files = [HERE / "record.py", scratch / "cases.json", scratch / "facts.json"]
        subprocess.run([*argv, *map(str, files)], env=env, check=True, stdout=subprocess.DEVNULL)
        found = json.loads((scratch / "facts.json").read_text())
    source = f"NeMo {release.commit}, dgxc-benchmarking {release.tag} {release.folder}"
    (HERE / f"{release.recipe}.json").write_text(_text({"source": source} | _folded(found)))


def _extract(repository: Path, commit: str, paths: str, into: Path) -> None:
    into.mkdir(exist_ok=True)
    archive = subprocess.Popen(["git", "-C", repository, "archive", commit, *paths.split()], stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", into], stdin=archive.stdout, check=True)
    archive.wait()


def _arguments(variables: dict[str, str], work: Path, scratch: Path) -> dict[str, Any]:
    """Call that `launch.sh` makes: module and arguments, and the environment that the module reads."""
    bin_ = scratch / "bin"
    if not bin_.exists():
        bin_.mkdir()
        for name in ("python", "python3"):
            (bin_ / name).write_text(f'#!/bin/sh\nshift\nprintf "%s\\n" "$@" > {scratch}/argv\nenv > {scratch}/env\n')
            (bin_ / name).chmod(0o755)
        (scratch / "workloads").symlink_to(scratch)
        (scratch / "pretrain_nemotron4-340b").symlink_to(work)
    base = {
        "PATH": f"{bin_}:{os.environ['PATH']}",
        "STAGE_PATH": "/install",
        "LLMB_INSTALL": str(scratch),
        "HF_TOKEN": "a-token",
        "SBATCH_ACCOUNT": "account",
        "SBATCH_PARTITION": "partition",
    }
    subprocess.run(["bash", "launch.sh"], cwd=work, env=base | variables, check=True, stdout=subprocess.DEVNULL)
    read = ("STAGE_PATH", "NEMO_HOME", "NEMORUN_HOME", "ENABLE_CHECKPOINT", "LOAD_CHECKPOINT_PATH")
    text = (scratch / "env").read_text().replace(str(scratch), "/install")
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    given = {name: found[name] for name in read if name in found}
    argv = (scratch / "argv").read_text().replace(str(scratch), "/install").splitlines()
    return {"argv": argv, "env": given, "unset": [name for name in read if name not in found]}


def _text(tree: dict[str, Any], indent: str = "") -> str:
    """JSON with one fact per line."""
    lines = []
    for name, value in sorted(tree.items()):
        deep = isinstance(value, dict)
        lines.append(
            f"{indent} {json.dumps(name)}: {_text(value, indent + ' ').strip() if deep else json.dumps(value)}"
        )
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}\n"


def _folded(found: dict[str, Any]) -> dict[str, Any]:
    """Facts common to all cases, facts common to a size, GPU type and precision, and the others."""
    cases = {
        key: {f"{part} {name}": value for part in ("recipe", "env") for name, value in case[part].items()}
        for key, case in found.items()
    }
    folded: dict[str, Any] = {"all": _shared(list(cases.values())), "groups": {}}
    rest = {key: _without(facts, folded["all"]) for key, facts in cases.items()}
    for group in sorted({_group(key) for key in rest}):
        mine = {key: facts for key, facts in rest.items() if _group(key) == group}
        shared = _shared(list(mine.values()))
        own = {key: _without(facts, shared) for key, facts in mine.items()}
        folded["groups"][group] = {"all": shared, "cases": own}
    return folded


def _group(key: str) -> str:
    """Size, GPU type and precision."""
    return " ".join(key.split()[:3])


def _shared(cases: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in cases[0].items() if all(name in c and c[name] == value for c in cases)}


def _without(facts: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in known}


if __name__ == "__main__":
    for each in RELEASES:
        make(each, Path(sys.argv[1]), Path(sys.argv[2]))
