"""A real ssh-agent for a test, and one that does not sign."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingUnixStreamServer

import paramiko
from paramiko.agent import SSH2_AGENT_IDENTITIES_ANSWER, cSSH2_AGENTC_REQUEST_IDENTITIES

from tests.kit.waiting import until


@contextmanager
def ssh_agent(place: Path, *keys: Path) -> Iterator[Path]:
    """Agent with its socket at `place` and these keys, in this order."""
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


@contextmanager
def silent_agent(place: Path, *keys: paramiko.PKey) -> Iterator[Path]:
    """Agent that has the keys and never signs, like an agent that waits for a touch on a token."""
    listed = paramiko.Message()
    listed.add_byte(bytes([SSH2_AGENT_IDENTITIES_ANSWER]))
    listed.add_int(len(keys))
    for number, key in enumerate(keys, 1):
        listed.add_string(key.asbytes())
        listed.add_string(f"token {number}")

    class Answers(StreamRequestHandler):
        def handle(self) -> None:
            while length := self.rfile.read(4):
                if self.rfile.read(int.from_bytes(length, "big")) == cSSH2_AGENTC_REQUEST_IDENTITIES:
                    self.wfile.write(len(listed.asbytes()).to_bytes(4, "big") + listed.asbytes())

    with ThreadingUnixStreamServer(str(place), Answers) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        try:
            yield place
        finally:
            server.shutdown()


def _listens(place: Path) -> bool:
    """The socket exists a moment before it accepts connections."""
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(place)) == 0
