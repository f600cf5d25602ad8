"""`LocalConnection`: the link for a program that runs on the login node itself, without SSH."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import IO

from llmb_tui.cluster.failures import DeadlineError, DisconnectedError
from llmb_tui.cluster.link import LONGEST_ANSWER, Completed, Link, Pulse, Stream, answer_too_long, command_name
from llmb_tui.language.text import clean
from llmb_tui.store.paths import home

_CHUNK = 1 << 20
# About the variables that sshd sets. sbatch passes on its whole environment, and no run may depend on what the user has
# exported in a terminal.
_OF_A_LOGIN = re.compile(
    "HOME|USER|LOGNAME|SHELL|PATH|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|TMPDIR|KRB5CCNAME|XDG_RUNTIME_DIR|SLURM_CONF|"
    "SSL_CERT_FILE|SSL_CERT_DIR|(?i:(?:https?|ftp|all|no)_proxy)"
)
# Longest time until a waiting command notices `close`, and longest wait for the end of a killed command.
_LOOK_EVERY_S = 0.2
# Exit codes of a shell for a program that does not exist, and for one that cannot be run.
_NOT_FOUND, _NOT_RUN = "127", "126"


class LocalConnection(Link):
    """Commands as processes of this machine. Each has its own session, which the terminal's Ctrl-C does not reach."""

    def __init__(self, host: str) -> None:
        self.host = clean(host)
        self._closed = threading.Event()
        self.streams: set[_LocalStream] = set()
        """Open streams."""

    @property
    def alive(self) -> bool:
        """True until it is closed."""
        return not self._closed.is_set()

    @property
    def pulse(self) -> Pulse:
        """Default values: this link cannot fall silent."""
        return Pulse()

    def close(self) -> None:
        """End the streams, and all waiting for commands; the commands may continue."""
        self._closed.set()
        for stream in tuple(self.streams):
            stream.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        deadline_s: float = 20.0,
        only_looks: bool = False,  # noqa: ARG002 - this link has only one way
    ) -> Completed:
        """Run a command, as `Link.run`. After the deadline the command is killed, and all processes that it started."""
        ends = time.monotonic() + deadline_s
        process = self._start(argv)
        _feed(process, stdin)
        outputs = {_pipe(process.stdout): bytearray(), _pipe(process.stderr): bytearray()}
        with selectors.DefaultSelector() as selector:
            for pipe, output in outputs.items():
                selector.register(pipe, selectors.EVENT_READ, output)
            while selector.get_map() or not _has_ended(process, ends):
                for key, _ in selector.select(_look_s(ends)) if selector.get_map() else ():
                    if data := os.read(key.fd, _CHUNK):
                        key.data.extend(data)
                    else:
                        selector.unregister(key.fileobj)
                if self._closed.is_set():
                    raise self.closed_here(may_have_run=True)
                if any(len(output) > LONGEST_ANSWER for output in outputs.values()):
                    _end(process)
                    raise answer_too_long(argv, self.host)
                if time.monotonic() >= ends:
                    _end(process)
                    raise self._deadline_passed(argv)
        _close_pipes(process)
        stdout, stderr = (output.decode(errors="replace") for output in outputs.values())
        return Completed(max(process.returncode, -1), stdout, stderr)

    def stream(self, argv: Sequence[str]) -> Stream:
        """Start a command and return the stream of its output, as `Link.stream`."""
        stream = _LocalStream(self, self._start(argv))
        self.streams.add(stream)
        return stream

    def closed_here(self, *, may_have_run: bool) -> DisconnectedError:
        """Make the error for the use of a closed connection."""
        return DisconnectedError(
            f"The connection to {self.host} was closed by this program.", may_have_run=may_have_run
        )

    def _start(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a process. If that fails, start one that reports the error as a shell would."""
        if self._closed.is_set():
            raise self.closed_here(may_have_run=False)
        try:
            return _popen(argv)
        except OSError as error:
            exit_code = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUN
            words = f"{argv[0]}: {error.strerror}"
            return _popen(["sh", "-c", 'printf "%s\\n" "$1" >&2; exit "$2"', "sh", words, exit_code])

    def _deadline_passed(self, argv: Sequence[str]) -> DeadlineError:
        return DeadlineError(
            f"No answer in time from {command_name(argv)} on {self.host}.",
            "The login node is busy, or the command hangs. The command was ended.",
            "Try again later, or look at the login node in another terminal.",
        )


class _LocalStream(Stream):
    """A `Stream` over the pipes of one process."""

    def __init__(self, connection: LocalConnection, process: subprocess.Popen[bytes]) -> None:
        super().__init__()
        self._connection = connection
        self._process = process
        self._output, self._stderr = _pipe(process.stdout).fileno(), _pipe(process.stderr).fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)
        self._reading = threading.Lock()

    def read(self, timeout_s: float) -> bytes | None:
        ends = time.monotonic() + timeout_s
        with self._reading:
            data = b"" if self._is_closed else self._next(ends)
        if not data and data is not None and not self._connection.alive:
            raise self._connection.closed_here(may_have_run=True)
        return data

    def send_keepalive(self) -> None:
        with contextlib.suppress(OSError), self._reading:
            if not self._is_closed:
                os.write(_pipe(self._process.stdin).fileno(), b"\n")

    def _end(self) -> None:
        self._connection.streams.discard(self)
        _kill(self._process)  # this ends a waiting read
        with self._reading:
            self._selector.close()
            _end(self._process)

    def _next(self, ends: float) -> bytes | None:
        while True:
            ready = self._ready(ends)
            if self._stderr in ready:
                self._read_errors()
            if self._output in ready:
                data = os.read(self._output, _CHUNK)
                while not data and self._stderr in self._ready(0.0):
                    self._read_errors()
                return data
            if time.monotonic() >= ends:
                return None

    def _ready(self, ends: float) -> set[int]:
        return {key.fd for key, _ in self._selector.select(max(0.0, ends - time.monotonic()))}

    def _read_errors(self) -> None:
        data = os.read(self._stderr, _CHUNK)
        if not data:
            self._selector.unregister(self._stderr)
        self._keep_errors(data)


def _popen(argv: Sequence[str]) -> subprocess.Popen[bytes]:
    folder = home()
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder if folder and folder.is_dir() else "/",  # as sshd does it
        env={name: value for name, value in os.environ.items() if _OF_A_LOGIN.fullmatch(name)},
        start_new_session=True,
    )


def _feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    """Write a command's stdin in a thread, while its output is read: after a timeout `communicate` drops the rest."""
    pipe, process.stdin = _pipe(process.stdin), None

    def write() -> None:
        with contextlib.suppress(OSError), pipe:  # the command may have ended
            pipe.write(data)

    threading.Thread(target=write, name="local-stdin", daemon=True).start()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that has not been waited for, and the other processes of its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses if all of them have ended
        os.killpg(process.pid, signal.SIGKILL)


def _look_s(ends: float) -> float:
    return min(_LOOK_EVERY_S, max(0.0, ends - time.monotonic()))


def _has_ended(process: subprocess.Popen[bytes], ends: float) -> bool:
    """Wait shortly for the end of a process that has closed its outputs; True if it ended."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_look_s(ends))
    return process.returncode is not None


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and close its pipes, even if another process still holds their other ends."""
    _kill(process)
    _close_pipes(process)
    with contextlib.suppress(subprocess.TimeoutExpired):  # it may hang in the kernel, on a file system
        process.wait(_LOOK_EVERY_S)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # noqa: S101 - for the type checker: `_popen` opens all pipes
    return pipe
