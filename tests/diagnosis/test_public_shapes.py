"""Ends of logs in the words of the programs: the first cause and its remedy are right, whichever prefix they have."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.watch.failure import LogCauses

SHAPES: dict[str, dict[str, Any]] = tomllib.loads((Path(__file__).parent / "shapes.toml").read_text())
PREFIXES = ("", "3: ", "2026-06-10 23:09:41,942 gpu-07: 17: ")


def with_prefix(prefix: str, log: str) -> bytes:
    return "".join(f"{prefix}{line}\n" for line in log.strip("\n").split("\n")).encode()


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", SHAPES)
def test_the_first_cause_and_its_remedy_are_right(name: str, prefix: str) -> None:
    answer, log = SHAPES[name], LogCauses()
    log.feed(with_prefix(prefix, answer["log"]))
    first = next(iter(log.causes()), None)
    if "what" not in answer:
        assert first is None
        return
    assert first is not None
    assert answer["what"].replace("UNKNOWN", "an error that is not known here") in first.what
    assert answer["fix"] in first.fix if "fix" in answer else not first.fix
