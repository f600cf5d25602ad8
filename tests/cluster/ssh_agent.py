"""A real ssh-agent for a test."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.waiting import until


@contextmanager
def ssh_agent(place: Path, *keys: Path) -> Iterator[Path]:
    """An agent with its socket at `place` that holds the keys, in this order."""
    command = ["ssh-agent", "-D", "-a", str(place)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as agent:
        try:
            until(lambda: _listens(place), "the agent listens")
            for key in keys:
                environment = os.environ | {"SSH_AUTH_SOCK": str(place)}
                subprocess.run(["ssh-add", "-q", str(key)], check=True, stdin=subprocess.DEVNULL, env=environment)
            yield place
        finally:
            agent.terminate()


def _listens(place: Path) -> bool:
    """Its socket is there a moment before it can be connected to."""
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(place)) == 0
