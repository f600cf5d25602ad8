"""A cache of the catalog: unchanged preset files are not parsed and validated again.

The cache is valid, like a `.pyc`, for the same files and the same program. It is JSON, so that reading it runs no code.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import llmb_tui
from llmb_tui.catalog import hardware, recipe, settings, upstream
from llmb_tui.catalog.catalog import Catalog
from llmb_tui.toml.read import builtin_dir

_FORM, _TUPLE = "@", "()"
_FORMS: dict[str, Any] = {
    name: form
    for room in (settings, upstream, recipe, hardware)
    for name, form in vars(room).items()
    if isinstance(form, type) and is_dataclass(form)
}


def stamp_of(extra_dirs: Sequence[Path]) -> list[object] | None:
    """Stamp of the inputs of `load_presets`: the program and every file; None if one cannot be read."""
    try:
        code = [(file.name, file.stat().st_mtime_ns) for file in sorted(Path(__file__).parent.glob("*.py"))]
        rooms = [each / below for each in (builtin_dir(), *extra_dirs) for below in ("", "constraints", "model")]
        files = [file for room in rooms for file in _files(room)]
        return [llmb_tui.__version__, code, [(str(file), zlib.crc32(file.read_bytes())) for file in files]]
    except OSError:
        return None


def _files(directory: Path) -> list[Path]:
    """Files of a directory. Raises OSError for a pipe or a device, which must not be opened."""
    if not directory.is_dir():
        return []
    files = [entry for entry in sorted(os.scandir(directory), key=lambda entry: entry.name) if not entry.is_dir()]
    if not all(entry.is_file() for entry in files):
        raise OSError
    return [Path(entry.path) for entry in files]


def kept_text(catalog: Catalog, stamp: list[object]) -> str:
    """The text of the cache, for `kept_catalog`. Raises ValueError for a value that it cannot represent."""
    parts = (catalog.recipes, catalog.chips, catalog.coefficients)
    return json.dumps({"stamp": stamp, "parts": [_plain(part) for part in parts]})


def kept_catalog(file: Path, stamp: list[object] | None) -> Catalog | None:
    """The cached catalog of a file; None for another stamp or a damaged file."""
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        if stamp is None or not text.startswith(json.dumps({"stamp": stamp})[:-1] + ","):
            return None
        return Catalog(*json.loads(text, object_hook=_object)["parts"])
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {_FORM: [type(value).__name__, *(_plain(getattr(value, field.name)) for field in fields(value))]}
    if isinstance(value, tuple):
        return {_TUPLE: [_plain(item) for item in value]}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        if value.keys() & {_FORM, _TUPLE}:
            raise ValueError("a reserved key")
        return {key: _plain(item) for key, item in value.items()}
    return value


def _object(plain: dict[str, Any]) -> Any:
    if _TUPLE in plain:
        return tuple(plain[_TUPLE])
    if _FORM in plain:
        name, *values = plain[_FORM]
        return _FORMS[name](*values)
    return plain
