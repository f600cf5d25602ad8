"""`ExecChannel`: one command on one SSH channel, a real process whose three streams are the channel's."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, cast

import paramiko

CHUNK = 65536
LOOK_S = 0.1
"""Interval in which the loop checks events without a file descriptor: the command's end, a closed channel."""
HANG_UP_S = 0.3
"""Seconds from SIGHUP to SIGKILL."""


class ExecChannel(threading.Thread):
    """Runs a command as `sshd` does, in its own thread, until the channel is closed.

    If the client closes the channel first, the command's process group gets SIGHUP and the command itself SIGKILL;
    processes that it started with `setsid` or `nohup` live on. The exit status is sent when the command ends; the
    channel is closed when its output has ended, too, which may be later.
    """

    def __init__(self, channel: paramiko.Channel, command: bytes, home: Path, environment: Mapping[str, str]) -> None:
        super().__init__(name="demo-exec", daemon=True)
        self._channel = channel
        self._command = os.fsdecode(command)
        self._home = home
        self._environment = dict(environment)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the command; the thread ends soon after."""
        self._stopped.set()

    def run(self) -> None:
        """The thread's work."""
        # The connection may break, or the process may not start.
        with suppress(OSError, EOFError, paramiko.SSHException), closing(self._channel), self._process() as process:
            try:
                self._serve(process)
            finally:
                _hang_up(process)

    def _process(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["/bin/sh", "-c", self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=self._home,
            env=self._environment,
            start_new_session=True,
        )

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        pipes = cast("tuple[IO[bytes], IO[bytes], IO[bytes]]", (process.stdin, process.stdout, process.stderr))
        streams = _Streams(self._channel, *pipes)
        has_ended = False
        while not (self._stopped.is_set() or self._channel.closed):
            if not has_ended and process.poll() is not None:
                has_ended = True
                if process.returncode >= 0:  # sshd sends no exit status after a signal
                    self._channel.send_exit_status(process.returncode)
            if has_ended and streams.ended:
                return
            if streams.ended:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_S)
            else:
                streams.move()


class _Streams:
    """Data in transit between a channel and the pipes of a process."""

    def __init__(self, channel: paramiko.Channel, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self._channel = channel
        self._stdin = stdin
        os.set_blocking(stdin.fileno(), False)
        self._input = b""
        self._input_ended = False
        self._send = {stdout: channel.sendall, stderr: channel.sendall_stderr}

    @property
    def ended(self) -> bool:
        """True if the process can write nothing more and all its output was sent."""
        return not self._send

    def move(self) -> None:
        """Wait a moment for data, and pass it on in all directions."""
        reads: list[IO[bytes] | paramiko.Channel] = [*self._send]
        if not self._input and not self._input_ended:
            reads.append(self._channel)
        readable, writable, _ = select.select(reads, [self._stdin] if self._input else [], [], LOOK_S)
        for pipe in self._send.keys() & readable:
            if data := os.read(pipe.fileno(), CHUNK):
                self._send[pipe](data)
            else:
                del self._send[pipe]
        if self._channel in readable:
            self._read_input()
        if writable:
            self._write_input()

    def _read_input(self) -> None:
        if self._channel.recv_ready():
            self._input = self._channel.recv(CHUNK)
        elif self._channel.eof_received:
            self._input_ended = True
            self._stdin.close()
        if self._stdin.closed:
            self._input = b""

    def _write_input(self) -> None:
        try:
            self._input = self._input[os.write(self._stdin.fileno(), self._input) :]
        except BrokenPipeError:  # the process does not read; further input is discarded
            self._stdin.close()
            self._input = b""


def _hang_up(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGHUP)
    try:
        process.wait(HANG_UP_S)
    except subprocess.TimeoutExpired:
        process.kill()
