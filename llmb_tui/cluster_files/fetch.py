"""`Fetch`: copies files of a run from its cluster into one folder here, and continues interrupted copies.

A file grows as `NAME.part`, and gets its final name when it is complete. The local part is proved to be the beginning
of the remote file in the way of a log (`watch/follow.py`); a different local file is never written to.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from llmb_tui.cluster.bandwidth import Limit
from llmb_tui.cluster.failures import DisconnectedError, NoAnswerError, UnreachableError
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.remote_file import Sample, UnreadableFileError
from llmb_tui.cluster.remotelog import RemoteLog
from llmb_tui.cluster.session import Session
from llmb_tui.cluster_files.left_files import LeftFile, LeftFiles
from llmb_tui.errors import LlmbError
from llmb_tui.language.quantities import byte_size, count
from llmb_tui.store.files import explained_errors, make_private_directory
from llmb_tui.watch.follow import Follower, LogMissingError, LogReplacedError

_PUMP_S = 1.0
_QUIET_S, _QUIET_LIMITED_S = 1.0, 20.0
"""Time without data after which the rest is checked; with a limit, a piece may be delayed for ten seconds."""
_LINE = (DisconnectedError, NoAnswerError, UnreachableError)
TRIES = 6
"""Number of consecutive disconnects without data after which the fetch fails; the user may then repeat it."""

OnProgress = Callable[[str, int, int], object]
"""Called with a file's name, its bytes on this machine, and its size."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Result for one file."""

    file: LeftFile
    state: Literal["fetched", "here", "refused"]
    """`here`: it was complete before; `refused`: another file has its name here, or it cannot be read there."""
    bytes_fetched: int = 0
    why: str = ""


class _RefusedError(LlmbError):
    """One file is not fetched; the others are fetched."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetches files into one folder. For one thread."""

    session: Session
    left: LeftFiles
    target: Path
    limit: Limit | None = None
    prompter: Prompter | None = None
    """Answers questions of a reconnect; None answers none."""

    def missing(self) -> int:
        """Bytes to fetch. Raises LlmbError if this machine lacks the space for them."""
        missing = sum(max(0, file.size - self._here(file)) for file in self.left.files)
        above = next(path for path in (self.target, *self.target.absolute().parents) if path.exists())
        with explained_errors("look at", above):
            free = shutil.disk_usage(above).free
        if missing > free:
            raise LlmbError(
                f"There is not enough space in {self.target}.",
                f"The files need {byte_size(missing)}, but only {byte_size(free)} are free.",
                "Free some space, or name another folder with --to.",
            )
        return missing

    def all(self, tell: OnProgress) -> list[Fetched]:
        """Fetch every file, one after the other. Raises LlmbError if the cluster stops answering."""
        make_private_directory(self.target)
        return [self._one(file, tell) for file in self.left.files]

    def _here(self, file: LeftFile) -> int:
        """Bytes of a file on this machine."""
        try:
            return self._place(file).stat().st_size
        except (OSError, _RefusedError):
            return 0

    def _one(self, file: LeftFile, tell: OnProgress) -> Fetched:
        final = self.target / file.name
        try:
            path = self._place(file)
            came = self._copy(file, path, tell)
            if path != final:
                if os.path.lexists(final):
                    raise _RefusedError(f"{final} was created meanwhile; the fetched file is {path}.")
                with explained_errors("rename", path):
                    path.rename(final)
        except LogReplacedError as replaced:
            fix = "Remove it, or choose another folder with --to."
            return Fetched(file, "refused", why=f"{path} is another file. {replaced.why} {fix}")
        except (_RefusedError, UnreadableFileError) as error:
            return Fetched(file, "refused", why=" ".join(filter(None, (error.what, error.why))))
        return Fetched(file, "fetched" if came or path != final else "here", came)

    def _place(self, file: LeftFile) -> Path:
        """Path of the complete file if it is here, otherwise of its part. Raises `_RefusedError`."""
        final = self.target / file.name
        part = final.with_name(f"{final.name}.part")
        if not final.parent.resolve().is_relative_to(self.target.resolve()):
            raise _RefusedError(f"A symbolic link at {final.parent} leads out of the folder.")
        path = final if os.path.lexists(final) else part
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            raise _RefusedError(f"{path} is not a regular file.")
        return path

    def _copy(self, file: LeftFile, path: Path, tell: OnProgress) -> int:
        """Copy a file and return the number of new bytes.

        Raises LogReplacedError, `_RefusedError`, UnreadableFileError, and the errors of the connection.
        """
        remote = RemoteLog(self.session, f"{self.left.folder}/{file.name}", no_links=True, limit=self.limit)
        follower = Follower(remote, path)
        with closing(follower):
            began = last = follower.copied
            tries = 0
            while True:
                try:
                    if self._comes(follower, file, tell):
                        continue
                    if follower.behind() == 0 or follower.copied >= file.size:
                        break
                except _LINE as lost:
                    tries = 1 if follower.copied > last else tries + 1
                    last = follower.copied
                    if tries >= TRIES:
                        here, why = (
                            f"{file.name}: {count(last)} of {count(file.size)} bytes are here.",
                            f"{lost.what} {lost.why}",
                        )
                        raise LlmbError(here, why.rstrip(), "Fetch again; it continues there.") from lost
                    with suppress(*_LINE):
                        self.session.connect(self.prompter)
                except LogMissingError as gone:
                    if follower.copied < file.size:
                        raise _RefusedError("It no longer exists on the cluster.") from gone
                    break
            if follower.copied < file.size and remote.prove(Sample(0, 0, 0), b"") is None:
                raise _RefusedError("It no longer exists on the cluster.")
            return follower.copied - began

    def _comes(self, follower: Follower, file: LeftFile, tell: OnProgress) -> bool:
        """Whether data arrived within the quiet time; False also if the file is complete here."""
        ends = time.monotonic() + (_QUIET_S if self.limit is None else _QUIET_LIMITED_S)
        while follower.copied < file.size and time.monotonic() < ends:
            if follower.copy_available(_PUMP_S):
                tell(file.name, follower.copied, file.size)
                return True
        return False
