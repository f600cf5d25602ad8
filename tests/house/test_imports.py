"""What is heavy is imported late: each check starts an interpreter of its own and looks at what it loaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import CONFIG_VARIABLE, STATE_VARIABLE, Places
from tests.kit.runs import make_run

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
    assert loaded.isdisjoint({"dataclasses", "inspect", "json", "typing"}), "what takes longer than argparse itself"


def test_a_list_of_runs_that_asks_no_cluster_loads_no_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (CONFIG_VARIABLE, STATE_VARIABLE):
        monkeypatch.setenv(variable, str(tmp_path))
    Runs(Places.of_user()).save(make_run(job_state="COMPLETED"))
    loaded = loaded_by("import llmb_tui.cli\nllmb_tui.cli.main(['jobs', '--json'])")
    assert "pydantic" in loaded
    assert loaded.isdisjoint({"paramiko", "textual", "asyncio", "nemo_run", "scipy"})


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
    lock = (Path(__file__).parents[2] / "requirements.lock").read_text()
    assert "==" in lock
    assert "://" not in lock
