"""`check`: output of `pretrain.py --check` for many launch files with one version of NeMo, in one process."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llmb_tui.cluster.remote_text import remote_text
from tests.nemo import environment

REFUSED = 3
_HEAD = re.compile(r"^NeMo (?P<version>\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Checked:
    """Output for one file."""

    fields: dict[str, str]
    """Text of each value by its path, in the printed order; empty if the file was refused."""
    refusal: str | None
    """Reason for the refusal, without the file's name."""


def check(version: str, launches: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, Checked]:
    """Check launch files, which are given by name, in the empty `folder`, to which the shipped script is added."""
    paths = [folder / f"{number}.json" for number in range(len(launches))]
    for path, launch in zip(paths, launches.values(), strict=True):
        path.write_text(json.dumps(launch))
    done = start(version, folder, "--check", *map(str, paths))
    refusals = {
        path: line.partition(": ")[2]
        for path in paths
        for line in done.stderr.splitlines()
        if line.startswith(f"pretrain.py {path}: ")
    }
    assert done.returncode == (REFUSED if refusals else 0), done.stderr
    blocks = iter(_blocks(done.stdout, version))
    answers = [Checked({}, refusals[path]) if path in refusals else Checked(next(blocks), None) for path in paths]
    assert next(blocks, None) is None
    return dict(zip(launches, answers, strict=True))


def start(version: str, folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the shipped script, as a separate file, with that NeMo; `variables` are added to its environment."""
    script = folder / "pretrain.py"
    script.write_text(remote_text("pretrain.py"))
    python, clean = environment.command(version)
    command = [*python, str(script), *arguments]
    return subprocess.run(command, env=clean | variables, capture_output=True, text=True, check=False, cwd=folder)


def _blocks(text: str, version: str) -> list[dict[str, str]]:
    heads = list(_HEAD.finditer(text))
    assert {head["version"] for head in heads} <= {version}
    ends = [head.start() for head in heads[1:]] + [len(text)]
    blocks = [text[head.end() : end].splitlines() for head, end in zip(heads, ends, strict=True)]
    return [dict(line.split(" = ", 1) for line in block if " = " in line) for block in blocks]
