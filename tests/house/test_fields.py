"""Every setting of a run has a row in one table. No other code lists the settings: a new option is a new row."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import llmb_tui
from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.settings import LAYOUT as LAYOUT_OF_PRESETS
from llmb_tui.catalog.settings import PLACEHOLDERS
from llmb_tui.cli.arguments import parser
from llmb_tui.cli.flags import selection_mapping
from llmb_tui.plan.make import plan
from llmb_tui.plan.plan import Parallelism, Printed
from llmb_tui.plan.request import read_request
from llmb_tui.plan.selection import (
    FIELDS,
    LAYOUT,
    NOTHING_MORE,
    ON,
    OPTIONS,
    VARIANTS,
    Field,
    OptionKind,
    Overrides,
    RunOptions,
    Selection,
)
from llmb_tui.ui.panes.review import extra_facts
from llmb_tui.wizard.answers import Answers, answer, answers_from_selection, command, selection, value_of, with_defaults
from llmb_tui.wizard.choices import option_refusals, switches
from llmb_tui.wizard.gates import summary
from llmb_tui.wizard.steps import StepId
from tests.wizard.wizard_states import state_of

ROOT = Path(llmb_tui.__file__).parent
# The table; the words of presets, which are read before it; the variables of NVIDIA's launcher, which are not fields.
LISTS = {ROOT / "plan/selection.py", ROOT / "catalog/settings.py", ROOT / "launch/llmb/import_run.py"}
TYPED: dict[OptionKind, str] = {"number": "3", "switch": ON, "text": "00:10:00", "path": "/ckpt"}
KINDS = {"str": ("name", "text", "path"), "int": ("number",), "bool": ("switch",)}
BASE = "nemotron4@25.04/15b"


def names(table: tuple[Field, ...]) -> list[str]:
    return [field.name for field in table]


def with_option(option: Field) -> RunOptions:
    given: dict[str, Any] = {option.name: option.value(TYPED[option.kind])}
    return replace(NOTHING_MORE, **given)


def test_the_table_describes_every_attribute_with_its_type() -> None:
    held = {
        name: hint
        for type_ in (Selection, Overrides, RunOptions)
        for name, hint in get_type_hints(type_).items()
        if name not in ("overrides", "options")
    }
    assert list(FIELDS) == [*dict.fromkeys(FIELDS)]
    assert set(FIELDS) == set(held)
    assert names(LAYOUT) == [field.name for field in fields(Overrides)]
    assert set(names(OPTIONS)) == {field.name for field in fields(RunOptions)}
    for name, hint in held.items():
        type_ = str(getattr(hint, "__args__", (hint,))[0].__name__)
        assert FIELDS[name].kind in KINDS[type_], name


def test_runs_and_presets_use_the_same_layout_fields() -> None:
    follows = ["dp", "ga"]
    assert {field.name for field in fields(Parallelism)} == {*names(LAYOUT), *follows}
    assert [field.name for field in fields(Printed)] == [field.name for field in fields(Parallelism)]
    assert list(LAYOUT_OF_PRESETS) == names(LAYOUT)
    assert set(PLACEHOLDERS).issuperset([*names(LAYOUT), *names(OPTIONS)])


@pytest.mark.parametrize("verb", ["plan", "demo", "doctor", "install", "secrets", "submit"])
def test_every_verb_that_takes_a_selection_has_a_flag_for_each_field(verb: str) -> None:
    place = ["here"] if verb in ("doctor", "install", "secrets") else ["--cluster", "here"] if verb == "submit" else []
    for field in (*FIELDS.values(), *VARIANTS):
        if field.has_flag:
            value = [] if field.kind == "switch" else [TYPED.get(field.kind, "x")]
            for flag in filter(None, (field.flag, field.short)):
                mapping = selection_mapping(parser().parse_args([verb, *place, flag, *value]))
                assert list(mapping) == [field.name]


def test_without_flags_nothing_is_stated() -> None:
    assert selection_mapping(parser().parse_args(["plan"])) == {}


@pytest.mark.parametrize("field", [*LAYOUT, *OPTIONS, FIELDS["steps"], FIELDS["time_limit"]], ids=lambda one: one.name)
def test_a_field_goes_from_the_wizard_to_the_command_line_and_back(catalog: Catalog, field: Field) -> None:
    typed = TYPED[field.kind]
    answers = answer(Answers(), "workload", BASE)
    if field.of:
        answers = answer(answers, field.of, ON)
    answers = answer(answers, field.name, typed)
    chosen = selection(catalog, with_defaults(catalog, answers))

    assert value_of(answers, field.name) == typed
    assert chosen is not None
    assert chosen != selection(catalog, with_defaults(catalog, answer(answers, field.name, "")))
    words = command(chosen, None).split()
    assert field.flag in words
    assert read_request(catalog, selection_mapping(parser().parse_args(words[1:]))) == chosen
    assert value_of(answers_from_selection(chosen), field.name) == typed


@pytest.mark.parametrize("option", OPTIONS, ids=lambda one: one.name)
def test_an_option_is_offered_by_the_wizard_and_named_in_the_review(catalog: Catalog, option: Field) -> None:
    offered = [switch.field for switch in switches(catalog, with_defaults(catalog, Answers()))] + list(
        option_refusals(catalog, with_defaults(catalog, Answers()))
    )
    assert offered.count(option.name) == 1
    assert (option.kind == "switch") != bool(option.prompt)
    if option.of:
        assert FIELDS[option.of].kind == "switch"
        return
    chosen = Selection("llama3.1", "25.04", "8b", "h100", "bf16", 64, options=with_option(option))
    as_if_every_recipe_had_it = replace(plan(catalog, chosen), problems=())
    assert [str(name).strip() for name, _ in extra_facts(as_if_every_recipe_had_it)] == [option.word]
    assert option.word in summary(state_of(catalog, answers_from_selection(chosen)), StepId.SCALE)


def test_no_module_lists_the_fields_again() -> None:
    again = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in ROOT.rglob("*.py")
        if path not in LISTS
        for line, words in listed(ast.parse(path.read_text()))
        if words.issuperset(names(LAYOUT)) or len(words & {*names(OPTIONS)}) > len(OPTIONS) // 2
    ]
    assert again == []


def listed(tree: ast.Module) -> Iterator[tuple[int, set[str]]]:
    """Names in each literal list of a module: strings, attributes of one object, or words of one string."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            yield node.lineno, set(filter(None, map(_name, node.elts)))
        elif isinstance(node, ast.Dict):
            yield node.lineno, set(filter(None, map(_name, node.keys)))
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            yield node.lineno, set(filter(None, map(_name, node.slice.elts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, set(node.value.split())


def _name(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return node.attr if isinstance(node, ast.Attribute) else ""
