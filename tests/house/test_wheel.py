"""After `pip install .` in another environment, the program has its presets, styles and remote files, and runs."""

from __future__ import annotations

import re
import subprocess
import sysconfig
import venv
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the program; pip finds its dependencies in the environment of the tests, offline."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    (site_packages(folder) / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    subprocess.run(
        [folder / "bin/python", "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "."],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    return folder


def site_packages(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python*/site-packages")
    return folder


def program(environment: Path, home: Path, *words: str) -> str:
    """What the installed `llmb-tui` prints, away from the checkout."""
    done = subprocess.run(
        [environment / "bin/llmb-tui", *words],
        cwd=home, env={"HOME": str(home), "LANG": "C.UTF-8"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_file_of_the_package_is_in_it(environment: Path) -> None:
    def files(folder: Path) -> set[str]:
        return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts}

    presets = {str(preset.relative_to(ROOT)) for preset in (ROOT / "presets").rglob("*") if preset.is_file()}
    assert {"presets/model/coefficients.toml", "presets/failures/training.toml"} <= presets
    assert files(site_packages(environment) / "llmb_tui") == files(ROOT / "llmb_tui") | presets


def test_it_runs_away_from_the_checkout(environment: Path, tmp_path: Path) -> None:
    where = [str(environment / "bin/python"), "-c", "import llmb_tui; print(llmb_tui.__file__)"]
    imported = subprocess.run(where, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert Path(imported).is_relative_to(environment)
    assert program(environment, tmp_path, "--version") == f"llmb-tui {version('llmb-tui')}\n"
    assert re.search(r"^ +plan +what will run", program(environment, tmp_path, "--help"), re.MULTILINE)
    assert len(program(environment, tmp_path, "list", "-w", "grok1").splitlines()) == 1 + 18
    row = ("-w", "nemotron4", "-s", "15b", "--gpu", "h100", "-d", "fp8", "--scale", "64")
    assert "published" in program(environment, tmp_path, "plan", *row)
