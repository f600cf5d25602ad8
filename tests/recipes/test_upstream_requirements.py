"""The stand-ins' requirements files equal upstream's, and the presets pin the packages that these files name."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from llmb_tui.catalog.load import load_presets
from tests.recipes.repositories import COMMITS, FILES, NEMO_25_04, NEMO_25_12
from tests.recipes.wheels import canonical

PLACES = {
    "24.09": "opt/NeMo-Framework-Launcher",
    NEMO_25_04: "nemo_25_04",
    NEMO_25_12: "nemo_25_12",
    COMMITS["Megatron-LM"][0]: "megatron",
}
ROWS = [
    line.split() for line in (FILES.parent / "requirements.sha256").read_text().splitlines() if not line.startswith("#")
]
RECIPES = {"llama3.1@24.11": "24.09", "nemotron4@25.04": NEMO_25_04, "nemotron4-340b@25.12": NEMO_25_12}
BY_A_COMMIT_OR_VERSION = {"nemo-run", "bitsandbytes", "nvidia-modelopt"}
"""Packages that upstream's setup script selects by a commit or version."""


def files_of(revision: str) -> list[Path]:
    return [FILES / PLACES[revision] / path for _, _, of, path in ROWS if of == revision]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[2][:7]} {row[3]}")
def test_a_requirements_file_is_identical_to_upstreams_file(row: list[str]) -> None:
    digest, _, revision, path = row
    assert hashlib.sha256((FILES / PLACES[revision] / path).read_bytes()).hexdigest() == digest


def test_there_are_no_others() -> None:
    known = {path for revision in PLACES for path in files_of(revision)}
    assert {path for path in FILES.rglob("*.txt") if "requirements" in path.name} == known


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_package_that_upstream_does_not_pin_is_pinned_here(recipe: str) -> None:
    upstream = load_presets().recipe(recipe).upstream
    assert upstream
    assert upstream.constraints
    pinned = {canonical(re.split("[=<]=", line)[0]) for line in upstream.constraints.requirements}
    lines = [line.strip() for file in files_of(RECIPES[recipe]) for line in file.read_text().splitlines()]
    named = {canonical(found[0]) for line in lines if (found := re.match(r"[A-Za-z0-9][\w.-]*", line))}
    assert named - pinned - BY_A_COMMIT_OR_VERSION == set()
