"""The pure packages import nothing that reaches a file, a process, a socket, a thread or a clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import llmb_tui

ROOT = Path(llmb_tui.__file__).parent
ROOMS = ("language", "catalog", "plan", "diagnosis", "analysis")
EFFECTS = {"os", "pathlib", "io", "shutil", "tempfile", "subprocess", "socket", "threading", "time", "datetime"}
ALLOWED = {
    "language/instants.py": {"time"},  # formats times that callers pass
    "analysis/upstream_rules.py": {"io"},  # reads lines of a log that its caller has opened
    "catalog/kept.py": {"os", "pathlib"},  # reads presets, parsed once
    "catalog/load.py": {"pathlib"},  # reads presets
    "diagnosis/load.py": {"pathlib"},  # reads rules
    "diagnosis/own_pattern.py": {"time"},  # limits the processor time of the operator's patterns
    "diagnosis/rules.py": {"pathlib"},  # the directory of the operator's rules
}


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_a_pure_room_imports_no_module_that_has_effects() -> None:
    used = {
        str(file.relative_to(ROOT)): effects
        for room in ROOMS
        for file in sorted((ROOT / room).rglob("*.py"))
        if (effects := EFFECTS & set(imports(ast.parse(file.read_text()))))
    }
    assert used == ALLOWED
