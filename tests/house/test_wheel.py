"""The wheel holds what a checkout has: a program that was installed finds its presets, styles and remote files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked wheel, as `site-packages` would have it."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_every_file_of_the_package_is_in_it(installed: Path) -> None:
    def files(folder: Path) -> set[str]:
        return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts}

    presets = {str(preset.relative_to(ROOT)) for preset in (ROOT / "presets").rglob("*") if preset.is_file()}
    assert {"presets/model/coefficients.toml", "presets/failures/training.toml"} <= presets
    assert files(installed / "llmb_tui") == files(ROOT / "llmb_tui") | presets


def test_it_runs_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys, llmb_tui.cli; sys.exit(llmb_tui.cli.main(['list', '-w', 'grok1']))"],
        cwd=tmp_path, env={"PYTHONPATH": str(installed), "HOME": str(tmp_path), "LANG": "C.UTF-8"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1 + 18
