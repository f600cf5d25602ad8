"""YAML whose values multiply, or that would be read for minutes, is refused."""

from __future__ import annotations

from itertools import pairwise

import pytest

from llmb_tui.cluster.yaml_text import YamlError, nodes_of, yaml_of

NAMES = "abcdefghij"


def bomb(last: str) -> str:
    """Ten tables, each with ten references to the one before."""
    rows = ["a: &a {k: 1}"]
    for before, name in pairwise(NAMES):
        rows.append(f"{name}: &{name} {last.format(','.join([f'*{before}'] * 10))}")
    return "\n".join(rows)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(bomb("{{<<: [{}]}}"), id="merged tables"),
        pytest.param(bomb("[{}]"), id="lists"),
        pytest.param("- 1\n" * 200_000, id="many values"),
        pytest.param("[" * 200_000, id="deep"),
        pytest.param("a: " + "1:" * 40_000 + "1", id="number of base 60"),
    ],
)
def test_values_that_take_too_long_are_refused(text: str) -> None:
    with pytest.raises(YamlError):
        yaml_of(text)


@pytest.mark.parametrize("text", ["- 1\n" * 200_000, "[" * 200_000])
def test_nodes_that_take_too_long_are_refused(text: str) -> None:
    with pytest.raises(YamlError):
        nodes_of(text)


def test_ordinary_references_are_read() -> None:
    assert yaml_of("a: &a {k: 1}\nb: {<<: *a, l: [*a, 2.5]}\n") == {"a": {"k": 1}, "b": {"k": 1, "l": [{"k": 1}, 2.5]}}
    assert yaml_of("") is None
