"""Settings of the screen: themes, and keys by the ids of their bindings."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module

from textual.binding import Binding
from textual.dom import DOMNode
from textual.theme import BUILTIN_THEMES

import llmb_tui.ui
from llmb_tui.store.settings import Settings
from llmb_tui.ui.themes import OWN_THEMES


def keys_by_id() -> dict[str, str]:
    """Default keys of every key binding that has an id. Imports all screens."""
    for module in pkgutil.walk_packages(llmb_tui.ui.__path__, "llmb_tui.ui."):
        import_module(module.name)
    return {item.id: item.key for node in _subclasses(DOMNode) for item in _bindings(node) if item.id}


def screen_faults(settings: Settings) -> Iterator[tuple[str, str]]:
    """(dotted key, reason) of each invalid setting of the screen. Imports all screens if keys are set."""
    themes = sorted((*BUILTIN_THEMES, *OWN_THEMES))
    if settings.theme is not None and settings.theme not in themes:
        yield "theme", f"Theme {settings.theme} does not exist. Choose one of {', '.join(themes)}."
    known = keys_by_id() if settings.keys else {}
    for name in settings.keys:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            suggestion = f" Did you mean {close[0]}?" if close else ""
            yield f"keys.{name}", f"No key binding has this id; `llmb-tui config show` lists them.{suggestion}"


def _subclasses(kind: type[DOMNode]) -> Iterator[type[DOMNode]]:
    for sub in kind.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def _bindings(node: type[DOMNode]) -> Iterator[Binding]:
    """Bindings that the class itself defines, without inherited ones."""
    for item in vars(node).get("BINDINGS", ()):
        if isinstance(item, Binding):
            yield item
