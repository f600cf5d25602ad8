"""`clean` makes text from a cluster safe to display; nothing else does.

A remote line can contain escape sequences that move the cursor, recolour the screen or set the clipboard (OSC 52), and
a widget would pass them on to the terminal. Text from a cluster goes through `clean` before it is shown, printed or put
into an error.
"""

from __future__ import annotations

import json
import math
import re

# Invisible characters that change the visible ones: C1, marks and isolates of the writing direction, characters without
# a width, fillers, tags, variation selectors, and halves of surrogate pairs, which no stream can encode.
_INVISIBLE = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Also C0 without tab and newline. Each is replaced by one visible character, so that the reader notices it.
_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f{_INVISIBLE}]")
_HIDDEN = re.compile(f"[{_INVISIBLE}]")
_MARK = (
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1ab0-\u1aff"
    "\u1dc0-\u1dff\u20d0-\u20ff\u302a-\u302f\u3099\u309a\ufe20-\ufe2f]"
)
# Real words have four marks on a character at most; more of them would cover the lines above and below.
_STACK = re.compile(f"({_MARK}{{4}}){_MARK}+")
_ESCAPE_SEQUENCE = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|\x1b\\][^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"  # OSC: titles, clipboard
    "|\x1b[PX^_][^\x1b\x9c]*(?:\x1b\\\\|\x9c)"  # DCS, SOS, PM, APC
    "|\x1b[ -/]*[0-~]"  # two-character escapes
)


_LONGEST_COUNT = 18
"""Digits of a number that fits into 64 bits; Python raises ValueError for one of more than 4,300 digits."""


def clean(text: str) -> str:
    """Text without escape sequences, and without control and invisible characters except tab and newline.

    A complete escape sequence is dropped; any other such character is shown as U+FFFD. At most four marks that combine
    with a character are kept. Carriage returns count as control characters: split a log at them first.
    """
    text = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _ESCAPE_SEQUENCE.sub("", text))
    return text if text.isascii() else _STACK.sub(r"\1", text)


def is_visible(text: str) -> bool:
    """Whether every character of a text is visible, and the text is a single line."""
    return text.isprintable() and (text.isascii() or not _HIDDEN.search(text))


def escaped_json(text: str) -> str:
    """A JSON text with the same value in which invisible characters are escaped; every JSON text escapes C0."""
    return text if text.isascii() else _HIDDEN.sub(lambda match: json.dumps(match[0])[1:-1], text)


def capital(text: str) -> str:
    """A phrase with a capital letter, to start a sentence."""
    return text[:1].upper() + text[1:]


def plural(number: int, noun: str) -> str:
    """A number of things: `1 node`, `1,024 nodes`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def clean_line(text: str) -> str:
    """`clean` for a single line: tabs become spaces, and newlines are shown like control characters."""
    if text.isascii() and text.isprintable():
        return text
    return clean(text).replace("\t", "    ").replace("\n", "\N{REPLACEMENT CHARACTER}")


def short_line(text: str, longest: int = 160) -> str:
    """`clean_line` of a program's progress output: text that backspaces overwrite is removed, a long line is cut."""
    line = clean_line(_without_overwritten(text) if "\b" in text else text).strip()
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def quotation(text: str, longest: int = 600) -> str:
    """A program's message; of a long one, the beginning and the end."""
    head, tail = longest // 2, longest // 2 - 3
    return text if len(text) <= longest else f"{text[:head]} … {text[-tail:]}"


def _without_overwritten(text: str) -> str:
    """The text without backspaces and what each of them deletes; in linear time."""
    first, *others = text.split("\b")
    kept = list(first)
    for piece in others:
        del kept[-1:]
        kept += piece
    return "".join(kept)


def count_in(text: str) -> int | None:
    """The number that a program wrote in digits; None for other text, and for a number of more than 18 digits."""
    return int(text) if len(text) <= _LONGEST_COUNT and text.isascii() and text.isdecimal() else None


def finite(document: object) -> object:
    """A JSON document in which NaN and infinite numbers are null."""
    if isinstance(document, dict):
        return {key: finite(value) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [finite(value) for value in document]
    return None if isinstance(document, float) and not math.isfinite(document) else document
