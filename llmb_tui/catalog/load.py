"""`load_presets`: reads preset files into a `Catalog`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from llmb_tui.catalog.catalog import BrokenPreset, Catalog
from llmb_tui.catalog.check import faults
from llmb_tui.catalog.hardware import Chip, Coefficients
from llmb_tui.catalog.recipe import RELEASE, Recipe
from llmb_tui.toml.read import TomlFileError, builtin_dir, file_text, read_toml, toml_files

_NAME_LINE = re.compile(r"""^[ \t]*(workload|release)[ \t]*=[ \t]*["']([^"'\n]*)["']""", re.MULTILINE)


class PresetError(TomlFileError):
    """An invalid preset file. Exit code 1."""

    kind = "preset"


def load_presets(extra_dirs: Sequence[Path] = (), on_problem: Callable[[PresetError], None] | None = None) -> Catalog:
    """The built-in recipes and those in the user's directories.

    Each visible `*.toml` file is a preset; a directory need not exist. A file that is unreadable or invalid, or has the
    name of another recipe, is reported to `on_problem` and skipped; without `on_problem`, `PresetError` is raised.
    """
    by_id: dict[str, tuple[Path, Recipe]] = {}
    broken = []
    for file in toml_files([builtin_dir(), *extra_dirs]):
        try:
            recipe = read_preset(file)
            if recipe.id in by_id:
                raise PresetError(file, None, "", f"{recipe.id} is already in {by_id[recipe.id][0]}")
        except PresetError as problem:
            if on_problem is None:
                raise
            on_problem(problem)
            broken.append(_broken(problem))
        else:
            by_id[recipe.id] = (file, recipe)
    folder = model_dir()
    chips = read_toml(folder / "hardware.toml", dict[str, Chip], PresetError)[0]
    stored = folder / "coefficients.toml"
    coefficients = read_toml(stored, Coefficients, PresetError)[0] if stored.exists() else None
    return Catalog(tuple(recipe for _, recipe in by_id.values()), chips, coefficients, tuple(broken))


def _broken(problem: PresetError) -> BrokenPreset:
    """The names in an invalid file, without parsing it as TOML."""
    try:
        text = file_text(problem.file, errors="replace")
    except (OSError, ValueError):
        text = ""
    names = {match[1]: match[2] for match in reversed(list(_NAME_LINE.finditer(text)))}
    release = names.get("release", "")
    is_release = re.fullmatch(RELEASE, release, re.ASCII) is not None
    return BrokenPreset(problem.what, names.get("workload"), release if is_release else None)


def model_dir() -> Path:
    """Directory of the hardware facts and the fitted coefficients."""
    return builtin_dir() / "model"


def read_preset(file: Path) -> Recipe:
    """The recipe in one preset file. Raises `PresetError`."""
    recipe, text = read_toml(file, Recipe, PresetError)
    recipe = _with_constraints(file, text, recipe)
    try:
        disagreements = list(faults(recipe))
    except (ArithmeticError, ValueError, RecursionError) as error:  # extreme numbers
        raise PresetError(file, None, "", f"cannot be checked: {error}") from error
    if disagreements:
        raise PresetError.at(file, text, *disagreements)
    return recipe


def _with_constraints(file: Path, text: str, recipe: Recipe) -> Recipe:
    """The recipe with the lines of its constraints file. Raises `PresetError`."""
    if recipe.upstream is None or recipe.upstream.constraints is None:
        return recipe
    constraints = recipe.upstream.constraints
    if Path(constraints.file).name != constraints.file:  # no file elsewhere is read
        fault = (
            ("upstream", "constraints", "file"),
            "is not the name of a file in `constraints` next to the preset",
        )
        raise PresetError.at(file, text, fault)
    try:
        lines = file_text(file.parent / "constraints" / constraints.file).splitlines()
    except (OSError, ValueError) as error:
        fault = ("upstream", "constraints", "file"), f"cannot be read: {error}"
        raise PresetError.at(file, text, fault) from error
    kept = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    return replace(recipe, upstream=replace(recipe.upstream, constraints=replace(constraints, requirements=kept)))
