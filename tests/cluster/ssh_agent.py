"""A real ssh-agent for a test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.waiting import until


@contextmanager
def ssh_agent(socket: Path, *keys: Path) -> Iterator[Path]:
    """An agent at `socket` that holds the keys, in this order."""
    command = ["ssh-agent", "-D", "-a", str(socket)]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as agent:
        try:
            until(socket.exists)
            for key in keys:
                environment = os.environ | {"SSH_AUTH_SOCK": str(socket)}
                subprocess.run(["ssh-add", "-q", str(key)], check=True, stdin=subprocess.DEVNULL, env=environment)
            yield socket
        finally:
            agent.terminate()
