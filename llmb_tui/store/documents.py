"""Saving and loading our own frozen dataclasses as JSON files, checked against their types when read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line
from llmb_tui.store.files import write_atomic
from llmb_tui.toml.read import adapter

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MEND = "Restore the file from a backup, or move it away."
T = TypeVar("T", bound="DataclassInstance")


def save(path: Path, instance: DataclassInstance) -> None:
    """Write a dataclass of JSON values, nested dataclasses, tuples and dicts; atomic, mode 0600.

    Numbers that are not finite are kept (`NaN`): a loss may be one.
    """
    write_atomic(path, text_of(instance))


def text_of(instance: DataclassInstance) -> bytes:
    """What `save` writes."""
    return json.dumps(dataclasses.asdict(instance), indent=2).encode() + b"\n"


def load(path: Path, type_: type[T], today: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> T:
    """Read what `save` wrote; `today` puts a document of an older version into today's form.

    Unknown keys are ignored, so that an older version reads what a newer one wrote.
    Raises Trouble, naming the file and the field, when the content does not fit the type.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - costs 0.1 s, and the first frame needs no document

    try:
        if not path.is_file() and path.exists():  # a pipe would be waited for
            raise Trouble(f"Could not read {path}.", "It is no file.", _MEND)
        content = path.read_bytes()
        if today is not None:
            content = _converted(content, today)
        document: T = adapter(type_).validate_json(content, strict=True)
        return document
    except OSError as error:
        raise Trouble(f"Could not read {path}.", f"{error.strerror}.", "") from error
    except RecursionError as error:
        raise Trouble(f"{path} does not hold a {type_.__name__}.", "It is nested too deeply.", _MEND) from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise Trouble(
            f"{path} does not hold a {type_.__name__}.",
            clean_line(f"{field}: {first['msg']}" if field else first["msg"]) + ".",
            _MEND,
        ) from error


def _converted(content: bytes, today: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """The document in today's form; what is none stays as it is, for the check to say what is wrong."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return content
    converted = today(document) if isinstance(document, dict) else document
    return content if converted == document else json.dumps(converted).encode()
