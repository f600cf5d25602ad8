"""`Lines` finds a value's line in any context."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.toml.lines import KeyPath, Lines

TEXT = '''\
a = 1 # a comment with a [
"quoted key" = "a # that is text"
long = """
[not.a.header]
b = 1"""
[models.15b]
layers = [1,
  2]
table.inner = { x = 1, y = [1, 2] }
[[rows]]
cells = [
    [1, "]"], # the first
    [2, "NA"],
]
[rows.notes]
8 = 'eight'
[[rows]]
cells = [[3, 4]]
[[rows.deep]]
c = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 1),
        (("quoted key",), 2),
        (("long",), 3),
        (("models", "15b"), 6),
        (("models", "15b", "layers"), 7),
        (("models", "15b", "layers", 1), 8),
        (("models", "15b", "table", "inner"), 9),
        (("models", "15b", "table", "inner", "y", 1), 9),
        (("models", "15b", "missing"), 6),
        (("rows", 0), 10),
        (("rows", 0, "cells", 0, 1), 12),
        (("rows", 0, "cells", 1, 0), 13),
        (("rows", 0, "notes"), 15),
        (("rows", 0, "notes", "8"), 16),
        (("rows", 1), 17),
        (("rows", 1, "cells", 0, 1), 18),
        (("rows", 1, "deep", 0, "c"), 20),
        (("missing",), 1),
        ((), 1),
    ],
)
def test_a_value_is_found_on_its_line(path: KeyPath, line: int) -> None:
    assert Lines(TEXT).of(path) == line


_keys = st.text("abc.# =[]'", min_size=1, max_size=4)
# No tables in arrays: for those the line of the array's element is found, where the table begins.
_arrays = st.recursive(st.none(), lambda inner: st.lists(inner, max_size=3), max_leaves=6)
_documents = st.recursive(_arrays, lambda inner: st.dictionaries(_keys, inner, max_size=3), max_leaves=12)


def _numbered(value: Any, counter: Iterator[int]) -> Any:
    """The same value with every leaf a number that occurs once."""
    if isinstance(value, dict):
        return {key: _numbered(item, counter) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbered(item, counter) for item in value]
    return next(counter)


def _leaves_of(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, int]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves_of(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves_of(item, (*path, index))
    else:
        yield path, value


@given(st.dictionaries(_keys, _documents, max_size=4))
def test_every_number_of_a_document_is_on_the_line_that_is_named(shape: dict[str, Any]) -> None:
    document = _numbered(shape, iter(range(1000, 9999)))
    text = tomli_w.dumps(document)
    lines = text.splitlines()
    for path, number in _leaves_of(document):
        assert re.search(rf"\b{number}\b", lines[Lines(text).of(path) - 1]), (path, text)
