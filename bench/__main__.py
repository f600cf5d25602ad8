"""Command `python -m bench [NAME…]`: run the named benchmark modules of this directory, or all, and print their rows.

A run of all modules also writes `docs/speed.md`. `--cheap` runs only the benchmarks that take seconds and need no
terminal and no network.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from bench._baselines import OLD_COMMIT, PEERS, ROOT, older_version, peer_command
from bench._rounds import Row

_PAGE = Path(ROOT) / "docs" / "speed.md"
_GOALS = 20


def main(arguments: list[str]) -> int:
    """Run the modules, print their rows, and list the failed modules at the end. Return 1 if a module failed."""
    cheap = arguments == ["--cheap"]
    modules = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    benchmarks = [name for name in modules if not name.startswith("_")]
    load, rows, failed = _load(), list[Row](), dict[str, str]()
    for name in benchmarks if cheap or not arguments else arguments:
        try:
            for row in _rows(name, cheap):
                rows.append(row)
                print(row, flush=True)
        except Exception as error:  # noqa: BLE001 - one failed module does not discard an hour of measurements
            failed[name] = f"{type(error).__name__}: {error}"
    facts = _facts(load)
    print("", *facts, sep="\n")
    for name, message in failed.items():
        print(f"not measured: {name}: {message}", file=sys.stderr)
    if not arguments:
        _PAGE.write_text(page(rows, [*facts, _peers()], failed), encoding="utf-8")
        print(f"wrote {_PAGE}")
    return bool(failed)


def _rows(name: str, cheap: bool) -> Iterable[Row]:
    module = importlib.import_module(f"bench.{name}")
    rows: Iterable[Row] = getattr(module, "cheap", tuple)() if cheap else module.rows()
    return rows


def page(rows: Sequence[Row], facts: Sequence[str], failed: dict[str, str]) -> str:
    """Text of `docs/speed.md`."""
    table = [["#", "what", "to reach", "measured: median (min–max)", "ratio", "reached"], ["---"] * 6]
    table += [row.cells() for row in sorted(rows, key=lambda row: row.number or _GOALS + 1)]
    missing = [str(number) for number in range(1, _GOALS + 1) if number not in {row.number for row in rows}]
    parts = [
        "<!-- Written by `make bench`, on a quiet machine. Rows of several runs are merged manually. -->",
        "# Speed",
        "`make bench` measures the real program. The programs in a row took turns, round after round, on one machine.\n"
        f"*now* is this version, *before* is commit {OLD_COMMIT}. "
        "On another machine, only the ratios can be compared.\n"
        "A ratio compares medians. A row without a number has no target.",
        "\n".join(f"- {fact}" for fact in facts),
        "\n".join(f"| {' | '.join(cells)} |" for cells in table),
        *([f"Numbers without a row in this run: {', '.join(missing)}."] if missing else []),
        *(f"Not measured: `{name}`: {message}" for name, message in failed.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(load_before: str) -> list[str]:
    """Load, processor, and versions of the system, the libraries and this program."""
    old_commit = OLD_COMMIT if older_version() else "not available"
    programs = [f"{name} {version(name)}" for name in ("textual", "paramiko", "pydantic")]
    return [
        f"load average {load_before} before, {_load()} after, on {os.cpu_count()} cores of {_processor()}",
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, {', '.join(programs)}, "
        f"{_first_line(['ssh', '-V'])}",
        f"now: {_first_line(['git', 'describe', '--always', '--dirty'])}; before: {old_commit}",
    ]


def _peers() -> str:
    return "peers: " + ", ".join(
        requirement.replace("==", " ") + ("" if peer_command(name) else " (cannot be installed here)")
        for name, (requirement, _) in PEERS.items()
    )


def _load() -> str:
    return " ".join(f"{load:.1f}" for load in os.getloadavg())


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _first_line(command: Sequence[str]) -> str:
    """First line that a command prints to stdout or stderr."""
    try:
        process = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    except OSError:
        return f"{command[0]} is not installed"
    return (process.stdout.splitlines() or [f"{command[0]} printed nothing"])[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
