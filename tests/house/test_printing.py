"""All text on stdout and stderr passes through `cli/output.py`, which makes it harmless."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import llmb_tui

ROOT = Path(llmb_tui.__file__).parent
# The printing module, a program without verbs, and a program that answers from another process.
MAY_PRINT = {"cli/output.py", "fit/__main__.py", "launch/direct/render_worker.py"}


def _prints(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "print":
            yield node.lineno
        elif isinstance(node, ast.Attribute) and node.attr in ("write", "writelines", "buffer", "print_exc"):
            name = ast.unparse(node.value)
            if name.removesuffix(".buffer") in (
                "sys.stdout",
                "sys.stderr",
                "sys.__stdout__",
                "sys.__stderr__",
                "traceback",
            ):
                yield node.lineno


def test_only_cli_output_prints() -> None:
    lines = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in sorted(ROOT.rglob("*.py"))
        if str(file.relative_to(ROOT)) not in MAY_PRINT and not {"remote", "demo"} & set(file.relative_to(ROOT).parts)
        for line in _prints(ast.parse(file.read_text()))
    ]
    assert lines == []
