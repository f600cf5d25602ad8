"""Late imports of large packages: each check starts its own interpreter and reads the list of loaded modules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llmb_tui.launch.runs import Runs
from llmb_tui.store.paths import CONFIG_VARIABLE, STATE_VARIABLE, UserPaths
from tests.kit.runs import make_run

HEAVY = ("textual", "paramiko", "pydantic", "nemo_run", "rich", "numpy", "yaml")


def printed_by(program: str) -> set[str]:
    """Words that a program prints on stderr."""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(result.stderr.split())


def loaded_by(code: str) -> set[str]:
    """Modules in `sys.modules` after running `code`, and their top-level packages."""
    modules = printed_by(f"{code}\nimport sys\nprint(*sys.modules, file=sys.stderr)")
    return modules | {module.split(".")[0] for module in modules}


def test_help_loads_nothing_heavy() -> None:
    loaded = loaded_by("import llmb_tui.cli\ntry: llmb_tui.cli.main(['--help'])\nexcept SystemExit: pass")
    assert "argparse" in loaded
    assert loaded.isdisjoint(HEAVY)
    assert loaded.isdisjoint({"dataclasses", "inspect", "json", "typing"}), "these imports take longer than argparse"


def test_listing_runs_without_a_cluster_imports_no_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (CONFIG_VARIABLE, STATE_VARIABLE):
        monkeypatch.setenv(variable, str(tmp_path))
    Runs(UserPaths.of_user()).save(make_run(job_state="COMPLETED"))
    loaded = loaded_by("import llmb_tui.cli\nllmb_tui.cli.main(['jobs', '--json'])")
    assert "pydantic" in loaded
    assert loaded.isdisjoint({"paramiko", "textual", "asyncio", "nemo_run", "numpy"})


def test_paramiko_is_imported_without_its_configuration_dependencies() -> None:
    loaded = loaded_by("import llmb_tui.cluster.ssh.connect")
    assert "paramiko" in loaded
    assert loaded.isdisjoint({"invoke", "unittest", "yaml", "asyncio"})
    assert "invoke" in loaded_by("import llmb_tui.cluster.ssh, invoke"), "an explicit import still works"


def test_a_second_plan_parses_and_checks_no_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (CONFIG_VARIABLE, STATE_VARIABLE):
        monkeypatch.setenv(variable, str(tmp_path))
    plan = "import llmb_tui.cli\nllmb_tui.cli.main('plan -w grok1 -s 314b --gpu h100 -d bf16 --scale 16'.split())"
    assert "pydantic" in loaded_by(plan)
    loaded = loaded_by(plan)
    assert "llmb_tui.plan.make" in loaded
    assert loaded.isdisjoint((*HEAVY, "annotated_types", "tomllib", "llmb_tui.catalog.load", "llmb_tui.plan.layouts"))


@pytest.mark.parametrize(
    "room", ["catalog.catalog", "catalog.rows", "plan.make", "wizard.choices", "wizard.update", "diagnosis.rules"]
)
def test_pure_rooms_need_only_the_standard_library(room: str) -> None:
    assert loaded_by(f"import llmb_tui.{room}").isdisjoint(HEAVY)


FIRST_FRAME = """
import os
import sys
from llmb_tui.cli.screen import UserPaths, Services
from llmb_tui.ui.app import LlmbApp
from llmb_tui.ui.screens import wizard

async def end(*_):
    print(*sys.modules, file=sys.__stderr__, flush=True)
    os._exit(0)

wizard.run_in_thread = end
LlmbApp(Services(UserPaths.of_user())).run(headless=True)
"""


def test_the_first_frame_needs_nothing_that_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (CONFIG_VARIABLE, STATE_VARIABLE):
        monkeypatch.setenv(variable, str(tmp_path))
    loaded = printed_by(FIRST_FRAME)
    assert "textual.app" in loaded
    assert loaded.isdisjoint({"paramiko", "pydantic", "nemo_run", "numpy", "yaml"})
    assert loaded.isdisjoint({"importlib.metadata", "email", "zipfile", "statistics", "tomllib"})
    assert {one.split(".")[1] for one in loaded if one.startswith("llmb_tui.")}.isdisjoint(
        {"catalog", "plan", "cluster", "clusters", "request"}
    )
    assert {one for one in loaded if one.startswith("llmb_tui.wizard.")} == {"llmb_tui.wizard.steps"}
    panes = {one.rpartition(".")[2] for one in loaded if one.startswith("llmb_tui.ui.panes.")}
    assert panes == {"pane", "choosing"}
    assert loaded.isdisjoint({"llmb_tui.ui.dialogs", "llmb_tui.ui.wizard_effects", "llmb_tui.watch.runs_feed"})


def test_the_demo_paints_before_its_cluster_is_imported() -> None:
    loaded = loaded_by("import llmb_tui.cli.demo")
    assert loaded.isdisjoint({"paramiko", "pydantic", "llmb_tui.demo", "llmb_tui.plan.make", "llmb_tui.watch.report"})


def test_the_bare_command_imports_no_verbs_and_no_textual() -> None:
    loaded = loaded_by("import llmb_tui.cli\nllmb_tui.cli.main([])")
    assert loaded.isdisjoint({"textual", "llmb_tui.cli.arguments", "llmb_tui.plan.selection"})


def test_the_lock_names_no_host() -> None:
    lock = (Path(__file__).parents[2] / "requirements.lock").read_text()
    assert "==" in lock
    assert "://" not in lock
