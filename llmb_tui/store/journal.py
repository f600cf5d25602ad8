"""`Journal`: what was intended and what came of it, one JSON line each, on the disk before it happens."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from llmb_tui.errors import Trouble
from llmb_tui.store.files import append_durable


class Journal:
    """An append-only file of records with the keys `at` (Unix time), `event` and the event's own fields."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, event: str, **fields: Any) -> None:
        """Write one record and return when it is on the disk. Fields must be JSON values and no secret."""
        line = json.dumps({"at": time.time(), "event": event, **fields}).encode() + b"\n"
        append_durable(self.path, b"\n" + line if self._is_torn() else line)

    def read(self) -> list[dict[str, Any]]:
        """All whole records, oldest first; none when there is no journal yet.

        A line that is no whole record was torn by a crash: its `append` never returned, so it is left out.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Trouble(f"Could not read the journal {self.path}.", f"{error.strerror}.", "") from error
        return [record for line in data.split(b"\n") if (record := _record(line)) is not None]

    def _is_torn(self) -> bool:
        """True when the file does not end with a newline; the next record then starts a line of its own."""
        try:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read(1) != b"\n"
        except OSError:  # no file yet, or an empty one
            return False


def _record(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and "event" in value else None
