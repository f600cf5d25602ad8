"""`check_limits`: refuses a TOML text that is too long, or has a key of too many parts, before it is parsed.

tomllib needs time and memory that grow with the square of a key's parts: a key of 30,000 parts takes 3.5 GB.
"""

from __future__ import annotations

import re

from llmb_tui.language.quantities import byte_size

LONGEST_TOML = 1_000_000
"""Maximum number of characters in a file that a person wrote, suites of other formats included.

The longest file of the program has 40,000."""
_MOST_PARTS = 32
_TOO_MANY_PARTS = f"a key has more than {_MOST_PARTS} parts"
# Possessive, and an open string ends with the text or its line: each character is read once, also in invalid TOML.
_TOKEN = re.compile(
    r'''"""(?:\\.|[^"\\]|"(?!""))*+(?:"{3,5})?|\'{3}(?:[^']|'(?!''))*+(?:'{3,5})?'''  # strings of several lines
    r"""|"(?:\\.|[^"\\\n])*+"?|'[^'\n]*+'?|[^\s\[\]{}=,.\#"']++"""  # strings, bare words
    r"""|\#[^\n]*+|[ \t]++|\.|.""",  # comments, spaces, the dot between two parts, other marks
    re.DOTALL,
)


def check_limits(text: str) -> None:
    """Raise ValueError for a text that is not read; its message has the line in the form of tomllib."""
    if len(text) > LONGEST_TOML:
        raise ValueError(f"it is larger than {byte_size(LONGEST_TOML)}")
    # A key is within one line, so most texts need no closer look.
    if any(line.count(".") >= _MOST_PARTS for line in text.split("\n")):
        _check_keys(text)


def _check_keys(text: str) -> None:
    parts, follows_dot = 0, False
    for match in _TOKEN.finditer(text):
        piece = match[0]
        if piece[0] in " \t":
            continue
        if piece == ".":
            follows_dot = True
            continue
        parts = parts + 1 if follows_dot else 1
        follows_dot = False
        if parts > _MOST_PARTS:
            raise ValueError(f"{_TOO_MANY_PARTS} (at line {text.count(chr(10), 0, match.start()) + 1}, in this key)")
