"""What is heavy is imported late: each check starts an interpreter of its own and looks at what it loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("textual", "paramiko", "pydantic", "nemo_run", "rich", "numpy", "scipy", "yaml")


def loaded_by(code: str) -> set[str]:
    """Top-level packages in `sys.modules` after running `code`."""
    program = f"{code}\nimport sys\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_loads_nothing_heavy() -> None:
    loaded = loaded_by("import llmb_tui.cli\ntry: llmb_tui.cli.main(['--help'])\nexcept SystemExit: pass")
    assert "argparse" in loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "room", ["catalog.catalog", "catalog.rows", "plan.make", "wizard.choices", "wizard.update", "diagnosis.rules"]
)
def test_pure_rooms_need_only_the_standard_library(room: str) -> None:
    assert loaded_by(f"import llmb_tui.{room}").isdisjoint(HEAVY)


def test_the_screen_paints_before_pydantic_paramiko_and_nemo_run() -> None:
    loaded = loaded_by("import llmb_tui.ui.app")
    assert "textual" in loaded
    assert loaded.isdisjoint({"paramiko", "pydantic", "nemo_run", "numpy", "scipy", "yaml"})


def test_the_lock_names_no_host() -> None:
    from pathlib import Path

    lock = (Path(__file__).parents[2] / "requirements.lock").read_text()
    assert "==" in lock
    assert "://" not in lock
