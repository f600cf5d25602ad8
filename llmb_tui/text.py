"""`clean`: the one place where text from a cluster is made harmless.

A remote line can hold escape sequences that move the cursor, recolour the screen or set the clipboard
(OSC 52), and a widget would pass them on to the terminal. Everything that comes from a cluster goes
through `clean` before it is shown, printed or put into an error.
"""

from __future__ import annotations

import re

# C0 without tab and newline, DEL, and C1. Each becomes one visible character, so that nothing is hidden.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_ESCAPE_SEQUENCE = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|\x1b\\][^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"  # OSC: titles, clipboard
    "|\x1b[PX^_][^\x1b\x9c]*(?:\x1b\\\\|\x9c)"  # DCS, SOS, PM, APC
    "|\x1b[ -/]*[0-~]"  # two-character escapes
)

_TYPED_OVER = re.compile("[^\b]\b")


def clean(text: str) -> str:
    """Text without escape sequences and without control characters except tab and newline.

    A complete escape sequence is dropped; a control character that is left over is shown as U+FFFD.
    Carriage returns count as control characters: who reads a log splits at them first.
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _ESCAPE_SEQUENCE.sub("", text))


def capital(text: str) -> str:
    """A phrase as the start of a sentence."""
    return text[0].upper() + text[1:]


def plural(number: int, noun: str) -> str:
    """A number of things: `1 node`, `1,024 nodes`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def clean_line(text: str) -> str:
    """`clean` for a single line: tabs become spaces and newlines are shown as control characters are."""
    return clean(text).replace("\t", "    ").replace("\n", "\N{REPLACEMENT CHARACTER}")


def short_line(text: str, longest: int = 160) -> str:
    """`clean_line` of what a program prints as it works, without what it has typed over; cut where it is too long."""
    while "\b" in (bare := _TYPED_OVER.sub("", text)) and bare != text:
        text = bare
    line = clean_line(bare.replace("\b", "")).strip()
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
