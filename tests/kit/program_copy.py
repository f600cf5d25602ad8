"""A copy of the program to which a test adds what docs/architecture.md says that an extension takes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.kit import verbs

ROOT = Path(__file__).parents[2]


class ProgramCopy:
    """The package and its presets in a directory of their own, run in processes of their own."""

    def __init__(self, home: Path) -> None:
        self.home, self._copy = home, home / "program"
        shutil.copytree(ROOT / "llmb_tui", self._copy / "llmb_tui", ignore=shutil.ignore_patterns("__pycache__"))
        (self._copy / "presets").symlink_to(ROOT / "presets")

    def add(self, source: Path, to: str) -> None:
        """Put a module or a folder of modules into the package."""
        target = self._copy / "llmb_tui" / to
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)

    def edit(self, path: str, old: str, new: str) -> None:
        """Change the one place of a module where `old` stands."""
        file = self._copy / "llmb_tui" / path
        text = file.read_text()
        assert text.count(old) == 1, f"{path} has another form; this test adds a line to it"
        file.write_text(text.replace(old, new))

    def __call__(self, *words: str) -> str:
        """What a verb answers."""
        return self.python("-m", "llmb_tui", *words)

    def python(self, *words: str) -> str:
        """What an interpreter of the copy prints."""
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self._copy, env=verbs.environment(self.home), capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
