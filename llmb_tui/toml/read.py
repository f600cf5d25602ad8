"""`read_toml`: what one file holds, checked against a dataclass; a `FileProblem` names file, line and field.

The files that come with the program, and those of a person's own, are read in the same way.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from llmb_tui.errors import Trouble, trouble_of
from llmb_tui.language.text import clean_line
from llmb_tui.toml.lines import KeyPath, Lines, syntax_line

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

UNLISTED = "*.toml"
"""In the place of the files of a directory that cannot be listed."""
T = TypeVar("T")
P = TypeVar("P", bound="FileProblem")


class FileProblem(Trouble):
    """A file that cannot be used: which file, which line, which field. Exit code 1."""

    kind: ClassVar[str] = "file"
    """What the file should be."""
    mend: ClassVar[str] = "Correct the file, or move it out of the {} directory."
    """What to do; `{}`: the name of its directory."""

    def __init__(
        self, file: Path, line: int | None, field: str, reason: str, others: Sequence[FileProblem] = ()
    ) -> None:
        self.file = file
        self.line = line
        """1-based; None where the file as a whole is meant."""
        self.field = field
        """Dotted path of keys, with 0-based indices of arrays; empty for the whole file."""
        self.others = tuple(others)
        """The further faults of this file."""
        where = f"{file}, line {line}" if line else str(file)
        self.words = f"{clean_line(f'{field}: ' if field else '')}{clean_line(reason)}"
        """What is wrong, without the place."""
        super().__init__(
            f"{self.kind} {where}: {self.words}",
            why="\n".join(f"line {other.line}: {other.words}" for other in self.others),
            fix=self.mend.format(file.parent.name),
            exit_code=1,
        )

    @classmethod
    def at(cls: type[P], file: Path, text: str | Lines, *faults: tuple[KeyPath, str]) -> P:
        """The problem of the values at paths of the file's text, one or more of them, each with its reason."""
        lines = Lines(text) if isinstance(text, str) else text
        first, *others = [(lines.of(path), dotted(path), reason) for path, reason in faults]
        return cls(file, *first, others=[cls(file, *other) for other in others])


def builtin_dir() -> Path:
    """Where the presets that come with the program are: beside the package, or in it once it is installed."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "presets"
    return installed if installed.is_dir() else package.parent / "presets"


def toml_files(directories: Sequence[Path]) -> Iterator[Path]:
    """The `*.toml` files of these directories, by name; not the hidden ones. A directory need not exist.

    Of one that cannot be listed it is `*.toml` itself: whoever reads that says why.
    """
    for directory in directories:
        try:
            names = sorted(name for name in os.listdir(directory) if name.endswith(".toml") and name[0] != ".")
        except FileNotFoundError:
            names = []
        except OSError:
            names = [UNLISTED]
        yield from (directory / name for name in names)


def read_toml(file: Path, form: type[T], problem: type[FileProblem]) -> tuple[T, str]:
    """What a file holds, and its text. Raises `problem`."""
    try:
        if file.exists() and not file.is_file():  # a pipe would be waited for
            raise problem(file, None, "", "cannot be read: it is no file")
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise problem(file, None, "", f"cannot be read: {error}") from error
    except OSError as error:
        unread = problem(file, None, "", f"cannot be read: {error.strerror}")
        unread.fix = (trouble_of(error, path=file) or unread).fix
        raise unread from error
    try:
        data = parse_toml(text)
    except (ValueError, RecursionError) as error:  # the former also for an integer of thousands of digits
        raise problem(file, syntax_line(error), "", f"is not TOML: {error}") from error
    try:
        return _validated(file, text, data, form, problem), text
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise problem(file, None, "", f"cannot be used: {error}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """The document. Raises ValueError."""
    import tomllib  # noqa: PLC0415 - presets that were kept are not parsed, and most people have set nothing

    return tomllib.loads(text)


@functools.cache
def adapter(form: Any) -> TypeAdapter[Any]:
    """What checks a document against a dataclass; cached."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - takes long to import, and the first frame must not wait for it

    return TypeAdapter(form)


def _validated(file: Path, text: str, data: dict[str, Any], form: type[T], problem: type[FileProblem]) -> T:
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    try:
        # By way of JSON, where strict mode takes an array for a tuple. TOML's dates have no JSON, and no field is one.
        checked: T = adapter(cast("Any", form)).validate_json(json.dumps(data, default=str))
    except ValidationError as error:
        raise problem.at(file, text, *_faults(error, data, problem.kind, form).items()) from error
    return checked


def _faults(error: ValidationError, data: dict[str, Any], kind: str, form: Any) -> dict[KeyPath, str]:
    """What is wrong, by its place; of a value that fits no type of a union, why it does not fit the first."""
    # Where pydantic speaks of Python and not of a file.
    words = {"missing": "is missing", "unexpected_keyword_argument": f"is not a field of a {kind}"}
    faults: dict[KeyPath, str] = {}
    for one in error.errors(include_url=False, include_context=False):
        path = _keys(one["loc"], data, missing=one["type"] == "missing")
        reason = words.get(one["type"], one["msg"])
        if one["type"] == "unexpected_keyword_argument" and len(path) == 1:
            names = [field.name for field in fields(form)]
            reason += f"; {known_are(names, str(path[0]))}"
        faults.setdefault(path, reason)
    return faults


def known_are(names: Sequence[str], wrong: str) -> str:
    """What may stand in the place of a name that is not known."""
    from difflib import get_close_matches  # noqa: PLC0415 - only who mistyped needs it

    close = get_close_matches(wrong, names, n=1)
    return f"known are: {', '.join(names)}" + (f"; {close[0]} may be meant" if close else "")


def _keys(location: KeyPath, data: dict[str, Any], *, missing: bool) -> KeyPath:
    """Pydantic's location without the parts that are types of a union and no keys."""
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
    """A path as a person writes it: `runs[1].scale`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
