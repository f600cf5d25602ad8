"""Repeated tests: `python -m tests.kit.repeat --times 20 tests/rig tests/ui`. Other arguments are passed to pytest.

It continues after a failure, so that it can count the failures of each test. Each repetition has its own report file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path


def main(words: Sequence[str] | None = None) -> int:
    """Run the tests repeatedly; 1 if a test failed in any repetition, or if the tests could not run."""
    parser = argparse.ArgumentParser(prog="python -m tests.kit.repeat", description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--workers", type=int, default=4, help="processes of pytest")
    options, others = parser.parse_known_args(words)
    folder = Path(tempfile.mkdtemp(prefix="llmb-tui-steady-"))
    accidents: Counter[str] = Counter()
    for number in range(1, options.times + 1):
        began = time.monotonic()
        report = folder / f"{number}.txt"
        failed = run_once(["-n", str(options.workers), "--dist", "loadfile", *others], report)
        accidents.update(failed)
        result = f"{len(failed)} failed, see {report}" if failed else "passed"
        say(f"{number} of {options.times}: {result}, {time.monotonic() - began:.0f} s")
    for name, count in accidents.most_common():
        say(f"{count:3} of {options.times}  {name}")
    return 1 if accidents else 0


def run_once(arguments: Sequence[str], report: Path) -> list[str]:
    """Names of the tests that failed in one run of pytest; their messages are in the report file."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rfE", *arguments]
    with report.open("w", encoding="utf-8") as output:
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    # The captured logs come before the summary, and may begin with the same words.
    summary = report.read_text(encoding="utf-8").rpartition("short test summary info")[2]
    failed = [line.split()[1] for line in summary.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed or ([f"pytest itself, exit code {code}"] if code else [])


def say(text: str) -> None:
    """Print a line for the user at the terminal."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
