"""`SuiteText`: content of a suite's file, whatever its format, with the line of each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from llmb_tui.catalog.settings import STRICT
from llmb_tui.language.quantities import byte_size, count
from llmb_tui.plan.selection import ProcedureId
from llmb_tui.suites.suite import MOST_RUNS
from llmb_tui.toml.bounds import Bound
from llmb_tui.toml.lines import KeyPath, Lines
from llmb_tui.toml.read import TomlFileError

_LARGEST_FILE = 1 << 20
NO_NUMBER = "must be a whole number from 1 on"
_AtLeastOne = Annotated[int, Bound(ge=1)]


class SuiteFileError(TomlFileError):
    """A file is not a valid suite. Exit code 1."""

    kind = "suite"
    remedy = "Correct the file. Nothing was submitted."


@dataclass(frozen=True, slots=True)
class FileRun:
    """One run of a file, in the form for `read_request`."""

    values: Mapping[str, Any]
    paths: Mapping[str, KeyPath]
    """Path of each value in the file; `""` for values without their own."""
    repeats: int = 1
    procedure: ProcedureId | None = None


@dataclass
class SuiteText:
    """Content of a file, whatever its format, as far as it is read."""

    file: Path
    lines: Lines
    form: TomlSuite
    asked: list[FileRun] = field(default_factory=list)
    count: int = 0
    """Number of requested runs."""

    def problem(self, path: KeyPath, reason: str) -> SuiteFileError:
        return SuiteFileError.at(self.file, self.lines, (path, reason))

    def ask(self, run: FileRun, path: KeyPath) -> None:
        """Add a run. Raises SuiteFileError if the suite has too many."""
        self.count += run.repeats
        if self.count > MOST_RUNS:
            raise self.problem(path, f"has more than {count(MOST_RUNS)} runs, which is the maximum")
        self.asked.append(run)


@dataclass(frozen=True, slots=True)
class TomlSuite:
    """The TOML format."""

    __pydantic_config__ = STRICT
    name: str | None = None
    cluster: str | None = None
    procedure: str | None = None
    at_most: _AtLeastOne | None = None
    stop_after: _AtLeastOne | None = None
    chain: bool = False
    shuffle: bool | int = False
    """A seed, or true for a fixed default seed."""
    repeats: _AtLeastOne = 1
    workloads: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()
    scales: tuple[int, ...] = ()
    layouts: tuple[dict[str, int], ...] = ()
    gpu: str | None = None
    strong_scaling: bool | None = None
    steps: int | None = None
    time_limit: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    runs: tuple[dict[str, Any], ...] = ()


def content(file: Path) -> str:
    """Text of a file. Raises SuiteFileError."""
    try:
        if file.exists() and not file.is_file():  # opening a pipe would block
            raise SuiteFileError(file, None, "", "cannot be read: it is not a regular file")
        if file.stat().st_size > _LARGEST_FILE:
            raise SuiteFileError(file, None, "", f"cannot be read: it is larger than {byte_size(_LARGEST_FILE)}")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SuiteFileError(file, None, "", f"cannot be read: {why}") from error
