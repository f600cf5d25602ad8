"""Tests replace public names only, because a private one may change without notice."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

REASONS = {
    "cluster/test_logging_in.py: _parse_service_request": "paramiko does not report requests of the SSH service",
    "cluster/test_logging_in.py: _finalize_pubkey_algorithm": "paramiko refuses a key so only with old servers",
    "ui/conftest.py: _parse_rules": "Textual parses a widget's styles again for each app, which takes seconds",
    "ui/run/test_log_pane.py: _compositor_refresh": "Textual does not report repaints",
    "nemo/shims/sitecustomize.py: _MockGPTDataset": "NeMo without a GPU needs it",
    "nemo/shims/sitecustomize.py: _write_item": "NeMo without a GPU needs it",
    "nemo/shims/sitecustomize.py: _fix_tensors_device": "NeMo without a GPU needs it",
}
"""Private names of other packages that tests replace, with the reason for each."""

PRIVATE = re.compile(r"(?:.*\.)?(_(?!_)\w+)")


def private_names(tree: ast.AST) -> Iterator[str]:
    """Private names that `setattr` or an assignment to another object's attribute replaces."""
    for node in ast.walk(tree):
        words: list[str] = []
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("setattr"):
            words = [str(word.value) for word in node.args[:2] if isinstance(word, ast.Constant)]
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) != "self":
            words = [node.attr]
        yield from (match[1] for word in words if (match := PRIVATE.fullmatch(word)))


def test_tests_replace_no_private_name() -> None:
    names = {
        f"{file.relative_to(TESTS)}: {name}"
        for file in TESTS.rglob("*.py")
        for name in private_names(ast.parse(file.read_text()))
    }
    assert names == REASONS.keys()
