"""`Server`: SSH server of the simulated login node, for one user with one key, commands only."""

from __future__ import annotations

import logging
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    MSG_CHANNEL_REQUEST,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_FAILED_CONNECT_FAILED,
    OPEN_SUCCEEDED,
)

from llmb_tui.demo.exec_channel import ExecChannel

HOST = "127.0.0.1"
MAX_SESSIONS = 10
"""Channels per connection, OpenSSH's default."""
STOP_S = 1.0
LOOK_S = 0.1
"""Interval in which the listener notices a stop, seconds."""
_LOG = "llmb_tui.demo.ssh"

# Broken connections are normal for this server; its log does not belong on the screen.
logging.getLogger(_LOG).addHandler(logging.NullHandler())
logging.getLogger(_LOG).propagate = False


@dataclass(frozen=True)
class Account:
    """User of the login node, with the environment of their commands."""

    name: str
    key: paramiko.PKey
    home: Path
    environment: Mapping[str, str]
    banner: str


class _Listener(socketserver.TCPServer):
    """Passes each new connection to `accept`, and leaves it open."""

    allow_reuse_address = True
    request_queue_size = 16

    def __init__(self, port: int, accept: Callable[[socket.socket], None]) -> None:
        super().__init__((HOST, port), socketserver.BaseRequestHandler)
        self._accept = accept

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class's signature
        with suppress(OSError, paramiko.SSHException):  # the client has left already
            self._accept(request)


class Server:
    """Listens on a free loopback port from `start` to `stop`."""

    def __init__(self, host_key: paramiko.PKey, account: Account) -> None:
        self._host_key = host_key
        self._account = account
        self._guard = threading.Lock()
        self._connections: list[_Connection] = []
        self._listener = _Listener(0, self._welcome)
        self.port: int = self._listener.server_address[1]
        self._thread = threading.Thread()

    def start(self) -> None:
        """Start accepting connections."""
        listen = self._listener.serve_forever
        self._thread = threading.Thread(target=listen, args=(LOOK_S,), name="demo-ssh", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End all connections, their commands and all threads."""
        self.refuse(True)
        for connection in self._connections:
            connection.end()
        for connection in self._connections:
            connection.join()

    def drop_connections(self) -> None:
        """Cut every connection without a message."""
        with self._guard:
            for connection in self._connections:
                connection.cut()

    def refuse(self, refused: bool) -> None:
        """Refuse new connections, or accept them again. Existing connections stay."""
        listens = self._thread.is_alive()
        if not refused and not listens:
            self._listener = _Listener(self.port, self._welcome)
            self.start()
        elif refused and listens:
            self._listener.shutdown()
            self._listener.server_close()
            self._thread.join()

    def _welcome(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = _Connection(client, self._host_key, self._account)
        with self._guard:
            self._connections = [known for known in self._connections if known.tidy()]
            self._connections.append(connection)


class _Connection(paramiko.ServerInterface):
    """One client's login and commands."""

    def __init__(self, client: socket.socket, host_key: paramiko.PKey, account: Account) -> None:
        self._account = account
        self._socket = client
        self._waiting: dict[int, ExecChannel] = {}
        self._commands: list[ExecChannel] = []
        self._channels: list[paramiko.Channel] = []
        self._tidying = threading.Lock()
        self._transport = AnsweringTransport(client, self.start_waiting)
        self._transport.set_log_channel(_LOG)
        self._transport.add_server_key(host_key)
        self._transport.start_server(event=threading.Event(), server=self)

    def tidy(self) -> bool:
        """Forget ended commands and channels; False if the connection has ended, too."""
        with self._tidying:
            self._commands = [command for command in self._commands if command.is_alive()]
            # The transport keeps a channel until it is accepted, and afterwards nothing refers to it: paramiko would
            # collect a channel whose command has not arrived yet.
            while channel := self._transport.accept(0):
                self._channels.append(channel)
            self._channels = [channel for channel in self._channels if not channel.closed]
            return self._transport.is_active() or bool(self._commands)

    def cut(self) -> None:
        """Close the socket with a reset."""
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._socket.close()

    def end(self) -> None:
        for command in self._commands:
            command.stop()
        self._transport.close()

    def join(self) -> None:
        self._transport.join(STOP_S)
        for command in self._commands:
            command.join(STOP_S)

    def start_waiting(self, channel: paramiko.Channel) -> None:
        """Start the command that waits for the channel, if there is one."""
        self.tidy()
        command = self._waiting.pop(channel.chanid, None)
        if command:
            with self._tidying:
                self._commands.append(command)
                command.start()

    def get_allowed_auths(self, _username: str) -> str:
        """Public keys only."""
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        known = username == self._account.name and key == self._account.key
        return AUTH_SUCCESSFUL if known else AUTH_FAILED

    def get_banner(self) -> tuple[str, str]:
        return self._account.banner, "en-GB"

    def check_channel_request(self, kind: str, _chanid: int) -> int:
        """Accept sessions only, at most as many as OpenSSH."""
        if kind != "session":
            return OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED
        busy = sum(command.is_alive() for command in self._commands) + len(self._waiting)
        return OPEN_SUCCEEDED if busy < MAX_SESSIONS else OPEN_FAILED_CONNECT_FAILED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        """Accept a command; it starts after the client was informed."""
        self._waiting[channel.chanid] = ExecChannel(channel, command, self._account.home, self._account.environment)
        return True


class AnsweringTransport(paramiko.Transport):
    """Calls `answered` after a request on a channel was answered.

    A command that starts earlier, while the request is handled, may end before the client learns that it began.
    """

    def __init__(self, client: socket.socket, answered: Callable[[paramiko.Channel], None]) -> None:
        super().__init__(client)

        handlers: dict[int, Callable[[paramiko.Channel, paramiko.Message], None]]
        handlers = vars(paramiko.Transport)["_channel_handler_table"]

        def answer(channel: paramiko.Channel, message: paramiko.Message) -> None:
            handlers[MSG_CHANNEL_REQUEST](channel, message)
            answered(channel)

        self._channel_handler_table = {**handlers, MSG_CHANNEL_REQUEST: answer}
