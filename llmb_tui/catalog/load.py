"""`load_presets`: preset files in, `Catalog` out. The one place of this room that reads files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from llmb_tui.catalog.catalog import BrokenPreset, Catalog
from llmb_tui.catalog.check import faults
from llmb_tui.catalog.hardware import Chip, Coefficients
from llmb_tui.catalog.recipe import RELEASE, Recipe
from llmb_tui.toml.read import FileProblem, builtin_dir, read_toml, toml_files

_NAMED = re.compile(r"""^[ \t]*(workload|release)[ \t]*=[ \t]*["']([^"'\n]*)["']""", re.MULTILINE)


class PresetProblem(FileProblem):
    """A preset file that cannot be used. Exit code 1."""

    kind = "preset"


def load_presets(extra_dirs: Sequence[Path] = (), on_problem: Callable[[PresetProblem], None] | None = None) -> Catalog:
    """The built-in recipes and those in the user's own directories.

    Every `*.toml` file is a preset; hidden files are passed over, and so is a directory that does not exist.
    A file that cannot be read, does not fit, or names a recipe that another file has, is told to `on_problem` and
    passed over; without it, `PresetProblem` is raised.
    """
    by_id: dict[str, tuple[Path, Recipe]] = {}
    broken = []
    for file in toml_files([builtin_dir(), *extra_dirs]):
        try:
            recipe = read_preset(file)
            if recipe.id in by_id:
                raise PresetProblem(file, None, "", f"{recipe.id} is already in {by_id[recipe.id][0]}")
        except PresetProblem as problem:
            if on_problem is None:
                raise
            on_problem(problem)
            broken.append(_broken(problem))
        else:
            by_id[recipe.id] = (file, recipe)
    folder = model_dir()
    chips = read_toml(folder / "hardware.toml", dict[str, Chip], PresetProblem)[0]
    stored = folder / "coefficients.toml"
    coefficients = read_toml(stored, Coefficients, PresetProblem)[0] if stored.exists() else None
    return Catalog(tuple(recipe for _, recipe in by_id.values()), chips, coefficients, tuple(broken))


def _broken(problem: PresetProblem) -> BrokenPreset:
    """What a file that cannot be used says of itself, without reading it as TOML."""
    try:
        text = problem.file.read_text(encoding="utf-8", errors="replace") if problem.file.is_file() else ""
    except OSError:
        text = ""
    named = {match[1]: match[2] for match in reversed(list(_NAMED.finditer(text)))}
    release = named.get("release", "")
    is_release = re.fullmatch(RELEASE, release, re.ASCII) is not None
    return BrokenPreset(problem.what, named.get("workload"), release if is_release else None)


def model_dir() -> Path:
    """Where the facts of the hardware and the coefficients of the fit are."""
    return builtin_dir() / "model"


def read_preset(file: Path) -> Recipe:
    """The recipe in one preset file. Raises `PresetProblem`."""
    recipe, text = read_toml(file, Recipe, PresetProblem)
    recipe = _with_constraints(file, text, recipe)
    try:
        disagreements = list(faults(recipe))
    except (ArithmeticError, ValueError, RecursionError) as error:  # numbers that no check was made for
        raise PresetProblem(file, None, "", f"cannot be checked: {error}") from error
    if disagreements:
        raise PresetProblem.at(file, text, *disagreements)
    return recipe


def _with_constraints(file: Path, text: str, recipe: Recipe) -> Recipe:
    """The recipe with the lines of the constraints file that it names. Raises `PresetProblem`."""
    if recipe.upstream is None or recipe.upstream.constraints is None:
        return recipe
    constraints = recipe.upstream.constraints
    if Path(constraints.file).name != constraints.file:  # nothing elsewhere is read, whoever wrote the preset
        fault = ("upstream", "constraints", "file"), "is no name of a file in the folder beside the preset"
        raise PresetProblem.at(file, text, fault)
    try:
        lines = (file.parent / "constraints" / constraints.file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        fault = ("upstream", "constraints", "file"), f"cannot be read: {error}"
        raise PresetProblem.at(file, text, fault) from error
    kept = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    return replace(recipe, upstream=replace(recipe.upstream, constraints=replace(constraints, requirements=kept)))
