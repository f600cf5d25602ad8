"""`read_toml`: the content of one file, validated against a dataclass; `TomlFileError` names file, line and field.

Built-in files and the user's own are read alike.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast

from llmb_tui.errors import LlmbError, error_with_remedy
from llmb_tui.language.quantities import byte_size
from llmb_tui.language.text import short_line
from llmb_tui.toml.limits import LONGEST_TOML, check_limits
from llmb_tui.toml.lines import KeyPath, Lines, syntax_line

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

UNLISTED = "*.toml"
"""Stands for the files of a directory that cannot be listed."""
_MOST_FAULTS = 30
_LONGEST_FIELD, _LONGEST_REASON = 200, 2000
T = TypeVar("T")
P = TypeVar("P", bound="TomlFileError")


class TomlFileError(LlmbError):
    """An invalid file, with line and field. Exit code 1."""

    kind: ClassVar[str] = "file"
    """Kind of file, for messages."""
    remedy: ClassVar[str] = "Correct the file, or move it out of the {} directory."
    """Remedy; `{}` is replaced by the directory's name."""

    def __init__(
        self, file: Path, line: int | None, field: str, reason: str, others: Sequence[TomlFileError] = ()
    ) -> None:
        self.file = file
        self.line = line
        """1-based; None for the whole file."""
        self.field = field
        """Dotted path of keys, with 0-based indices of arrays; empty for the whole file."""
        self.others = tuple(others)
        """Further faults of the file."""
        where = f"{file}, line {line}" if line else str(file)
        place = f"{short_line(field, _LONGEST_FIELD)}: " if field else ""
        self.words = f"{place}{short_line(reason, _LONGEST_REASON)}"
        """The fault without its place."""
        super().__init__(
            f"{self.kind} {where}: {self.words}",
            why="\n".join(f"line {other.line}: {other.words}" for other in self.others),
            fix=self.remedy.format(file.parent.name),
            exit_code=1,
        )

    @classmethod
    def at(cls: type[P], file: Path, text: str | Lines, *faults: tuple[KeyPath, str]) -> P:
        """The problem for one or more values, each a path in the file's text and a reason."""
        lines = Lines(text) if isinstance(text, str) else text
        first, *others = [(lines.of(path), dotted(path), reason) for path, reason in faults[:_MOST_FAULTS]]
        if len(faults) > _MOST_FAULTS:
            others.append((lines.of(faults[_MOST_FAULTS][0]), "", "further faults follow, which are not listed"))
        return cls(file, *first, others=[cls(file, *other) for other in others])


def builtin_dir() -> Path:
    """Directory of the built-in presets: inside the installed package, or next to it in a source tree."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "presets"
    return installed if installed.is_dir() else package.parent / "presets"


def toml_files(directories: Sequence[Path]) -> Iterator[Path]:
    """The visible `*.toml` files of these directories, sorted by name. A directory need not exist.

    A directory that cannot be listed yields `*.toml` itself, and reading that reports the reason.
    """
    for directory in directories:
        try:
            names = sorted(name for name in os.listdir(directory) if name.endswith(".toml") and name[0] != ".")
        except FileNotFoundError:
            names = []
        except OSError:
            names = [UNLISTED]
        yield from (directory / name for name in names)


def read_toml(file: Path, form: type[T], problem: type[TomlFileError]) -> tuple[T, str]:
    """The validated content of a file, and its text. Raises `problem`."""
    try:
        text = file_text(file)
    except ValueError as error:
        raise problem(file, None, "", f"cannot be read: {error}") from error
    except OSError as error:
        unread = problem(file, None, "", f"cannot be read: {error.strerror}")
        unread.fix = (error_with_remedy(error, path=file) or unread).fix
        raise unread from error
    try:
        data = parse_toml(text)
    except (ValueError, RecursionError) as error:
        raise problem(file, syntax_line(error), "", toml_fault(error)) from error
    try:
        return _validated(file, text, data, form, problem), text
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise problem(file, None, "", f"cannot be used: {error}") from error


def file_text(file: Path, errors: Literal["strict", "replace"] = "strict") -> str:
    """Text of a file that a person wrote. Raises OSError; ValueError if it is no regular file, too large, or not UTF-8.

    `errors`: whether bytes that are not UTF-8 are an error, or replaced.
    """
    if file.exists() and not file.is_file():  # reading a pipe would block
        raise ValueError("it is not a regular file")
    with file.open(encoding="utf-8", errors=errors) as opened:
        text = opened.read(LONGEST_TOML + 1)
    if len(text) > LONGEST_TOML:
        raise ValueError(f"it is larger than {byte_size(LONGEST_TOML)}")
    return text


def parse_toml(text: str) -> dict[str, Any]:
    """The document of a TOML text. Raises ValueError, and RecursionError for deep nesting."""
    import tomllib  # noqa: PLC0415 - cached presets are not parsed, and most users have no settings

    check_limits(text)
    return tomllib.loads(text)


def toml_fault(error: Exception) -> str:
    """Words for an error of `parse_toml`, without its file."""
    import tomllib  # noqa: PLC0415 - as above

    # A text can be TOML and have a limit exceeded: ours, or the interpreter's for digits and nesting.
    return f"{'is not TOML' if isinstance(error, tomllib.TOMLDecodeError) else 'cannot be read'}: {error}"


@functools.cache
def adapter(form: Any) -> TypeAdapter[Any]:
    """The cached pydantic adapter of a dataclass."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - slow to import; the first frame must not wait

    return TypeAdapter(form)


def _validated(file: Path, text: str, data: dict[str, Any], form: type[T], problem: type[TomlFileError]) -> T:
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    try:
        # Through JSON, because strict mode accepts an array as a tuple there. No field is a date, which JSON lacks.
        checked: T = adapter(cast("Any", form)).validate_json(json.dumps(data, default=str))
    except ValidationError as error:
        raise problem.at(file, text, *_faults(error, data, problem.kind, form).items()) from error
    return checked


def _faults(error: ValidationError, data: dict[str, Any], kind: str, form: Any) -> dict[KeyPath, str]:
    """Faults by path; for a value that fits no type of a union, the fault of the first type."""
    # Replaces pydantic's messages about Python calls.
    words = {"missing": "is missing", "unexpected_keyword_argument": f"is not a field of a {kind}"}
    faults: dict[KeyPath, str] = {}
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        if len(faults) > _MOST_FAULTS:  # a file may have a hundred thousand
            break
        path = _keys(fault["loc"], data, missing=fault["type"] == "missing")
        reason = words.get(fault["type"], fault["msg"])
        if fault["type"] == "unexpected_keyword_argument" and len(path) == 1:
            names = [field.name for field in fields(form)]
            reason += f". {known_names(names, str(path[0]))}"
        faults.setdefault(path, reason)
    return faults


def known_names(names: Sequence[str], wrong: str) -> str:
    """The known names, and the one that resembles an unknown name."""
    from difflib import get_close_matches  # noqa: PLC0415 - needed only after a typo

    close = get_close_matches(wrong, names, n=1)
    return f"Known: {', '.join(names)}" + (f". Did you mean {close[0]}?" if close else "")


def _keys(location: KeyPath, data: dict[str, Any], *, missing: bool) -> KeyPath:
    """Pydantic's location without the parts that name types of a union."""
    path: list[str | int] = []
    value: Any = data
    for part in location:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            if isinstance(value, dict) and missing:
                path.append(part)
            break
        path.append(part)
    return tuple(path)


def dotted(path: KeyPath) -> str:
    """A path as users write it: `runs[1].scale`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
