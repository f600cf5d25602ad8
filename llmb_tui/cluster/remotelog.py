"""`RemoteLog`: a growing file on the cluster: its identity, and its bytes from an offset.

One remote command reads both. It prints the identity of the file first, so that no bytes of another file are taken, and
then the bytes after the offset. It reads a long gap from the descriptor that was open before the proof, so that the
file cannot be replaced in between. Each later piece is its own proof, because it begins with known bytes. The command
polls the file, ten times a second if nothing comes: on a shared file system the kernel does not report what other nodes
write.

The remote command does not outlive its reader: it ends at the end of its stdin. If the line is silent and the server
has not noticed, the command ends because the reader's keepalives are missing; without Perl, `timeout` ends it.
"""

from __future__ import annotations

import re
import sys
import time
import zlib
from typing import TYPE_CHECKING, Protocol

from llmb_tui.cluster.bandwidth import Limit, LimitedStream
from llmb_tui.cluster.failures import DeadlineError
from llmb_tui.cluster.remote_file import DamagedDataError, Proof, Sample, UnreadableFileError
from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.language.redact import server_words
from llmb_tui.language.text import clean_line

if TYPE_CHECKING:
    from llmb_tui.cluster.job_log import JobLog
    from llmb_tui.cluster.link import Stream
    from llmb_tui.cluster.session import Session

LEASE_S = 90
"""Longest lifetime of the remote command, seconds."""

SILENCE_S = 8
"""The remote command ends after so many seconds without a keepalive of its reader."""
KEEPALIVE_EVERY_S = 2.0
"""Interval of keepalives, seconds."""
HEADER_WITHIN_S = 20.0
"""Deadline of the remote command's first line, seconds."""
_MOST = 1 << 20
_GAP_TO_COMPRESS = 4 << 20
NEAR_S = 0.003
"""Round trip within a building, seconds: there plain bytes arrive sooner than gzip compresses them. zstd is faster than
any line."""
_OVERLAP = 1 << 10
_MOST_IN_FRAME = 1 << 18
_LONGEST_HEAD = 16

_HEADER = re.compile(rb"^llmb-log (?:missing|(\d+) (\d+) (\d+) (\d+) (plain|gzip|zstd))\n", re.MULTILINE)
_LONGEST_HEADER = 1 << 16
_FRAME_END = b"-\n"

# `timeout` ends all processes that it started. Its arguments are a script and the arguments of the script.
_LEASE = 'if command -v timeout > /dev/null; then exec timeout "$0" sh -c "$@"; fi; exec sh -c "$@"'


