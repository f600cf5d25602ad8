"""`load_presets`: preset files in, `Catalog` out. The one place of this room that reads files."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.check import faults
from llmb_tui.catalog.hardware import Chip, Coefficients
from llmb_tui.catalog.locate import KeyPath, line_of, syntax_line
from llmb_tui.catalog.recipe import Recipe
from llmb_tui.errors import Trouble

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")

# Where pydantic speaks of Python and not of a file.
_WORDS = {"missing": "is missing", "unexpected_keyword_argument": "is not a field of a preset"}


class PresetProblem(Trouble):
    """A preset file that cannot be used: which file, which line, which field. Exit code 1."""

    def __init__(self, file: Path, line: int | None, field: str, reason: str, more: int = 0) -> None:
        self.file = file
        self.line = line
        """1-based; None where the file as a whole is meant."""
        self.field = field
        """Dotted path of keys, with 0-based indices of arrays; empty for the whole file."""
        where = f"{file}, line {line}" if line else str(file)
        super().__init__(
            f"preset {where}: {f'{field}: ' if field else ''}{reason}",
            why=f"{more} more in this file" if more else "",
            fix="Correct the file, or move it out of the presets directory.",
            exit_code=1,
        )


def load_presets(extra_dirs: Sequence[Path] = (), on_problem: Callable[[PresetProblem], None] | None = None) -> Catalog:
    """The built-in recipes and those in the user's own directories.

    Every `*.toml` file is a preset; hidden files are passed over, and so is a directory that does not exist.
    A file that cannot be read, does not fit, or names a recipe that another file has, is told to `on_problem` and
    passed over; without it, `PresetProblem` is raised.
    """
    found: dict[str, tuple[Path, Recipe]] = {}
    for file in preset_files([_builtin_dir(), *extra_dirs]):
        try:
            recipe = read_preset(file)
            if recipe.id in found:
                raise PresetProblem(file, None, "", f"{recipe.id} is already in {found[recipe.id][0]}")
        except PresetProblem as problem:
            if on_problem is None:
                raise
            on_problem(problem)
        else:
            found[recipe.id] = (file, recipe)
    folder = model_dir()
    chips = _read(folder / "hardware.toml", dict[str, Chip])[0]
    stored = folder / "coefficients.toml"
    coefficients = _read(stored, Coefficients)[0] if stored.exists() else None
    return Catalog(tuple(recipe for _, recipe in found.values()), chips, coefficients)


def model_dir() -> Path:
    """Where the facts of the hardware and the coefficients of the fit are."""
    return _builtin_dir() / "model"


def read_preset(file: Path) -> Recipe:
    """The recipe in one preset file. Raises `PresetProblem`."""
    recipe, text = _read(file, Recipe)
    found = list(faults(recipe))
    if found:
        first = found[0]
        raise PresetProblem(file, line_of(text, first.path), _dotted(first.path), first.reason, len(found) - 1)
    return recipe


def _read(file: Path, kind: type[T]) -> tuple[T, str]:
    """What a file holds, checked, and its text."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PresetProblem(file, None, "", f"cannot be read: {error}") from error
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise PresetProblem(file, syntax_line(error), "", f"is not TOML: {error}") from error
    return _validated(file, text, data, kind), text


def _builtin_dir() -> Path:
    package = Path(__file__).resolve().parents[1]
    installed = package / "presets"
    return installed if installed.is_dir() else package.parent / "presets"


def preset_files(directories: Sequence[Path]) -> Iterator[Path]:
    """The files of these directories that are meant to be presets."""
    for directory in directories:
        if directory.is_dir():
            yield from sorted(file for file in directory.glob("*.toml") if not file.name.startswith("."))


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # noqa: PLC0415 - takes long to import, and the first frame must not wait for it

    return TypeAdapter(kind)


def _validated(file: Path, text: str, data: dict[str, Any], kind: type[T]) -> T:
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    try:
        # By way of JSON, where strict mode takes an array for a tuple. TOML's dates have no JSON, and no field is one.
        checked: T = _adapter(cast("Any", kind)).validate_json(json.dumps(data, default=str))
    except ValidationError as error:
        path, reason = _first_fault(error, data)
        raise PresetProblem(file, line_of(text, path), _dotted(path), reason, error.error_count() - 1) from error
    return checked


def _first_fault(error: ValidationError, data: dict[str, Any]) -> tuple[KeyPath, str]:
    """Where and what, without the parts of pydantic's location that are types of a union and no keys."""
    first = error.errors(include_url=False, include_context=False)[0]
    path: list[str | int] = []
    value: Any = data
    for part in first["loc"]:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            if isinstance(value, dict) and first["type"] == "missing":
                path.append(part)
            break
        path.append(part)
    return tuple(path), _WORDS.get(first["type"], first["msg"])


def _dotted(path: KeyPath) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
