"""Write private files so that a crash leaves either the old content or the new; lock folders."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from llmb_tui.errors import LlmbError, error_with_remedy
from llmb_tui.store.paths import STATE_VARIABLE

_UNFINISHED = ".unfinished"
_LEFT_BEHIND_S = 3600.0


def remove_leftovers(directory: Path) -> None:
    """Remove old unfinished files of killed programs below a directory; recent ones may still be in use."""
    before = time.time() - _LEFT_BEHIND_S
    for path in directory.rglob(f".*{_UNFINISHED}"):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < before:
                path.unlink()


def make_private_directory(path: Path) -> None:
    """Create `path` and its missing parents with mode 0700. Existing directories are not changed."""
    with explained_errors("create the directory", path):
        missing = [path]
        while not missing[-1].parent.exists():
            missing.append(missing[-1].parent)
        if (home := missing[-1]).name.startswith("~") and len(home.parts) == 1 and not home.exists():
            # The path meant a user's home directory; here it would create a directory with this name.
            raise LlmbError(
                f"The directory {home} does not exist.", "", "Create it, or enter another path.", exit_code=1
            )
        for directory in reversed(missing):
            directory.mkdir(mode=0o700, exist_ok=True)


def text_in(path: Path) -> str:
    """Text of a file; empty if it does not exist. Raises LlmbError if it cannot be read."""
    with explained_errors("read", path):
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def write_atomic(path: Path, data: bytes) -> None:
    """Replace the file by `data`, mode 0600: after a crash it has either all old bytes or all new ones.

    Raises LlmbError if the file cannot be written; the old one is then unchanged.
    """
    write_all_atomic({path: data})


def write_all_atomic(files: Mapping[Path, bytes]) -> None:
    """`write_atomic` for several files. If one cannot be written, for example on a full disk, no new file remains."""
    temporary: dict[Path, str] = {}
    written: list[Path] = []
    try:
        for path, data in files.items():
            make_private_directory(path.parent)
            with explained_errors("write", path):
                handle, temporary[path] = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_UNFINISHED)
                with open(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
        for path in files:
            with explained_errors("write", path):
                is_new = not os.path.lexists(path)
                os.replace(temporary[path], path)
                del temporary[path]
                written += [path] if is_new else []
    except BaseException:
        for left in (*map(Path, temporary.values()), *written):
            with contextlib.suppress(OSError):
                left.unlink()
        raise
    for path in files:
        with explained_errors("write", path):
            _sync_directory(path.parent)


def append_durable(path: Path, data: bytes) -> None:
    """Append `data`, and return once it is on the disk. A new file has mode 0600.

    Raises LlmbError if it cannot be written; some of the bytes may then be in the file.
    """
    make_private_directory(path.parent)
    with explained_errors("append to", path):
        is_new = not path.exists()
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        if is_new:
            _sync_directory(path.parent)


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Create a directory, and hold it briefly while files in it change, among all processes on this machine.

    On a file system without locks, the directory is not protected.
    """
    make_private_directory(directory)
    with explained_errors("use", directory):
        handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def exclusive_lock(folder: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold a folder by its `lock` file for this thread, among all processes here; the lock ends with the process.

    Yields False, without the lock, if another thread or process holds it and `wait` is False. Raises LlmbError if the
    file system has no locks.
    """
    make_private_directory(folder)
    with explained_errors("lock", folder):
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        yield False
    except OSError as error:
        raise LlmbError(
            f"Could not lock {folder}.",
            f"Its file system reports: {error.strerror or error}. Without a lock a run could be submitted twice.",
            f"Set {STATE_VARIABLE} to a directory on a file system that has locks.",
        ) from error
    else:
        yield True
    finally:
        os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file until it is closed; False if another process holds it. True on a file system without locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _sync_directory(directory: Path) -> None:
    """Make a new name durable; ignored if the file system cannot sync a directory."""
    with contextlib.suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def explained_errors(action: str, path: Path) -> Iterator[None]:
    """Raise an OSError of the block as LlmbError."""
    try:
        yield
    except OSError as error:
        fix = "Free some space, or correct the permissions of its directory."
        unknown = LlmbError(f"Could not {action} {path}.", f"{error.strerror or error}.", fix)
        raise error_with_remedy(error, action, path) or unknown from error
