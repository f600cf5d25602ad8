"""`recorded_calls`: a record of program calls on the cluster, made by wrappers around the programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.rig.cluster import Rig


@contextmanager
def recorded_calls(rig: Rig, *programs: str) -> Iterator[Callable[[], list[str]]]:
    """Record calls of programs in /usr/bin within the block; the function returns name and first word of each call."""
    calls = rig.knobs / "calls"
    calls.touch()
    calls.chmod(0o666)  # the operator's processes write to the file
    stand_ins = {name: rig.directory / "bin" / name for name in programs}
    for name, path in stand_ins.items():
        path.write_text(f'#!/bin/sh\necho {name} "$1" >>/run/rig/calls\nexec /usr/bin/{name} "$@"\n')
        path.chmod(0o755)
    try:
        yield lambda: calls.read_text().splitlines()
    finally:
        for path in stand_ins.values():
            path.unlink()
        calls.unlink()
