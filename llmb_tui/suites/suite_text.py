"""`SuiteText`: what a suite's file says, whatever its form, with the line of each value."""

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
from llmb_tui.toml.read import FileProblem

_LARGEST_FILE = 1 << 20
NO_NUMBER = "must be a whole number from 1 on"
_AtLeastOne = Annotated[int, Bound(ge=1)]


class SuiteProblem(FileProblem):
    """A file that asks for no suite. Exit code 1."""

    kind = "suite"
    remedy = "Correct the file. Nothing was submitted."


@dataclass(frozen=True, slots=True)
class FileRun:
    """One run that a file asks for, as `read_request` takes it."""

    values: Mapping[str, Any]
    paths: Mapping[str, KeyPath]
    """Where each value stands; `""` for all that stand nowhere."""
    repeats: int = 1
    procedure: ProcedureId | None = None


@dataclass
class SuiteText:
    """What a file says, whatever its form, as far as it is read."""

    file: Path
    lines: Lines
    form: TomlSuite
    asked: list[FileRun] = field(default_factory=list)
    count: int = 0
    """Runs that were asked for."""

    def problem(self, path: KeyPath, reason: str) -> SuiteProblem:
        """What is wrong at a place."""
        return SuiteProblem.at(self.file, self.lines, (path, reason))

    def ask(self, one: FileRun, path: KeyPath) -> None:
        """Ask for a run. Raises SuiteProblem where that is one too many."""
        self.count += one.repeats
        if self.count > MOST_RUNS:
            raise self.problem(path, f"asks for more than {count(MOST_RUNS)} runs, which are the most")
        self.asked.append(one)


@dataclass(frozen=True, slots=True)
class TomlSuite:
    """The TOML form."""

    __pydantic_config__ = STRICT
    name: str | None = None
    cluster: str | None = None
    procedure: str | None = None
    at_most: _AtLeastOne | None = None
    stop_after: _AtLeastOne | None = None
    chain: bool = False
    shuffle: bool | int = False
    """A seed, or true for one that is always the same."""
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
    """The text of a file. Raises SuiteProblem."""
    try:
        if file.exists() and not file.is_file():  # a pipe would be waited for
            raise SuiteProblem(file, None, "", "cannot be read: it is not a regular file")
        if file.stat().st_size > _LARGEST_FILE:
            raise SuiteProblem(file, None, "", f"cannot be read: it is larger than {byte_size(_LARGEST_FILE)}")
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SuiteProblem(file, None, "", f"cannot be read: {why}") from error
