"""Lines of a log as they may be shown: split, cleaned, one frame of a progress bar, bounded."""

from __future__ import annotations

from llmb_tui.language.text import clean_line

SHOWN_CHARACTERS = 4096
"""Longest line that is shown; what is cut off is marked with an ellipsis."""

# UTF-8 needs at most four bytes for a character, so this many bytes always hold what is shown.
_SHOWN_BYTES = 4 * SHOWN_CHARACTERS


def display_text(line: bytes) -> str:
    """One raw line without its newline, as text that a screen may show.

    The last frame only, decoded (what is no UTF-8 becomes U+FFFD), free of control characters, tabs as
    spaces, at most `SHOWN_CHARACTERS` and an ellipsis.
    """
    frame = line.rstrip(b"\r").rpartition(b"\r")[2]
    text = clean_line(frame[:_SHOWN_BYTES].decode("utf-8", "replace"))
    if len(text) > SHOWN_CHARACTERS or len(frame) > _SHOWN_BYTES:
        return text[:SHOWN_CHARACTERS] + "…"
    return text


class LineSplitter:
    """Bytes in any chunking → shown lines. Memory does not grow with a line that never ends."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes."""
        *ended, rest = (self._rest + data).split(b"\n")
        # Earlier frames are never shown; carriage returns at the end stay, for the next byte may be a newline.
        frame = rest[rest.rstrip(b"\r").rfind(b"\r") + 1 :]
        # One byte more than is shown is enough to know that something was cut off. A carriage return that is
        # cut off with it would have begun a new frame, so it is kept.
        cut = frame[: _SHOWN_BYTES + 1]
        self._rest = cut if len(cut) == len(frame) else cut.rstrip(b"\r") + (b"\r" if frame.endswith(b"\r") else b"")
        return [display_text(line) for line in ended]

    @property
    def rest(self) -> str:
        """The line that has not ended yet, as it would be shown now."""
        return display_text(self._rest)


def split_lines(data: bytes) -> list[str]:
    """All lines of `data`, the unfinished last one too."""
    splitter = LineSplitter()
    lines = splitter.feed(data)
    return [*lines, splitter.rest] if splitter.rest else lines
