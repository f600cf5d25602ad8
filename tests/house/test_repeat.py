"""`make steady`: the program that repeats tests and counts the failures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEST = """
from pathlib import Path

def test_good() -> None:
    pass

def test_every_other_time() -> None:
    mark = Path(__file__).with_name("mark")
    mark.unlink() if mark.exists() else mark.touch()
    assert not mark.exists()
"""


def test_a_test_that_fails_every_other_time_is_named_with_its_count(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    command = [sys.executable, "-m", "tests.kit.repeat", "--times", "3", "--workers", "1"]
    result = subprocess.run(
        [*command, f"--rootdir={tmp_path}", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    lines = result.stdout.splitlines()
    assert result.returncode == 1
    assert [line.split(":")[0] for line in lines[:3]] == ["1 of 3", "2 of 3", "3 of 3"]
    assert ["1 failed" in line for line in lines[:3]] == [True, False, True]
    assert [line.split()[:3] for line in lines[3:]] == [["2", "of", "3"]]
    assert lines[3].endswith("test_it.py::test_every_other_time")
