"""`python -m bench [NAME…]`: prints the rows of all modules of this directory, or of those named.

All together are written to `docs/speed.md` as well. `--cheap` prints what takes seconds and needs no terminal and no
network.
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

from bench._others import HERE, OLDER, PEERS, before, peer
from bench._rounds import Row

_PAGE = Path(HERE) / "docs" / "speed.md"
_GOALS = 20


def main(arguments: list[str]) -> int:
    """A module that fails is told at the end, and the others are measured all the same."""
    cheap = arguments == ["--cheap"]
    found = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    every = [name for name in found if not name.startswith("_")]
    load, rows, failed = _load(), list[Row](), dict[str, str]()
    for name in every if cheap or not arguments else arguments:
        try:
            for row in _rows(name, cheap):
                rows.append(row)
                print(row, flush=True)
        except Exception as error:  # noqa: BLE001 - an hour of measuring is not lost for one fault
            failed[name] = f"{type(error).__name__}: {error}"
    facts = _facts(load)
    print("", *facts, sep="\n")
    for name, fault in failed.items():
        print(f"not measured: {name}: {fault}", file=sys.stderr)
    if not arguments:
        _PAGE.write_text(page(rows, [*facts, _peers()], failed), encoding="utf-8")
        print(f"written: {_PAGE}")
    return bool(failed)


def _rows(name: str, cheap: bool) -> Iterable[Row]:
    module = importlib.import_module(f"bench.{name}")
    found: Iterable[Row] = getattr(module, "cheap", tuple)() if cheap else module.rows()
    return found


def page(rows: Sequence[Row], facts: Sequence[str], failed: dict[str, str]) -> str:
    """The document."""
    table = [["#", "what", "to reach", "measured: median (min–max)", "ratio", "reached"], ["---"] * 6]
    table += [row.cells() for row in sorted(rows, key=lambda row: row.number or _GOALS + 1)]
    missing = [str(number) for number in range(1, _GOALS + 1) if number not in {row.number for row in rows}]
    parts = [
        "<!-- Written by `make bench`, on a quiet machine. Rows of several runs are merged manually. -->",
        "# Speed",
        "`make bench` measures the real program. The programs in a row took turns, round after round, on one machine.\n"
        f"*now* is this version, *before* is commit {OLDER}. On another machine, only the ratios can be compared.\n"
        "A ratio compares medians. A row without a number has no target.",
        "\n".join(f"- {fact}" for fact in facts),
        "\n".join(f"| {' | '.join(cells)} |" for cells in table),
        *([f"Numbers without a row in this run: {', '.join(missing)}."] if missing else []),
        *(f"Not measured: `{name}`: {fault}" for name, fault in failed.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _facts(load_before: str) -> list[str]:
    """On which machine, at which load, with what."""
    programs = [f"{name} {version(name)}" for name in ("textual", "paramiko", "pydantic")]
    return [
        f"load average {load_before} before, {_load()} after, on {os.cpu_count()} cores of {_processor()}",
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, {', '.join(programs)}, "
        f"{_first_line(['ssh', '-V'])}",
        f"now: {_first_line(['git', 'describe', '--always', '--dirty'])}; before: {OLDER if before() else 'not here'}",
    ]


def _peers() -> str:
    return "peers: " + ", ".join(
        wanted.replace("==", " ") + ("" if peer(name) else " (cannot be installed here)")
        for name, (wanted, _) in PEERS.items()
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
    """What a command says, on whichever of its two outputs."""
    try:
        done = subprocess.run(
            command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    except OSError:
        return f"no {command[0]}"
    return (done.stdout.splitlines() or [f"{command[0]} does not say"])[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
