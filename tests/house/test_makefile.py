from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


OLDEST = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")


def make(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}  # set by an outer `make`
    command = ["make", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files of a checkout that are needed to make an environment."""
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "requirements.lock").touch()
    return tmp_path


def program(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_python_without_venv_is_reported_in_one_line_and_leaves_no_environment(checkout: Path) -> None:
    python = program(
        checkout / "python", 'case "$2" in *version_info*) exit 0 ;; esac\n[ "$1" = -c ] || mkdir .venv\nexit 1'
    )
    result = make(checkout, f"PYTHON={python}", ".venv/.ready")
    lines = result.stderr.splitlines()
    assert lines[0] == f"{python} cannot make environments: apt install python3-venv, or make PYTHON=ANOTHER"
    assert len(lines) == 2, "make's own word that it failed"
    assert not (checkout / ".venv").exists()


def test_a_python_that_is_too_old_is_reported_in_one_line_and_leaves_no_environment(checkout: Path) -> None:
    """The real check on the Python of the tests, as if the project asked for a later one."""
    project = checkout / "pyproject.toml"
    project.write_text(project.read_text().replace(f">={OLDEST}", ">=4.1"))
    result = make(checkout, f"PYTHON={sys.executable}", ".venv/.ready")
    lines = result.stderr.splitlines()
    assert lines[0] == f"{sys.executable} is older than Python 4.1, or does not start: make PYTHON=ANOTHER"
    assert len(lines) == 2
    assert not (checkout / ".venv").exists()


def test_the_oldest_supported_python_is_the_same_everywhere() -> None:
    assert f"Python {OLDEST} or newer" in (ROOT / "README.md").read_text()
    for target, words in (("types", f"mypy --python-version {OLDEST}\n"), ("lock", f"--python-version {OLDEST} ")):
        assert words in make(ROOT, "--dry-run", target).stdout


@pytest.fixture
def newer(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the PATH with a shim, which selects Python 3.98, whose `portable` fails, and has no Python 3.99."""
    folder = checkout / "bin"
    folder.mkdir()
    real = program(checkout / "python", '[ "$2" = pytest ] || exit 0\necho "portable of 3.98"\nexit 1')
    program(folder / "python3.98", f'[ "$PYENV_VERSION" = 3.98 ] || exit 127\necho {real}')
    program(folder / "python3.99", "echo 'pyenv: python3.99: command not found' >&2\nexit 127")
    for name in (".venv", ".venv-3.98"):
        (checkout / name / "bin").mkdir(parents=True)
        (checkout / name / ".ready").touch()
    (checkout / ".venv/bin/python").symlink_to(sys.executable)
    program(checkout / ".venv-3.98/bin/llmb-tui", 'echo "$* of 3.98"')
    (checkout / ".venv-3.98/bin/python").symlink_to(real)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return checkout


def test_every_python_that_starts_is_tested_and_the_others_are_named(newer: Path) -> None:
    own = "{}.{}".format(*sys.version_info)
    result = make(newer, "test-pythons", f"PYTHONS={own} 3.98 3.99")
    assert result.returncode == 2, "exit code of make after a failed command"
    assert "demo of 3.98" in result.stdout.splitlines()
    assert "portable of 3.98" in result.stdout.splitlines()
    assert "Not run, because this machine cannot make an environment with it: Python 3.99" in result.stdout.splitlines()
    assert "Failed, see above: Python 3.98" in result.stderr.splitlines()


def test_a_python_that_is_missing_fails_nothing(newer: Path) -> None:
    assert make(newer, "test-pythons", "PYTHONS=3.99").returncode == 0
