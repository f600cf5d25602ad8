"""The early check for the commits of a setup script, with a real git: found, not public, unreachable, found earlier."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.catalog.upstream import Commit
from llmb_tui.cluster.failures import DeadlineError
from llmb_tui.cluster.link import Completed
from llmb_tui.launch.step_state import StepState
from llmb_tui.launch.upstream.commits import commit_objections, commits_group, look_for_commits
from llmb_tui.preflight.report import Check
from llmb_tui.request import RunRequest
from tests.launch.launch_cases import PROFILE, ROWS, MakePlan
from tests.launch.upstream_install import UpstreamInstall

LOST = "1" * 40


class Shell:
    """A session on this machine."""

    def __init__(self, site: UpstreamInstall) -> None:
        self._site = site

    def run_script(self, script: str, args: Sequence[str], **_: object) -> Completed:
        result = subprocess.run(
            ["sh", "-c", script, "sh", *args], env=self._site.environment() | {"TMPDIR": str(self._site.home)},
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        return Completed(result.returncode, result.stdout, result.stderr)


class Silent:
    """A session whose git host does not answer."""

    def run_script(self, *_: object, **__: object) -> Completed:
        raise DeadlineError("No answer came in time.")


@pytest.fixture
def site(tmp_path: Path, catalog: Catalog, make_plan: MakePlan) -> UpstreamInstall:
    return UpstreamInstall(tmp_path, catalog.recipe("nemotron4@25.04"), make_plan)


def look(site: UpstreamInstall, *commits: Commit) -> Check:
    site.scripts = replace(site.scripts, commits=commits or site.scripts.commits)
    shell: Any = Shell(site)
    return look_for_commits(shell, site.steps()["commits"])


def test_existing_commits_are_found_without_leftovers(site: UpstreamInstall) -> None:
    check = look(site)
    assert (check.id, check.status, check.found) == ("commits", "ok", "all exist")
    assert list(site.home.iterdir()) == []
    assert list(site.install.iterdir()) == []
    assert commit_objections(site.request(), (check,), ()) == ()


def test_a_commit_that_is_not_public_is_named_with_its_repository(site: UpstreamInstall) -> None:
    check = look(site, *site.scripts.commits, Commit(site.url("NeMo"), LOST))
    assert check.status == "failed"
    assert check.found == f"Commit {LOST} is not in {site.url('NeMo')}. It may not be public."
    assert check.needed.startswith("2 commits")
    (problem,) = commit_objections(site.request(), (check,), ()) or ()
    assert (problem.severity, problem.reason, problem.fix) == ("error", check.found, check.fix)
    assert list(site.home.iterdir()) == []


def test_an_unreachable_git_host_blocks_nothing(site: UpstreamInstall) -> None:
    check = look(site, Commit("https://127.0.0.1:1/NVIDIA/NeMo", LOST))
    assert check.status == "warning"
    assert "could not be checked" in check.found
    assert "The install checks again" in check.fix
    silent: Any = Silent()
    assert look_for_commits(silent, site.steps()["commits"]).status == "warning"
    assert commit_objections(site.request(), (check,), ()) is None


def test_commits_that_the_install_has_found_are_not_checked_again(site: UpstreamInstall) -> None:
    site.made("directories", "commits")
    (site.upstream / "NeMo").rename(site.upstream / "away")
    assert look(site).status == "ok"


def test_an_install_reports_a_missing_commit_but_not_an_unanswered_check(
    site: UpstreamInstall,
) -> None:
    missing = f"Commit {LOST} is not in https://example.org/NeMo.git."
    refused = StepState(site.steps()["commits"].id, "Commits", "failed", missing, reason="It may not be public.")
    (problem,) = commit_objections(site.request(), (), (refused,)) or ()
    assert problem.reason.startswith(missing)
    assert (
        commit_objections(site.request(), (), (replace(refused, detail="https://example.org could not be asked"),))
        is None
    )
    assert commit_objections(site.request(), (), (replace(refused, status="done"),)) is None


def test_only_a_recipe_with_such_commits_is_checked(catalog: Catalog, make_plan: MakePlan) -> None:
    steps = {
        name: bool(commits_group(RunRequest(catalog.recipe(row[0]), make_plan(*row), PROFILE)))
        for name, row in ROWS.items()
    }
    assert steps == {
        "nemotron4-25.04": True,
        "llama3.1-25.04": True,
        "llama3.1-24.11": False,
        "grok1-25.02": False,
        "nemotron4-340b-25.12": True,
    }
