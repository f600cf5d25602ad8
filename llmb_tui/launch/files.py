"""`config_files`: the files that are sent with a run; for Hydra, the YAML file that its command names. Pure."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmb_tui.catalog.settings import fill
from llmb_tui.errors import LlmbError
from llmb_tui.launch.settings import ResolvedSettings, plan_values
from llmb_tui.plan.document import document
from llmb_tui.request import RunRequest

_NAME = "--config-name="
_MISSING = object()


def config_files(request: RunRequest, settings: ResolvedSettings) -> tuple[tuple[str, str], ...]:
    """Files as (path in the run's folder, text): the plan, and the input of the program in the container.

    Raises LlmbError (exit code 1) if a Hydra recipe's settings contradict each other.
    """
    recipe, plan = request.recipe, request.plan
    plan_json = ("configs/plan.json", as_json(document(plan) | {"steps": plan.steps}))
    if not recipe.launch.by_entry_script:
        names = [word.removeprefix(_NAME) for word in recipe.launch.command if word.startswith(_NAME)]
        base = base_configuration(settings.base, settings.overrides)
        return (plan_json, *((f"configs/{name}", base) for name in names))
    launch = {
        "factory": recipe.launch.factories[plan.selection.size],
        "arguments": fill(recipe.launch.arguments, plan_values(request)),
        "settings": settings.recipe,
    }
    return (plan_json, ("configs/launch.json", as_json(launch)))


def as_json(value: object) -> str:
    """Indented JSON for people to read, with a final newline."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def base_configuration(fields: Mapping[str, Any], overrides: Sequence[str]) -> str:
    """Text of the base configuration file: dotted fields in their order; a later value replaces an earlier one.

    Raises LlmbError (exit code 1) for a field below a value that is not a table, and for an override that Hydra would
    reject: `field=value` of a field that the file lacks, or `+field=value` of a field that it has.
    """
    tree: dict[str, Any] = {}
    for name, value in fields.items():
        *parents, last = name.split(".")
        _table(tree, parents, name)[last] = copy.deepcopy(value)
    for override in overrides:
        _check_override(override, tree)
    return "".join(_yaml_lines(tree))


def _table(tree: dict[str, Any], path: Sequence[str], field: str) -> dict[str, Any]:
    """The table at a path, created if it is missing."""
    for part in path:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise _wrong(f"{field} is below {part}, which is a value and not a table.")
    return tree


def _check_override(override: str, tree: Mapping[str, Any]) -> None:
    name, equals, _ = override.partition("=")
    field = name.lstrip("+")
    if not equals or not field:
        raise _wrong(f"the override {override!r} does not have the form FIELD=VALUE.")
    if name.startswith("++"):
        return
    node: Any = tree
    for part in field.split("."):
        node = node.get(part, _MISSING) if isinstance(node, dict) else _MISSING
    if name.startswith("+") is not (node is _MISSING):
        has = "lacks" if node is _MISSING else "already has"
        raise _wrong(f"the override {override!r} names a field that the base configuration {has}.")


def _yaml_lines(table: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    # JSON scalars and lists are valid YAML.
    for name, value in table.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{name}:\n"
            yield from _yaml_lines(value, f"{indent}  ")
        else:
            yield f"{indent}{name}: {json.dumps(value)}\n"


def _wrong(why: str) -> LlmbError:
    return LlmbError(
        "The Hydra configuration could not be written.", f"In the settings of the recipe's preset, {why}", exit_code=1
    )
