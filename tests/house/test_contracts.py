"""Every package is covered by the import contracts."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from importlinter.contracts.acyclic_siblings import DEFAULT_DEPTH

import llmb_tui

PACKAGE = Path(llmb_tui.__file__).parent
CONTRACTS = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
ALLOWED = {
    "only ui knows Textual": {"ui", "cli"},
    "only cluster and demo know paramiko": {"cluster", "demo"},
    "only cluster/runai and demo speak HTTP": {"demo"},
    "only launch and remote know nemo-run": {"launch", "remote"},
    "only fit knows numpy": {"fit", "cli"},
    "nothing but cli imports demo": {"cli", "demo"},
}
"""Packages that a contract leaves out, by the contract's name."""


def rooms() -> set[str]:
    modules = {path.stem for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    return modules | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_every_contract_about_one_package_is_listed_here() -> None:
    names = {contract["name"] for contract in CONTRACTS}
    assert {name for name in names if name.startswith(("only ", "nothing but "))} == set(ALLOWED)


@pytest.mark.parametrize("name", ALLOWED)
def test_a_contract_holds_for_every_room_that_it_does_not_allow(name: str) -> None:
    (contract,) = (contract for contract in CONTRACTS if contract["name"] == name)
    assert {module.split(".")[1] for module in contract["source_modules"]} == rooms() - ALLOWED[name]


def test_no_circle_is_allowed_in_any_folder_of_the_package() -> None:
    """The contract covers every folder of the package, including new ones."""
    (contract,) = (contract for contract in CONTRACTS if contract["type"] == "acyclic_siblings")
    deepest = max(len(path.relative_to(PACKAGE).parts) for path in PACKAGE.rglob("*.py"))
    assert contract["ancestors"] == ["llmb_tui"]
    assert contract.get("depth", DEFAULT_DEPTH) >= deepest
    assert set(contract) <= {"name", "type", "ancestors", "depth"}
