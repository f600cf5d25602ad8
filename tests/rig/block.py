"""`Block`: what one rig has to itself on this machine: a number, a directory and a range of ports.

A rig that was killed leaves its directory behind; whoever takes its number next removes it.
"""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

ROOT = Path("/var/tmp")
"""Below it every user may pass, there is room for a database, and paths stay short enough for Unix sockets."""
FIRST_PORT = 20_000
"""Below the range from which Linux takes the ports of clients."""
PORTS = 40
"""Ports of a block; Slurm's nodes take the most of them."""
BLOCKS = 100


class Block:
    """A claimed block. It is free again when `release` is called, or when this process ends in any way."""

    def __init__(self) -> None:
        for number in range(BLOCKS):
            claim = socket.socket(socket.AF_UNIX)
            try:
                claim.bind(f"\0llmb-rig-{number}")  # abstract: leaves no file, and the kernel takes it back
            except OSError:
                claim.close()
                continue
            self._claim = claim
            self.number = number
            self.directory = ROOT / f"llmb-rig-{number}"
            first = FIRST_PORT + number * PORTS
            self._ports = iter([port for port in range(first, first + PORTS) if _is_free(port)])
            self._remove_directory()
            self.directory.mkdir(mode=0o755)
            self.directory.chmod(0o755)
            return
        raise RuntimeError(f"{BLOCKS} rigs are running on this machine")

    def port(self) -> int:
        """A port of 127.0.0.1 that nobody listens on."""
        return next(self._ports)

    def release(self) -> None:
        """Remove the directory and let the next rig have the number."""
        self._remove_directory()
        self._claim.close()

    def _remove_directory(self) -> None:
        """Python itself takes long for the hundred thousand files of many environments."""
        subprocess.run(["rm", "-rf", str(self.directory)], check=False)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
