"""Pseudo-terminal that runs a program, sends it keys and reads its output."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGESIZE")


class Terminal:
    """A program in a pseudo-terminal of 120 columns and 40 lines."""

    def __init__(self, argv: list[str], environment: Mapping[str, str], columns: int = 120, lines: int = 40) -> None:
        self._began = time.perf_counter()
        self.painted = 0
        """Bytes that the program has painted."""
        self._newest = b""
        self._pid, self._fd = pty.fork()
        if not self._pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.chdir("/")  # so that PYTHONPATH, not the working directory, selects the version
            os.execve(argv[0], argv, {**os.environ, "TERM": "xterm-256color", **environment})

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._fd)

    @property
    def cpu_s(self) -> float:
        """CPU seconds that the program has used."""
        with open(f"/proc/{self._pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def memory_mb(self) -> float:
        """Resident memory of the program, MB."""
        with open(f"/proc/{self._pid}/statm") as pages:
            return int(pages.read().split()[1]) * _PAGE / 1e6

    def type(self, key: bytes) -> None:
        self._newest = b""
        os.write(self._fd, key)

    def read(self, timeout_s: float) -> bool:
        """Read the program's next output. Return False if there is none within this time."""
        if not select.select([self._fd], [], [], timeout_s)[0]:
            return False
        data = os.read(self._fd, 1 << 16)
        self.painted += len(data)
        self._newest = (self._newest + data)[-(1 << 16) :]
        return True

    def wait_for(self, text: str, limit_s: float = 60.0) -> float:
        """Read until this text is painted after the last key; return the seconds since the start of the program."""
        deadline = time.perf_counter() + limit_s
        while text.encode() not in self._newest:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{text!r} is not on the screen: {self._newest[-500:]!r}")
            self.read(0.05)
        return time.perf_counter() - self._began

    def settle(self, quiet_s: float, limit_s: float = 10.0) -> float:
        """Read until nothing is painted for `quiet_s`, or until the limit; return the seconds to the last byte."""
        started_at = last = time.perf_counter()
        while last - started_at < limit_s and self.read(quiet_s):
            last = time.perf_counter()
        return last - started_at

    def watch(self, seconds: float) -> float:
        """Read the output for this time without typing; return the CPU usage in that time, % of a core."""
        cpu_before, started_at = self.cpu_s, time.perf_counter()
        while (elapsed := time.perf_counter() - started_at) < seconds:
            self.read(min(0.1, seconds - elapsed))
        return (self.cpu_s - cpu_before) / (time.perf_counter() - started_at) * 100
