"""`recorded_calls`: calls of programs on the cluster, recorded by stand-ins in front of the programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.rig.cluster import Rig


@contextmanager
def recorded_calls(rig: Rig, *programs: str) -> Iterator[Callable[[], list[str]]]:
    """Record calls of programs of /usr/bin during the block; the function returns each as its name and first word."""
    calls = rig.knobs / "calls"
    calls.touch()
    calls.chmod(0o666)  # the operator's programs write there
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
