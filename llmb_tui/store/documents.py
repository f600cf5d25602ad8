"""Save frozen dataclasses as JSON files, and load them with a check of their types."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from llmb_tui.errors import LlmbError
from llmb_tui.language.json_text import parse_json
from llmb_tui.language.text import clean_line
from llmb_tui.store.files import write_atomic
from llmb_tui.toml.read import adapter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_REPAIR = "Restore the file from a backup, or move it away."
_MAY_BE_INFINITE = re.compile(rb"NaN|Infinity|\d[eE]\+?\d{2}|\d{31}")
_LARGEST = 1e30
"""Largest number of a document: charts and texts of larger ones would overflow."""
T = TypeVar("T", bound="DataclassInstance")


def save(path: Path, instance: DataclassInstance) -> None:
    """Write a dataclass of JSON values, nested dataclasses, tuples and dicts; atomic, mode 0600.

    Numbers that are not finite are stored as `NaN` or `Infinity`, because a loss may have such a value.
    """
    write_atomic(path, text_of(instance))


def text_of(instance: DataclassInstance) -> bytes:
    """Bytes that `save` writes, without the empty values of fields whose metadata has `optional`."""
    document = dataclasses.asdict(instance)
    for field in dataclasses.fields(instance):
        if field.metadata.get("optional") and not document[field.name]:
            del document[field.name]
    return json.dumps(document, indent=2).encode() + b"\n"


def load(
    path: Path,
    type_: type[T],
    migrate: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    *,
    only_finite: bool = False,
) -> T:
    """Read a file that `save` wrote; `migrate` converts a document of an older version.

    Unknown keys are ignored, so that an older version can read files of a newer one.
    Raises LlmbError, naming the file and the field, if the content does not fit the type. With `only_finite`, infinite
    numbers and NaN do not fit: a plan has none, and nothing can be computed from them.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - takes 0.1 s, and the first frame needs no document

    try:
        if not path.is_file() and path.exists():  # reading a pipe would block
            raise LlmbError(f"Could not read {path}.", "It is not a regular file.", _REPAIR)
        content = path.read_bytes()
        if migrate is not None:
            content = _migrated(content, migrate)
        document: T = adapter(type_).validate_json(content, strict=True)
        if only_finite and _MAY_BE_INFINITE.search(content):
            _require_finite(path, document)
        return document
    except OSError as error:
        raise LlmbError(f"Could not read {path}.", f"{error.strerror}.", "") from error
    except RecursionError as error:
        raise LlmbError(f"{path} does not hold a {type_.__name__}.", "It is nested too deeply.", _REPAIR) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise LlmbError(
            f"{path} does not hold a {type_.__name__}.",
            clean_line(f"{field}: {first['msg']}" if field else first["msg"]) + ".",
            _REPAIR,
        ) from error


def _require_finite(path: Path, document: DataclassInstance) -> None:
    if not _in_range(dataclasses.asdict(document)):
        what = f"{path} does not hold a {type(document).__name__}."
        raise LlmbError(what, "One of its numbers is not finite, or too large.", _REPAIR)


def _in_range(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_in_range, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_in_range, value))
    return not isinstance(value, int | float) or abs(value) <= _LARGEST


def _migrated(content: bytes, migrate: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """The converted document; anything else is returned unchanged, so that the type check reports the fault."""
    try:
        document = parse_json(content)
    except ValueError:
        return content
    converted = migrate(document) if isinstance(document, dict) else document
    return content if converted == document else json.dumps(converted).encode()
