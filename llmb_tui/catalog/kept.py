"""A catalog as it was read last, so that files that have not changed need not be parsed and checked again.

It is believed as far as Python believes a `.pyc`: for the very files that it was made of, by the very program. It is
JSON, so that nothing in it can run.
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
    """What `load_presets` makes a catalog of: the program, and all that it reads; None where that cannot be read."""
    try:
        code = [(file.name, file.stat().st_mtime_ns) for file in sorted(Path(__file__).parent.glob("*.py"))]
        rooms = [each / below for each in (builtin_dir(), *extra_dirs) for below in ("", "constraints", "model")]
        files = [file for room in rooms for file in _files(room)]
        return [llmb_tui.__version__, code, [(str(file), zlib.crc32(file.read_bytes())) for file in files]]
    except OSError:
        return None


def _files(directory: Path) -> list[Path]:
    """Raises OSError for what is neither a file nor a directory: it must not be opened."""
    if not directory.is_dir():
        return []
    found = [entry for entry in sorted(os.scandir(directory), key=lambda entry: entry.name) if not entry.is_dir()]
    if not all(entry.is_file() for entry in found):
        raise OSError
    return [Path(entry.path) for entry in found]


def kept_text(catalog: Catalog, stamp: list[object]) -> str:
    """What `kept_catalog` reads. Raises ValueError for a value that it would take for another."""
    parts = (catalog.recipes, catalog.chips, catalog.coefficients)
    return json.dumps({"stamp": stamp, "parts": [_plain(part) for part in parts]})


def kept_catalog(file: Path, stamp: list[object] | None) -> Catalog | None:
    """The catalog that was kept in a file; None where that is not the one of this stamp, or the file is damaged."""
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        if stamp is None or not text.startswith(json.dumps({"stamp": stamp})[:-1] + ","):
            return None
        return Catalog(*json.loads(text, object_hook=_made)["parts"])
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {_FORM: [type(value).__name__, *(_plain(getattr(value, field.name)) for field in fields(value))]}
    if isinstance(value, tuple):
        return {_TUPLE: [_plain(one) for one in value]}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        if value.keys() & {_FORM, _TUPLE}:
            raise ValueError("a key that means something else here")
        return {key: _plain(one) for key, one in value.items()}
    return value


def _made(found: dict[str, Any]) -> Any:
    if _TUPLE in found:
        return tuple(found[_TUPLE])
    if _FORM in found:
        name, *values = found[_FORM]
        return _FORMS[name](*values)
    return found
