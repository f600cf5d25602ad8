"""`Lines`: the line of each value in a TOML text, for error messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

KeyPath = tuple[str | int, ...]

_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|\'{3}.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*\''''  # strings
    r"""|\#[^\n]*|\n|[\[\]{}=,.]|[^\s\[\]{}=,.\#"']+""",  # comment, end of line, mark, bare word
    re.DOTALL,
)


class _Token(NamedTuple):
    text: str
    line: int


class Lines:
    """Lines of the values of a valid TOML text; an inline table is one value. Other formats note their lines."""

    def __init__(self, text: str = "") -> None:
        self._lines: dict[KeyPath, int] = {}
        for keys, line in _values(text):
            self.note(keys, line)

    def note(self, path: KeyPath, line: int) -> None:
        """Record the line of a value, unless it is known."""
        self._lines.setdefault(path, line)

    def __contains__(self, path: KeyPath) -> bool:
        return path in self._lines

    def of(self, path: KeyPath) -> int:
        """1-based line of the value at a path, or of the nearest known value that contains it; else 1."""
        return next((self._lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self._lines), 1)


def syntax_line(error: Exception) -> int | None:
    """1-based line from the message of a tomllib error, which has no line attribute before Python 3.14."""
    _, _, tail = str(error).partition("at line ")
    digits = tail.partition(",")[0]
    return int(digits) if digits.isdigit() else None


def _values(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Every table, key and array element with its line."""
    table: KeyPath = ()
    last_index: dict[KeyPath, int] = {}
    for statement in _statements(text):
        line = statement[0].line
        if statement[0].text == "[":
            is_array = statement[1].text == "["
            table = _table_path(_names(statement), is_array, last_index)
            yield table, line
            if is_array:
                yield table[:-1], line
        else:
            equals = next(index for index, token in enumerate(statement) if token.text == "=")
            key = (*table, *_names(statement[:equals]))
            yield key, line
            yield from _elements(key, statement[equals + 1 :])


def _statements(toml: str) -> Iterator[list[_Token]]:
    """Tokens of each header and each `key = value`, without comments and ends of lines."""
    statement: list[_Token] = []
    depth, line = 0, 1
    for match in _TOKEN.finditer(toml + "\n"):
        text = match[0]
        if text == "\n" and depth == 0 and statement:
            yield statement
            statement = []
        elif text != "\n" and not text.startswith("#"):
            statement.append(_Token(text, line))
            depth += (text in ("[", "{")) - (text in ("]", "}"))
        line += text.count("\n")


def _names(tokens: Iterable[_Token]) -> list[str]:
    """Parts of a dotted key. Escapes in a quoted part stay: errors then name the line of the enclosing value."""
    words = (token.text for token in tokens if token.text not in ("[", "]", "."))
    return [word[1:-1] if word[0] in "\"'" else word for word in words]


def _table_path(names: list[str], is_array: bool, last_index: dict[KeyPath, int]) -> KeyPath:
    """Path of a header; the name of an array of tables is followed by the index of its newest table."""
    path: KeyPath = ()
    for position, name in enumerate(names, start=1):
        path = (*path, name)
        if is_array and position == len(names):
            last_index[path] = last_index.get(path, -1) + 1
        if path in last_index:
            path = (*path, last_index[path])
    return path


def _elements(path: KeyPath, value: Iterable[_Token]) -> Iterator[tuple[KeyPath, int]]:
    """Every element of an array, including nested arrays; nothing for other values."""
    indices: list[int] = []
    braces = 0
    begins = True
    for token in value:
        if token.text == "}":
            braces -= 1
        elif braces == 0 and token.text == "]":
            indices.pop()
        elif braces == 0 and token.text == ",":
            indices[-1] += 1
            begins = True
        else:
            if begins and indices and braces == 0:
                yield (*path, *indices), token.line
            begins = braces == 0 and token.text == "["
            if begins:
                indices.append(0)
            braces += token.text == "{"
