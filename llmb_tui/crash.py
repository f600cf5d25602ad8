"""Reports about an internal error: places in the code, and never a value, which may be a secret that was typed."""

# ruff: noqa: PLC0415 - modules that only a crash needs are not imported before the first frame
from __future__ import annotations

import traceback
from pathlib import Path

import llmb_tui


def report_of(error: BaseException) -> str:
    """All places that led to the error, its causes first; of the messages, only those of the operating system."""
    import platform
    from importlib.metadata import version

    parts = [f"llmb-tui {llmb_tui.__version__} stopped because of an internal error. Runs and installs continue."]
    for link in _chain(error):
        parts += ["", "".join(traceback.format_tb(link.__traceback__)).rstrip(), _name(link)]
    versions = f"Python {platform.python_version()}, Textual {version('textual')}"
    parts += ["", f"Report these lines and what you did last ({versions}). They contain nothing that you typed."]
    return "\n".join(parts)


def place_of(error: BaseException) -> str:
    """One line: type of the error, and the last steps to its place."""
    steps = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-3:]]
    return f"{_name(error)}, at {' → '.join(steps)}"


def _name(error: BaseException) -> str:
    """Type of the error, with the system's message only: Python's own messages may contain values."""
    message = error.strerror if isinstance(error, OSError) else None
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _chain(error: BaseException) -> list[BaseException]:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return [*(_chain(cause) if cause is not None else ()), error]
