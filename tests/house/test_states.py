"""Each set of states has one table, in `language/states.py`; each state has a word, a glyph and a tone."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from rich.cells import cell_len

import llmb_tui
from llmb_tui.language import states
from llmb_tui.language.states import Label, Method, Tone, method_phrase, method_word

PACKAGE = Path(llmb_tui.__file__).parent
LABELS: list[Callable[[Any], Label]] = [
    made for name, made in inspect.getmembers(states, inspect.isfunction) if name.endswith("_label")
]
SENTENCES = {
    ("analysis/slow_nodes.py", "_STATE_WORDS"),
    ("answers/reported_run.py", "_BAD_END_WORDS"),
    ("answers/reported_run.py", "_MARKS"),
    ("ui/widgets/run_header.py", "_SUBMISSIONS"),
}
"""Tables of whole sentences, which stay in their own packages."""


def members(alias: object) -> tuple[str, ...]:
    """Strings of a Literal, or of a union of Literals, without duplicates."""
    if isinstance(alias, str):
        return (alias,)
    return tuple(dict.fromkeys(member for part in get_args(alias) for member in members(part)))


def members_of(made: Callable[[Any], Label]) -> tuple[str, ...]:
    """The states that a function labels."""
    (given,) = (hint for name, hint in get_type_hints(made).items() if name != "return")
    return members(given)


def tables(source: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Dict displays with at least two keys, all of them strings: the assigned name, and the keys."""
    tree = ast.parse(source)
    names = {
        node.value: ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
            words = frozenset(key for key in keys if isinstance(key, str))
            if len(words) == len(keys) > 1:
                yield names.get(node, ""), words


def tables_of_states(source: str) -> list[str]:
    """Names of the tables whose keys are states of one set; an empty key may stand for no state."""
    sets = [frozenset(members_of(made)) for made in LABELS] + [frozenset(get_args(Method))]
    return [name for name, keys in tables(source) if any(len(keys - {""}) > 1 and keys - {""} <= one for one in sets)]


@pytest.mark.parametrize("made", LABELS, ids=lambda made: made.__name__)
def test_each_state_has_a_word_a_glyph_of_one_cell_and_a_tone(made: Callable[[Any], Label]) -> None:
    for state in members_of(made):
        label = made(state)
        assert label.word.strip()
        assert label.glyph.strip()
        assert cell_len(label.glyph) == 1
        assert label.tone in get_args(Tone)


@pytest.mark.parametrize("made", LABELS, ids=lambda made: made.__name__)
def test_without_colour_two_states_of_a_set_differ(made: Callable[[Any], Label]) -> None:
    labels = [made(state) for state in members_of(made)]
    assert len({label.text for label in labels}) == len(labels)
    tones = {label.glyph: label.tone for label in labels}
    assert all(tones[label.glyph] == label.tone for label in labels), "one glyph stands for two tones"


def test_each_method_has_words() -> None:
    assert len({method_word(method) for method in get_args(Method)}) == len(get_args(Method))
    assert len({method_phrase(method) for method in get_args(Method)}) == len(get_args(Method))


@pytest.mark.parametrize(
    "table",
    [
        'X = {"PASS": "✓", "FAIL": "✗"}',
        'x: dict[Stage, str] = {"done": "", "failed": ""}',
        'f({"ok": 1, "failed": 2, "": 3})',
    ],
)
def test_a_second_table_of_states_is_found(table: str) -> None:
    assert len(tables_of_states(table)) == 1


def test_states_are_listed_in_only_one_module() -> None:
    found = {
        (path.relative_to(PACKAGE).as_posix(), name)
        for path in PACKAGE.rglob("*.py")
        if path != Path(states.__file__)
        for name in tables_of_states(path.read_text("utf-8"))
    }
    assert found == SENTENCES
