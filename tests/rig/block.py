"""`Block`: the resources of one rig on this machine: a number, a directory and a range of ports.

A killed rig leaves its directory behind; the next rig with the same number removes it.
"""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

ROOT = Path("/var/tmp")
"""Parent of the rigs' directories: open to every user, large enough for a database, short enough for Unix sockets."""
FIRST_PORT = 20_000
"""First port of all blocks, below the range from which Linux assigns ports to clients."""
PORTS = 40
"""Number of ports of a block; Slurm's nodes use most of them."""
BLOCKS = 100


class Block:
    """A claimed block. It becomes free when `release` is called, or when this process ends in any way."""

    def __init__(self) -> None:
        for number in range(BLOCKS):
            claim = socket.socket(socket.AF_UNIX)
            try:
                claim.bind(f"\0llmb-rig-{number}")  # abstract: creates no file, and the kernel releases it
            except OSError:
                claim.close()
                continue
            self._claim = claim
            self.number = number
            self.directory = ROOT / f"llmb-rig-{number}"
            first_port = FIRST_PORT + number * PORTS
            self._ports = iter([port for port in range(first_port, first_port + PORTS) if _is_free(port)])
            self._remove_directory()
            self.directory.mkdir(mode=0o755)
            self.directory.chmod(0o755)
            return
        raise RuntimeError(f"{BLOCKS} rigs are running on this machine")

    def port(self) -> int:
        """A port of 127.0.0.1 without a listener."""
        return next(self._ports)

    def release(self) -> None:
        """Remove the directory and release the number."""
        self._remove_directory()
        self._claim.close()

    def _remove_directory(self) -> None:
        """Remove the directory with rm: Python takes long for the hundred thousand files of many environments."""
        subprocess.run(["rm", "-rf", str(self.directory)], check=False)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
