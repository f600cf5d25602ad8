"""`checked`: output of `pretrain.py --check` for plans, in the real NeMo of each plan's container."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.load import load_presets
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import Row, rows
from llmb_tui.launch.files import config_files
from llmb_tui.launch.settings import resolve_settings
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Plan
from llmb_tui.plan.selection import NOTHING_MORE, RunOptions, Selection
from llmb_tui.request import RunRequest
from tests.launch.launch_cases import PROFILE
from tests.nemo import environment

PRETRAIN = Path(__file__).parents[2] / "llmb_tui/remote/pretrain.py"
NEMO = {"nvidia/nemo:25.02.01": "2.2.1", "nvidia/nemo:25.07.01": "2.4.0", "nvidia/nemo:25.09.00": "2.5.0"}
"""NeMo's version in each container."""
CATALOG = load_presets()
RECIPES = [recipe for recipe in CATALOG.recipes if recipe.launch.kind == "nemo2"]
ABSENT = "absent"
_CALLBACK = re.compile(r"trainer\.callbacks\[(\w+)\]")

Facts = dict[str, Any]


@dataclass(frozen=True)
class Build:
    """One launch of a recipe."""

    key: str
    """Name of a row and a run option."""
    recipe: Recipe
    row: Row
    plan: Plan


def build(
    recipe: Recipe, row: Row, name: str = "", options: RunOptions = NOTHING_MORE, *, catalog: Catalog = CATALOG
) -> Build:
    """Plan of a published row. Its key is `15b h100 bf16 16 weak`, followed by the name of a run option."""
    selection = Selection(
        recipe.workload,
        recipe.release,
        row.size,
        row.gpu,
        row.dtype,
        row.gpus,
        strong_scaling=row.scaling == "strong",
        options=options,
    )
    key = f"{row.size} {row.gpu} {row.dtype} {row.gpus} {row.scaling} {name}".rstrip()
    return Build(key, recipe, row, plan(catalog, selection))


def first_rows(recipe: Recipe) -> list[Row]:
    """The first row of each size, GPU type and precision."""
    return list({(row.size, row.gpu, row.dtype): row for row in reversed(rows(recipe))}.values())


def checked(builds: list[Build], folder: Path) -> dict[tuple[str, str], Facts]:
    """Printed value of each field's path, by recipe and key. Starts one process for each version of NeMo."""
    found: dict[tuple[str, str], Facts] = {}
    for version in sorted({nemo_of(each) for each in builds}):
        mine = [each for each in builds if nemo_of(each) == version]
        done = check(version, [launch_file(each, folder / f"{version}-{n}") for n, each in enumerate(mine)])
        assert done.returncode == 0, done.stderr
        texts = re.split(rf"^NeMo {re.escape(version)}$", done.stdout, flags=re.MULTILINE)[1:]
        found |= {(each.recipe.id, each.key): facts(text) for each, text in zip(mine, texts, strict=True)}
    return found


def nemo_of(each: Build) -> str:
    """NeMo's version in the container of the plan."""
    return NEMO[str(each.plan.container)]


def launch_file(each: Build, folder: Path) -> Path:
    """Write the `launch.json` that a run takes along."""
    request = RunRequest(each.recipe, each.plan, PROFILE)
    files = dict(config_files(request, resolve_settings(request)))
    folder.mkdir()
    (folder / "launch.json").write_text(files["configs/launch.json"])
    return folder / "launch.json"


def check(version: str, files: list[Path]) -> subprocess.CompletedProcess[str]:
    """Run `pretrain.py --check`."""
    argv, env = environment.command(version)
    program = [*argv, str(PRETRAIN), "--check", *map(str, files)]
    return subprocess.run(program, env=env, capture_output=True, text=True, timeout=300, check=False)


def facts(text: str) -> Facts:
    """Facts in one block of lines. The order of the callbacks is an additional fact, `trainer.callbacks`."""
    document = dict(_pairs(text))
    document["trainer.callbacks"] = [match[1] for name in document if (match := _CALLBACK.fullmatch(name))]
    return document


def _pairs(text: str) -> Iterator[tuple[str, Any]]:
    for line in text.splitlines():
        name, equals, value = line.partition(" = ")
        if equals:
            try:
                yield name, json.loads(value)
            except ValueError:
                yield name, value


def strayed(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Pairs (ours, theirs) of the facts that differ, by name."""
    pairs = {name: (ours.get(name, ABSENT), theirs.get(name, ABSENT)) for name in sorted(ours.keys() | theirs.keys())}
    return {name: pair for name, pair in pairs.items() if json.dumps(pair[0]) != json.dumps(pair[1])}
