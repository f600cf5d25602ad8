"""What is said of a fault of the program itself: the place, and never a value, which may be a secret that was typed."""

# ruff: noqa: PLC0415 - nothing that only a fault needs is imported before the first frame
from __future__ import annotations

import traceback
from pathlib import Path

import llmb_tui


def report_of(error: BaseException) -> str:
    """All places that led to it, after those of what it came from; of its words only the system's own."""
    import platform
    from importlib.metadata import version

    parts = [f"llmb-tui {llmb_tui.__version__} stopped on a fault of its own. Runs and installs on clusters go on."]
    for one in _chain(error):
        parts += ["", "".join(traceback.format_tb(one.__traceback__)).rstrip(), _name(one)]
    versions = f"Python {platform.python_version()}, Textual {version('textual')}"
    parts += ["", f"Report these lines and what you did last ({versions}). No value that was typed is in them."]
    return "\n".join(parts)


def place_of(error: BaseException) -> str:
    """One line: what it is, and the last steps on the way to it."""
    steps = [f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)[-3:]]
    return f"{_name(error)}, at {' → '.join(steps)}"


def _name(error: BaseException) -> str:
    """Its kind. Python's words about it can hold values, the system's cannot."""
    words = error.strerror if isinstance(error, OSError) else None
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _chain(error: BaseException) -> list[BaseException]:
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return [*(_chain(before) if before is not None else ()), error]
