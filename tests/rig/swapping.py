"""`swapping`: another member of the group, who swaps names for links as fast as possible, as a real user of a rig."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.kit.waiting import until
from tests.rig.cluster import Rig
from tests.rig.machine import OPERATOR_GROUP

MEMBER = "games"
"""A user of Debian; on the rig a member of the operator's group."""

# Exchanges each NAME with a link next to it that leads to TARGET; with renameat2 and RENAME_EXCHANGE one of them always
# exists. The link is in place for the shorter time, so that most of the attempts under test get somewhere.
_SWAP = """
import contextlib, ctypes, os, random, sys, time
libc = ctypes.CDLL(None)
stop, target, *names = sys.argv[1:]
links = [os.path.join(os.path.dirname(name), f".link-{os.path.basename(name)}") for name in names]
for link in links:
    with contextlib.suppress(OSError):
        os.symlink(target, link)
swaps = 0
while swaps % 20 or not os.path.exists(stop):
    swaps += 1
    name, link = random.choice(list(zip(names, links)))
    for longest_s in (0.0005, 0.003):
        libc.renameat2(-100, os.fsencode(name), -100, os.fsencode(link), 2)
        time.sleep(random.random() * longest_s)
    if not os.path.islink(link):
        with contextlib.suppress(OSError):
            os.rename(link, f"{link}-{swaps}")
        with contextlib.suppress(OSError):
            os.symlink(target, link)
    if swaps == 20:
        print("swaps", flush=True)
"""


def as_member(rig: Rig, line: str) -> None:
    """Run a line of sh as the other member."""
    rig.as_root([*_become(), "sh", "-c", f"umask 002; {line}"], check=True)


@contextmanager
def swapping(rig: Rig, stop: Path, target: Path, names: Sequence[Path]) -> Iterator[None]:
    """Exchange the names with links to `target` continuously within the block. `stop` must not exist yet."""
    argv = [*_become(), "/usr/bin/python3", "-c", _SWAP, str(stop), str(target), *map(str, names)]
    process = rig.machine.popen(argv, output=subprocess.PIPE)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"swaps\n"
        yield
    finally:
        stop.touch()
        until(lambda: process.poll() is not None, "the other member has stopped")
        process.stdout.close()


def _become() -> list[str]:
    return ["setpriv", f"--reuid={MEMBER}", f"--regid={OPERATOR_GROUP}", "--clear-groups"]
