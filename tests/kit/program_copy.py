"""A copy of the program to which a test adds the parts of an extension, as docs/architecture.md describes them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.kit import verbs

ROOT = Path(__file__).parents[2]


class ProgramCopy:
    """The package and its presets in a separate directory, run in separate processes."""

    def __init__(self, home: Path) -> None:
        self.home, self._copy = home, home / "program"
        shutil.copytree(ROOT / "llmb_tui", self._copy / "llmb_tui", ignore=shutil.ignore_patterns("__pycache__"))
        (self._copy / "presets").symlink_to(ROOT / "presets")

    def add(self, source: Path, to: str) -> None:
        """Copy a module or a folder of modules into the package."""
        target = self._copy / "llmb_tui" / to
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace the only occurrence of `old` in a module."""
        file = self._copy / "llmb_tui" / path
        text = file.read_text()
        assert text.count(old) == 1, f"{path} must contain the line that this test extends exactly once"
        file.write_text(text.replace(old, new))

    def __call__(self, *words: str) -> str:
        """Output of a verb."""
        return self.python("-m", "llmb_tui", *words)

    def python(self, *words: str) -> str:
        """Output of the copy's Python interpreter."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self._copy, env=verbs.environment(self.home), capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
