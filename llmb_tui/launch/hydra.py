"""`base_configuration`: the YAML file that a Hydra recipe's command names, made of the preset's settings. Pure."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmb_tui.errors import Trouble


def base_configuration(fields: Mapping[str, Any], overrides: Sequence[str]) -> str:
    """Text of the file: dotted fields in their order, of which a later one replaces what an earlier one set.

    Raises Trouble (exit code 1) for a field below one that is no table, and for an override that Hydra would refuse:
    `field=value` of a field that the file lacks, or `+field=value` of one that it has.
    """
    tree: dict[str, Any] = {}
    for name, value in fields.items():
        *parents, last = name.split(".")
        _table(tree, parents, name)[last] = copy.deepcopy(value)
    for override in overrides:
        _check(override, tree)
    return "".join(_lines(tree))


def _table(tree: dict[str, Any], path: Sequence[str], field: str) -> dict[str, Any]:
    """The table at a path, made where it is missing."""
    for part in path:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise _wrong(f"{field} lies below {part}, which is a value.")
    return tree


def _check(override: str, tree: Mapping[str, Any]) -> None:
    name, equals, _ = override.partition("=")
    field = name.lstrip("+")
    if not equals or not field:
        raise _wrong(f"the override {override!r} is not FIELD=VALUE.")
    if name.startswith("++"):
        return
    node: Any = tree
    for part in field.split("."):
        node = node.get(part, _MISSING) if isinstance(node, dict) else _MISSING
    if name.startswith("+") is not (node is _MISSING):
        has = "lacks" if node is _MISSING else "has already"
        raise _wrong(f"the override {override!r} names a field that the base configuration {has}.")


def _lines(table: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    # JSON's scalars and lists are YAML's as well.
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:\n"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent}{name}: {json.dumps(value)}\n"


def _wrong(why: str) -> Trouble:
    return Trouble("The recipe's preset makes no configuration for Hydra.", f"In its settings, {why}", exit_code=1)


_MISSING = object()