class _Unpacker(Protocol):
    """Interface of the standard library's decompressors, except zlib's."""

    @property
    def needs_input(self) -> bool: ...

    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class _Gunzip:
    """Adapter of zlib's decompressor to that interface."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)

    @property
    def needs_input(self) -> bool:
        return not self._inflate.unconsumed_tail

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)


class Tail:
    """A `FileTail` that reads through a login node."""

    def __init__(self, stream: Stream, path: str, known: bytes) -> None:
        """`known`: the bytes before the offset."""
        self._stream = stream
        self._path = path
        self._known = known[-_OVERLAP:]
        self._unpacker: _Unpacker | None = None
        self._damaged: type[Exception] = zlib.error
        self._rest = b""
        self._keepalive_at = 0.0
        self.changed = False
        self.proof: Proof | None = None

    @property
    def fills_gap(self) -> bool:
        """True while a long gap is read; see `FileTail.fills_gap`."""
        return self._unpacker is not None

    def begin(self, sample: Sample) -> None:
        """Read the identity of the file. Raises DeadlineError, DisconnectedError, UnreadableFileError."""
        ends = time.monotonic() + HEADER_WITHIN_S
        header = b""
        while (match := _HEADER.search(header)) is None:
            if len(header) > _LONGEST_HEADER:
                raise _unreadable(self._path, self._stream.stderr)
            data = self._stream.read(max(0.0, ends - time.monotonic()))
            if data is None:
                raise DeadlineError(
                    f"The log {clean_line(self._path)} cannot be read.",
                    "The login node or its file system does not answer.",
                    "The program tries again.",
                )
            if not data:
                raise _unreadable(self._path, self._stream.stderr)
            header += data
        self.proof = _proof(match, sample, self._path, self._stream.stderr)
        self._rest = header[match.end() :]
        if match[5] == b"gzip":
            self._unpacker = _Gunzip()
        elif match[5] == b"zstd":
            if sys.version_info >= (3, 14):
                from compression import zstd  # noqa: PLC0415 - a short log needs none
            else:
                from backports import zstd  # noqa: PLC0415 - a short log needs none
            self._unpacker, self._damaged = zstd.ZstdDecompressor(), zstd.ZstdError

    def read(self, timeout_s: float) -> bytes | None:
        """The next bytes, as `FileTail.read`."""
        if time.monotonic() >= self._keepalive_at:
            self._stream.send_keepalive()
            self._keepalive_at = time.monotonic() + KEEPALIVE_EVERY_S
        if self._unpacker is not None:
            return self._read_gap(self._unpacker, timeout_s)
        ends = time.monotonic() + timeout_s
        while (data := self._next_frame()) is None:
            more = self._stream.read(max(0.0, ends - time.monotonic()))
            if not more:
                return more
            self._rest += more
        return data

    def close(self) -> None:
        """Close the stream, which ends the remote command."""
        self._stream.close()

    def _next_frame(self) -> bytes | None:
        """New bytes of the next frame; None while the frame is incomplete, b"" if it is not of the same log."""
        head, newline, rest = self._rest.partition(b"\n")
        if not newline and len(head) < _LONGEST_HEAD:
            return None
        length = int(head[1:]) if head[:1] == b"+" and head[1:].isdigit() else -1
        if 0 <= length > len(rest) - len(_FRAME_END):
            return None
        body, self._rest = rest[: max(0, length)], rest[length + len(_FRAME_END) :]
        if length < 0 or rest[length : length + len(_FRAME_END)] != _FRAME_END or not body.startswith(self._known):
            self.changed = True
            return b""
        data = body[len(self._known) :]
        self._known = body[-_OVERLAP:]
        return data

    def _read_gap(self, unpacker: _Unpacker, timeout_s: float) -> bytes | None:
        packed = b""
        if unpacker.eof:
            return b""
        if unpacker.needs_input:
            more = self._rest or self._stream.read(timeout_s)
            if not more:
                return more
            packed, self._rest = more, b""
        try:
            return unpacker.decompress(packed, _MOST) or None
        except self._damaged as error:
            raise DamagedDataError(
                f"The log {clean_line(self._path)} cannot be read.",
                f"The compressed data is damaged: {server_words(str(error))}.",
                "The program tries again.",
            ) from error


class RemoteLog:
    """The file at one path on the cluster, where another file may appear later."""

    def __init__(self, session: Session, path: str, *, no_links: bool = False, limit: Limit | None = None) -> None:
        """`no_links`: do not read a path that contains a symbolic link. `limit`: bandwidth limit of `tail`."""
        self.path = path
        self._session = session
        self._proof = (*(("no_links.sh",) if no_links else ()), "log_proof.sh")
        self._limit = limit

    def prove(self, sample: Sample, known: bytes) -> Proof | None:  # noqa: ARG002 - the cluster computes the checksum
        """Read the identity of the file, as `RemoteFile.prove`."""
        result = self._session.run_script(remote_text(*self._proof), self._args(sample, 0), only_looks=True)
        match = _HEADER.search(result.stdout.encode())
        if match is None:
            raise _unreadable(self.path, result.stderr)
        return _proof(match, sample, self.path, result.stderr)

    def tail(self, sample: Sample, offset: int, known: bytes) -> Tail:
        """Start reading at an offset, as `RemoteFile.tail`."""
        script = remote_text(*self._proof, "log_tail.sh")
        by_perl = (remote_text("log_tail.pl"), str(SILENCE_S))
        argv = ["sh", "-c", _LEASE, str(LEASE_S), script, "sh", *self._args(sample, offset), *by_perl]
        # With a limit, received bytes wait in the window, and are lost when reading begins again: use the small window.
        stream = self._session.stream(argv, bulk=self._limit is None)
        tail = Tail(LimitedStream(stream, self._limit) if self._limit else stream, self.path, known)
        try:
            tail.begin(sample)
        except BaseException:
            tail.close()
            raise
        return tail

    def _args(self, sample: Sample, offset: int) -> list[str]:
        numbers = (sample.head, sample.start + 1, sample.length, offset + 1, _GAP_TO_COMPRESS)
        packers = "zstd" if self._is_near else "gzip zstd"
        installs = self._session.profile.install_dir
        return [self.path, *map(str, numbers), packers, str(_OVERLAP), str(_MOST_IN_FRAME), installs]

    @property
    def _is_near(self) -> bool:
        """True if the line is certainly faster than gzip."""
        round_trip_s = self._session.health.round_trip_s
        return self._session.profile.transport == "local" or (round_trip_s is not None and round_trip_s < NEAR_S)


def _proof(match: re.Match[bytes], sample: Sample, path: str, stderr: str) -> Proof | None:
    if match[1] is None:
        return None
    inode, size, checksum, length = (match[group].decode() for group in (1, 2, 3, 4))
    if int(length) < sample.head + sample.length and int(size) >= sample.start + sample.length:
        raise _unreadable(path, stderr)
    return Proof(inode, int(size), f"{checksum} {length}")


def _unreadable(path: str, stderr: str) -> UnreadableFileError:
    why = clean_line(server_words(stderr).partition("\n")[0]) or "The remote command ended without an answer."
    return UnreadableFileError(f"The log {clean_line(path)} cannot be read.", why, "The program tries again.")


class LoginNodeOutput:
    """Files that a job writes, read through a login node."""

    may_come_back = True

    def __init__(self, session: Session, log: JobLog, job_id: str) -> None:
        self._session = session
        self._log = log
        self._job_id = job_id
        self.one_for_all = log.one_for_all

    def starts(self) -> list[int]:
        """Restarts that have their own log, ascending. Raises the errors of `Session.run`."""
        # The echo ends a line that the login shell may have begun.
        script = 'cd "$1" 2> /dev/null && echo && ls'
        names = self._session.run_script(script, [self._log.folder], only_looks=True).stdout
        return self._log.restarts(self._job_id, names.splitlines())

    def log(self, restart: int) -> RemoteLog:
        """Training log of one start of the job."""
        return RemoteLog(self._session, self._log.path(self._job_id, restart))

    def other_output(self, most: int) -> bytes:
        """Ends of the job's other files; `tail` skips files that do not exist."""
        files = self._log.beside_of(self._job_id)
        if not files:
            return b""
        return self._session.run(["tail", "-q", "-c", str(most), *files], only_looks=True).stdout.encode()
