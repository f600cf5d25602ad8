"""`Notes`: what people say of runs, and the tags that they give them, each in a file of its own beside the run."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from llmb_tui.errors import Trouble
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
    """The notes of the remembered runs. Thread-safe, and among all programs here."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def of(self, run_id: str) -> Note:
        """The note of a run; none where there is no such, or its file says nothing that can be understood."""
        return _note(_document(self._file(run_id)) or {})

    def all(self) -> dict[str, Note]:
        """By the ids of their runs, those that there are."""
        with contextlib.suppress(FileNotFoundError):
            names = (folder.name for folder in os.scandir(self._runs.directory))
            found = ((name, _note(_document(self._runs.directory / name / _NAME) or {})) for name in names)
            return {name: note for name, note in found if note}
        return {}

    def change(self, run_id: str, text: str | None = None, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Note:
        """Say this of a run instead (None: what is said stays), and change its tags; the note as it is then.

        Raises Trouble: exit code 1 where there is no such run, and for what is no note or no tag; 2 where the file
        cannot be read or written.
        """
        self._runs.load(run_id)
        adding, removing = tuple(map(_tag, add)), {name.lstrip("#").casefold() for name in remove}
        file = self._file(run_id)
        with locked(file.parent):
            document = _document(file)
            if document is None:
                raise Trouble(f"{file} holds no note.", "It is damaged.", "Mend it, or move it away.")
            before = _note(document)
            note = Note(
                before.text if text is None else _text(text),
                tuple(tag for tag in dict.fromkeys([*before.tags, *adding]) if tag not in removing),
            )
            if len(note.tags) > MOST_TAGS:
                raise _too_many()
            if note != before:
                # What a newer version keeps there stays.
                write_atomic(file, json.dumps({**document, "note": note.text, "tags": note.tags}).encode() + b"\n")
        return note

    def _file(self, run_id: str) -> Path:
        return self._runs.folder(run_id) / _NAME


def tags_in(words: str) -> tuple[str, ...]:
    """The tags in what a person typed: words, with commas between them or not. Raises Trouble for what can be none."""
    tags = tuple(dict.fromkeys(map(_tag, words.replace(",", " ").split())))
    if len(tags) > MOST_TAGS:
        raise _too_many()
    return tags


def _too_many() -> Trouble:
    return Trouble(f"A run has at most {MOST_TAGS} tags.", fix="Take some away first.", exit_code=1)


def _text(text: str) -> str:
    """On one line. Raises Trouble for one that is too long."""
    line = clean_line(" ".join(text.split()))
    if len(line) > LONGEST_NOTE:
        raise Trouble(
            f"A note has at most {count(LONGEST_NOTE)} characters.", f"This one has {count(len(line))}.", exit_code=1
        )
    return line


def _tag(name: str) -> str:
    tag = name.removeprefix("#").casefold()
    if not _TAG.fullmatch(tag):
        raise Trouble(
            f"{clean_line(name)[:40]!r} cannot be a tag.",
            "A tag is one word of at most 32 letters, digits and . _ + @ : / = -",
            exit_code=1,
        )
    return tag


def _document(file: Path) -> dict[str, Any] | None:
    """What the file holds: nothing where there is none, None where it is damaged or no file of ours."""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            data = stream.read(_LONGEST_FILE + 1)
        found = json.loads(data) if len(data) <= _LONGEST_FILE else None
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _note(document: dict[str, Any]) -> Note:
    """What is understood of a document: a file may have been written by another version, or by hand."""
    text, tags = document.get("note"), document.get("tags")
    known = [one.casefold() for one in tags if isinstance(one, str)] if isinstance(tags, list) else []
    return Note(
        clean_line(" ".join(text.split()))[:LONGEST_NOTE] if isinstance(text, str) else "",
        tuple(dict.fromkeys(filter(_TAG.fullmatch, known)))[:MOST_TAGS],
    )
