"""Which programs run on the cluster, noted by stand-ins in front of them: what each would wait for can be counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.rig.cluster import Rig


@contextmanager
def calls_noted(rig: Rig, *programs: str) -> Iterator[Callable[[], list[str]]]:
    """Within the block programs of /usr/bin note when they begin; gives the calls so far: a name and its first word."""
    notes = rig.knobs / "calls"
    notes.touch()
    notes.chmod(0o666)  # the operator's programs write there
    stand_ins = {name: rig.directory / "bin" / name for name in programs}
    for name, path in stand_ins.items():
        path.write_text(f'#!/bin/sh\necho {name} "$1" >>/run/rig/calls\nexec /usr/bin/{name} "$@"\n')
        path.chmod(0o755)
    try:
        yield lambda: notes.read_text().splitlines()
    finally:
        for path in stand_ins.values():
            path.unlink()
        notes.unlink()
