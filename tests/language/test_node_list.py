"""Slurm's short form of node names: expanding and compressing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.language.node_list import MOST_NODES, compress, expand

NAMES = st.lists(st.from_regex(re.compile(r"[a-z][a-z0-9-]{0,6}[0-9]{0,4}"), fullmatch=True), max_size=30)


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("", ()),
        ("gpu1", ("gpu1",)),
        ("cn[001-004,7],gpu1", ("cn001", "cn002", "cn003", "cn004", "cn7", "gpu1")),
        ("r[1-2]n[09-10]", ("r1n09", "r1n10", "r2n09", "r2n10")),
        ("a[1-3],a2", ("a1", "a2", "a3")),
        ("n[99-101].site", ("n99.site", "n100.site", "n101.site")),
    ],
)
def test_a_list_is_expanded_in_order_with_each_node_once(text: str, nodes: tuple[str, ...]) -> None:
    assert expand(text) == nodes


@pytest.mark.parametrize(
    ("nodes", "text"),
    [
        ((), ""),
        (("cn007", "cn001", "cn003", "cn002", "gpu1", "login"), "cn[001-003,007],gpu1,login"),
        (("n9", "n10", "n11"), "n9,n[10-11]"),
        (("r1n1", "r2n1"), "r1n1,r2n1"),
    ],
)
def test_consecutive_numbers_of_one_width_are_compressed_to_a_range(nodes: tuple[str, ...], text: str) -> None:
    assert compress(nodes) == text


@given(NAMES)
def test_expanding_a_compressed_list_gives_the_same_nodes(nodes: list[str]) -> None:
    assert sorted(expand(compress(nodes))) == sorted(set(nodes))


@pytest.mark.parametrize(
    "text",
    [
        "cn[1-",
        "cn[4-1]",
        "cn[]",
        "cn[1-2-3]",
        "cn[a-b]",
        "cn1,,cn2",
        ",",
        "cn[[1]]",
        "cn]1[",
        "a b",
        "$(id)",
        "cn[1-999999999]",
        "cn[1-999999999999999999999]",
        "a[1-999]b[1-999]c[1-999]",
        f"a[1-{MOST_NODES}],b",
        pytest.param("a" * 2_000_000, id="too long"),
    ],
)
def test_a_text_that_is_not_a_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        expand(text)


def test_a_long_name_before_an_invalid_character_is_refused_quickly() -> None:
    with pytest.raises(ValueError, match="is not a list of nodes"):
        expand("a" * 100_000 + "!")


def test_names_longer_than_any_host_name_are_refused_before_they_are_multiplied() -> None:
    with pytest.raises(ValueError, match="longer than 255"):
        expand("a" * 20_000 + "[1-60000]")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(",".join(["a[1-65536]"] * 90_000), id="the same names again and again"),
        pytest.param("a[1-65536]" + "[1]" * 200, id="many brackets"),
    ],
)
def test_work_for_few_different_names_is_limited_too(text: str) -> None:
    with pytest.raises(ValueError, match="more than 65536 nodes"):
        expand(text)
