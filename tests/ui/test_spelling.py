"""Textual finds actions, message handlers and watchers by spelling: a wrong name raises no error and does nothing."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest
import textual.events
import textual.widgets
from textual import actions
from textual.binding import Binding, BindingType
from textual.dom import DOMNode
from textual.message import Message
from textual.widget import Widget

import llmb_tui.ui
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens.wizard import WizardScreen
from llmb_tui.wizard.events import Action

_UI = Path(llmb_tui.ui.__file__).parent
_TARGETS: dict[str, type[DOMNode]] = {"app": LlmbApp, "screen": WizardScreen}
"""Classes of the explicit targets of actions: only panes of the wizard use `screen`."""
_REACTIVE = ("watch", "compute", "validate")


def _subclasses(base: type[Any]) -> Iterator[type[Any]]:
    for cls in base.__subclasses__():
        yield cls
        yield from _subclasses(cls)


def _program_nodes() -> list[type[DOMNode]]:
    """Apps, screens and widgets of the program."""
    for module in pkgutil.walk_packages([str(_UI)], "llmb_tui.ui."):
        importlib.import_module(module.name)
    nodes = {cls for cls in _subclasses(DOMNode) if cls.__module__.startswith("llmb_tui.")}
    return sorted(nodes, key=lambda cls: (cls.__module__, cls.__qualname__))


def _handlers() -> set[str]:
    """Names of handlers of the messages of Textual and of the program."""
    for module in pkgutil.iter_modules(textual.widgets.__path__, "textual.widgets."):
        importlib.import_module(module.name)
    return {message.handler_name for message in _subclasses(Message)}


def _overrides_textual(node: type[DOMNode], name: str) -> bool:
    return any(name in vars(base) for base in node.__mro__ if base.__module__.startswith("textual."))


def wrong_actions(node: type[DOMNode]) -> Iterator[str]:
    """Find bindings without a method for their action, and with arguments that it does not accept."""
    for binding in vars(node).get("BINDINGS", ()):
        target, name, arguments = actions.parse(binding.action)
        owner = _TARGETS.get(target, node)
        method = getattr(owner, f"action_{name}", None) or getattr(owner, f"_action_{name}", None)
        if method is None:
            yield f"{node.__name__}, {binding.key}: {owner.__name__} has no action_{name}"
            continue
        try:
            inspect.signature(method).bind(None, *arguments)
        except TypeError as error:
            yield f"{node.__name__}, {binding.key}: {binding.action}: {error}"
        if method is WizardScreen.action_ask and arguments[0] not in get_args(Action):
            yield f"{node.__name__}, {binding.key}: the wizard has no action {arguments[0]!r}"


def wrong_handlers(node: type[DOMNode]) -> Iterator[str]:
    """Find methods that are named like a handler of a message, but of no message, and that no code names."""
    handlers, source = _handlers(), inspect.getsource(node)
    for name in vars(node):
        public = name.removeprefix("_")
        is_named = f"self.{name}" in source or _overrides_textual(node, name)
        if public.startswith("on_") and public not in handlers and not is_named:
            yield f"{node.__name__}.{name}: no message has this handler"


def wrong_watchers(node: type[DOMNode]) -> Iterator[str]:
    """Find watchers and validators without a reactive attribute of their name."""
    for name in vars(node):
        kind, _, attribute = name.removeprefix("_").partition("_")
        if kind in _REACTIVE and attribute and attribute not in node._reactives and not _overrides_textual(node, name):
            yield f"{node.__name__}.{name}: no reactive attribute has this name"


def compared_actions(source: str) -> Iterator[str]:
    """Find the names that code compares with an action, as `check_action` does."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and ast.unparse(node.left).rpartition(".")[2] == "action":
            yield from (str(part.value) for part in ast.walk(node) if isinstance(part, ast.Constant))


@pytest.mark.parametrize("find", [wrong_actions, wrong_handlers, wrong_watchers])
def test_actions_handlers_and_watchers_exist(find: Callable[[type[DOMNode]], Iterator[str]]) -> None:
    nodes = _program_nodes()
    assert len(nodes) > 50
    assert [fault for node in nodes for fault in find(node)] == []


def test_code_compares_actions_with_names_that_exist() -> None:
    known = {name.removeprefix("action_") for node in _program_nodes() for name in dir(node) if "action_" in name}
    for path in _UI.rglob("*.py"):
        assert set(compared_actions(path.read_text(encoding="utf-8"))) <= known, path.name


def test_wrong_spelling_is_found() -> None:
    class Misspelled(Widget):
        BINDINGS: ClassVar[list[BindingType]] = [
            Binding("a", "one", "One"),
            Binding("b", "two(2)", "Two"),
            Binding("c", "app.help_me", "Help"),
            Binding("d", "screen.ask('fly')", "Fly"),
        ]

        def action_two(self) -> None: ...

        def on_butten_pressed(self) -> None: ...

        def on_button_pressed(self) -> None: ...

        def watch_staet(self) -> None: ...

    assert [fault.split(":")[0][-1] for fault in wrong_actions(Misspelled)] == ["a", "b", "c", "d"]
    assert [fault.split(":")[0] for fault in wrong_handlers(Misspelled)] == ["Misspelled.on_butten_pressed"]
    assert [fault.split(":")[0] for fault in wrong_watchers(Misspelled)] == ["Misspelled.watch_staet"]
    assert list(compared_actions('if action in ("sve", "leave") or self.action == "x": pass')) == ["sve", "leave", "x"]
