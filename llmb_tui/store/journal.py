"""`Journal`: intents and their outcomes, one JSON line each; an intent is on the disk before its action begins."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from llmb_tui.errors import LlmbError
from llmb_tui.language.json_text import parse_json
from llmb_tui.store.files import append_durable


class Journal:
    """An append-only file of records with the keys `at` (Unix time), `event` and the event's own fields."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, event: str, **fields: Any) -> None:
        """Write one record, and return once it is on the disk. Fields must be JSON values and never secrets."""
        line = json.dumps({"at": time.time(), "event": event, **fields}).encode() + b"\n"
        append_durable(self.path, b"\n" + line if self._is_torn() else line)

    def read(self) -> list[dict[str, Any]]:
        """All complete records, oldest first; empty if there is no journal yet.

        A crash may tear a line. Its `append` never returned, so the line is left out.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise LlmbError(f"Could not read the journal {self.path}.", f"{error.strerror}.", "") from error
        return [record for line in data.split(b"\n") if (record := _record(line)) is not None]

    def _is_torn(self) -> bool:
        """True if the file does not end with a newline, so that the next record needs a new line."""
        try:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1) != b"\n"
        except OSError:  # no file yet, or an empty one
            return False


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        value = parse_json(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) and "event" in value else None
