"""`Notes`: users' notes on runs, and the runs' tags, each in a file in the run's folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from llmb_tui.errors import LlmbError
from llmb_tui.language.json_text import parse_json
from llmb_tui.language.quantities import count
from llmb_tui.language.text import clean_line
from llmb_tui.launch.note import Note
from llmb_tui.launch.runs import Runs
from llmb_tui.store.files import locked, write_atomic

LONGEST_NOTE = 1000
"""Characters."""
MOST_TAGS = 16
_TAG = re.compile(r"[\w.+@:/=-]{1,32}")
_NAME = "note.json"
_LONGEST_FILE = 1 << 16


class Notes:
    """Notes of the remembered runs. Safe for threads and for several processes on this machine."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def of(self, run_id: str) -> Note:
        """Note of a run; empty if the run has none or its file cannot be understood."""
        return _note(_document(self._file(run_id)) or {})

    def all(self) -> dict[str, Note]:
        """All notes that are not empty, by run id."""
        with contextlib.suppress(FileNotFoundError):
            names = (folder.name for folder in os.scandir(self._runs.directory))
            notes = ((name, _note(_document(self._runs.directory / name / _NAME) or {})) for name in names)
            return {name: note for name, note in notes if note}
        return {}

    def change(self, run_id: str, text: str | None = None, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Note:
        """Replace the note's text (None keeps it) and change the tags; return the resulting note.

        Raises LlmbError: exit code 1 for an unknown run, an invalid note or an invalid tag; 2 if the file cannot be
        read or written.
        """
        self._runs.load(run_id)
        adding, removing = tuple(map(_tag, add)), {name.lstrip("#").casefold() for name in remove}
        file = self._file(run_id)
        with locked(file.parent):
            document = _document(file)
            if document is None:
                raise LlmbError(f"{file} holds no note.", "The file is damaged.", "Repair it, or move it away.")
            before = _note(document)
            note = Note(
                before.text if text is None else _text(text),
                tuple(tag for tag in dict.fromkeys([*before.tags, *adding]) if tag not in removing),
            )
            if len(note.tags) > MOST_TAGS:
                raise _too_many()
            if note != before:
                # Keys that a newer version stored are kept.
                write_atomic(file, json.dumps({**document, "note": note.text, "tags": note.tags}).encode() + b"\n")
        return note

    def _file(self, run_id: str) -> Path:
        return self._runs.folder(run_id) / _NAME


def tags_in(words: str) -> tuple[str, ...]:
    """Tags that the user typed: words separated by spaces or commas. Raises LlmbError for an invalid tag."""
    tags = tuple(dict.fromkeys(map(_tag, words.replace(",", " ").split())))
    if len(tags) > MOST_TAGS:
        raise _too_many()
    return tags


def _too_many() -> LlmbError:
    return LlmbError(f"A run has at most {MOST_TAGS} tags.", fix="Remove some first.", exit_code=1)


def _text(text: str) -> str:
    """The note's text on one line. Raises LlmbError if it is too long."""
    line = clean_line(" ".join(text.split()))
    if len(line) > LONGEST_NOTE:
        raise LlmbError(
            f"A note has at most {count(LONGEST_NOTE)} characters.", f"This one has {count(len(line))}.", exit_code=1
        )
    return line


def _tag(name: str) -> str:
    tag = name.removeprefix("#").casefold()
    if not _TAG.fullmatch(tag):
        raise LlmbError(
            f"{clean_line(name)[:40]!r} cannot be a tag.",
            "A tag is one word of at most 32 letters, digits and . _ + @ : / = -",
            exit_code=1,
        )
    return tag


def _document(file: Path) -> dict[str, Any] | None:
    """Content of the file: empty if it does not exist, None if it is damaged or is not a note."""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            data = stream.read(_LONGEST_FILE + 1)
        content = parse_json(data) if len(data) <= _LONGEST_FILE else None
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _note(document: dict[str, Any]) -> Note:
    """Note in a document, as far as it is valid: another version or an editor may have written the file."""
    text, tags = document.get("note"), document.get("tags")
    known = [tag.casefold() for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    return Note(
        clean_line(" ".join(text.split()))[:LONGEST_NOTE] if isinstance(text, str) else "",
        tuple(dict.fromkeys(filter(_TAG.fullmatch, known)))[:MOST_TAGS],
    )
