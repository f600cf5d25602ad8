"""Log lines prepared for display: split, cleaned, only the last frame of a progress bar, limited in length."""

from __future__ import annotations

from llmb_tui.language.text import clean_line

SHOWN_CHARACTERS = 4096
"""Length of the longest line that is shown; an ellipsis marks a cut."""

# UTF-8 needs at most four bytes for a character, so this many bytes always contain the shown characters.
_SHOWN_BYTES = 4 * SHOWN_CHARACTERS


def display_text(line: bytes) -> str:
    """Displayable text of one raw line without its newline.

    Only the last frame, decoded (bytes that are not UTF-8 become U+FFFD), without control characters, with tabs as
    spaces, at most `SHOWN_CHARACTERS` and an ellipsis.
    """
    frame = line.rstrip(b"\r").rpartition(b"\r")[2]
    text = clean_line(frame[:_SHOWN_BYTES].decode("utf-8", "replace"))
    if len(text) > SHOWN_CHARACTERS or len(frame) > _SHOWN_BYTES:
        return text[:SHOWN_CHARACTERS] + "…"
    return text


class LineSplitter:
    """Splits bytes, in chunks of any size, into displayable lines. Memory does not grow with an endless line."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Lines that `data` completes."""
        *ended, rest = (self._rest + data).split(b"\n")
        # Earlier frames are never shown. Carriage returns at the end stay, because the next byte may be a newline.
        frame = rest[rest.rstrip(b"\r").rfind(b"\r") + 1 :]
        # One byte more than is shown is enough to detect a cut. A carriage return that is cut off with it would have
        # begun a new frame, so it is kept.
        cut = frame[: _SHOWN_BYTES + 1]
        self._rest = cut if len(cut) == len(frame) else cut.rstrip(b"\r") + (b"\r" if frame.endswith(b"\r") else b"")
        return [display_text(line) for line in ended]

    @property
    def rest(self) -> str:
        """The unfinished line, as it would be shown now."""
        return display_text(self._rest)


def split_lines(data: bytes) -> list[str]:
    """All lines of `data`, including the unfinished last one."""
    splitter = LineSplitter()
    lines = splitter.feed(data)
    return [*lines, splitter.rest] if splitter.rest else lines
