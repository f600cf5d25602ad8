"""The text of a recipe's preset, found among the files that this program reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from llmb_tui.catalog.load import PresetProblem, read_preset
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.toml.read import builtin_dir, toml_files


@dataclass(frozen=True, slots=True)
class PresetText:
    """A recipe, and the files that it was read from."""

    recipe: Recipe
    file: Path
    constraints: Path | None
    """File with the versions that its own scripts install; None without one."""


def preset_texts(own: Path) -> dict[str, PresetText]:
    """By the recipe's id; of the built-in ones and those of a directory of the user's own."""
    return {**_texts(own), **_builtin_texts()}


@cache
def _builtin_texts() -> dict[str, PresetText]:
    return _texts(builtin_dir())


def _texts(directory: Path) -> dict[str, PresetText]:
    found: dict[str, PresetText] = {}
    for file in toml_files([directory]):
        try:
            recipe = read_preset(file)
        except PresetProblem:
            continue
        named = recipe.upstream.constraints if recipe.upstream else None
        constraints = file.parent / "constraints" / named.file if named else None
        found.setdefault(recipe.id, PresetText(recipe, file, constraints))
    return found
