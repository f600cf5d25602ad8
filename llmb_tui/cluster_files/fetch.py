"""`Fetch`: files that a run has left on its cluster, into one folder here; it goes on at the byte where it was.

A file grows as `NAME.part`, and gets its name when it is whole. That what is here is the beginning of what is there is
proved as it is of a log (`watch/follow.py`); a file here that is another one is never written to.
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
from llmb_tui.cluster.failures import Disconnected, Unanswered, Unreachable
from llmb_tui.cluster.prompter import Prompter
from llmb_tui.cluster.remote_file import Sample, Unreadable
from llmb_tui.cluster.remotelog import RemoteLog
from llmb_tui.cluster.session import Session
from llmb_tui.cluster_files.left_files import LeftFile, LeftFiles
from llmb_tui.errors import Trouble
from llmb_tui.language.quantities import byte_size, count
from llmb_tui.store.files import file_trouble, make_private_directory
from llmb_tui.watch.follow import Follower, LogGone, LogReplaced

_PUMP_S = 1.0
_QUIET_S, _QUIET_LIMITED_S = 1.0, 20.0
"""After so long without a byte it is asked whether there is more; a limit keeps a piece waiting for ten seconds."""
_LINE = (Disconnected, Unanswered, Unreachable)
_TRIES = 6
"""So often in a row a line may break without a byte; then whoever asked may ask again."""

Tell = Callable[[str, int, int], object]
"""Told a file's name, its bytes that are here, and its size."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """One file."""

    file: LeftFile
    state: Literal["fetched", "here", "refused"]
    """`here`: it was, all of it; `refused`: there is another file of its name here, or it cannot be read there."""
    bytes_fetched: int = 0
    why: str = ""


class _Refused(Trouble):
    """One file is not fetched; the others are."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Into one folder. For one thread."""

    session: Session
    left: LeftFiles
    target: Path
    limit: Limit | None = None
    prompter: Prompter | None = None
    """Answers what connecting again asks; None: nobody."""

    def missing(self) -> int:
        """Bytes that are still to come. Raises Trouble where they have no room here."""
        missing = sum(max(0, file.size - self._here(file)) for file in self.left.files)
        above = next(path for path in (self.target, *self.target.absolute().parents) if path.exists())
        with file_trouble("look at", above):
            free = shutil.disk_usage(above).free
        if missing > free:
            raise Trouble(
                f"The files have no room in {self.target}.",
                f"{byte_size(missing)} are to come, and {byte_size(free)} are free there.",
                "Free some space, or name another folder with --to.",
            )
        return missing

    def all(self, tell: Tell) -> list[Fetched]:
        """Every file, one after the other. Raises Trouble where the cluster does not answer any more."""
        make_private_directory(self.target)
        return [self._one(file, tell) for file in self.left.files]

    def _here(self, file: LeftFile) -> int:
        """Bytes of it that are here."""
        try:
            return self._place(file).stat().st_size
        except (OSError, _Refused):
            return 0

    def _one(self, file: LeftFile, tell: Tell) -> Fetched:
        final = self.target / file.name
        try:
            path = self._place(file)
            came = self._copy(file, path, tell)
            if path != final:
                if os.path.lexists(final):
                    raise _Refused(f"{final} came meanwhile; what was fetched is {path}.")
                with file_trouble("rename", path):
                    path.rename(final)
        except LogReplaced as replaced:
            fix = "Remove it, or choose another folder with --to."
            return Fetched(file, "refused", why=f"{path} is another file. {replaced.why} {fix}")
        except (_Refused, Unreadable) as trouble:
            return Fetched(file, "refused", why=" ".join(filter(None, (trouble.what, trouble.why))))
        return Fetched(file, "fetched" if came or path != final else "here", came)

    def _place(self, file: LeftFile) -> Path:
        """The file itself where it is here, else the one that becomes it. Raises `_Refused`."""
        final = self.target / file.name
        part = final.with_name(f"{final.name}.part")
        if not final.parent.resolve().is_relative_to(self.target.resolve()):
            raise _Refused(f"A symbolic link at {final.parent} leads out of the folder.")
        path = final if os.path.lexists(final) else part
        if os.path.lexists(path) and (path.is_symlink() or not path.is_file()):
            raise _Refused(f"{path} is no plain file.")
        return path

    def _copy(self, file: LeftFile, path: Path, tell: Tell) -> int:
        """Bytes that came. Raises LogReplaced, `_Refused`, Unreadable, and Trouble where the line stays broken."""
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
                    if tries >= _TRIES:
                        here, why = (
                            f"{file.name}: {count(last)} of {count(file.size)} bytes are here.",
                            f"{lost.what} {lost.why}",
                        )
                        raise Trouble(here, why.rstrip(), "Fetch again; it goes on there.") from lost
                    with suppress(*_LINE):
                        self.session.connect(self.prompter)
                except LogGone as gone:
                    if follower.copied < file.size:
                        raise _Refused("It is gone from there.") from gone
                    break
            if follower.copied < file.size and remote.prove(Sample(0, 0, 0), b"") is None:
                raise _Refused("It is gone from there.")
            return follower.copied - began

    def _comes(self, follower: Follower, file: LeftFile, tell: Tell) -> bool:
        """True when something came within a while; False also when all of it is here."""
        ends = time.monotonic() + (_QUIET_S if self.limit is None else _QUIET_LIMITED_S)
        while follower.copied < file.size and time.monotonic() < ends:
            if follower.pump(_PUMP_S):
                tell(file.name, follower.copied, file.size)
                return True
        return False
