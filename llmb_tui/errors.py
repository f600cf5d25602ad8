"""`LlmbError`: an error with its cause and its remedy."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` takes a tenth of `--help`
    from pathlib import Path

_FIXES = {
    errno.EACCES: "Change its permissions, or those of the directories above it.",
    errno.EPERM: "Change its permissions, or those of the directories above it.",
    errno.ENOTDIR: "A part of its path is a file and not a directory: move that file.",
    errno.EISDIR: "It is a directory and must be a file: move the directory.",
    errno.EEXIST: "Something else has this name: move it.",
    errno.ELOOP: "A symbolic link has this name, or its links form a loop: remove the link.",
    errno.EROFS: "Its file system is read-only: choose another directory.",
    errno.ENOSPC: "Free some space.",
    errno.EDQUOT: "Free some space, or ask for a larger quota.",
    errno.ENAMETOOLONG: "Choose a directory with a shorter path.",
}
"""Remedies by error number, for files and directories that the user can change."""


class LlmbError(Exception):
    """A failure: what failed, why as far as is known, and what to do.

    `exit_code` is the exit code of a verb: 1 if the request is wrong or impossible, 2 if the cluster or the machine
    failed (docs/verbs.md). Remote text in the three parts must be clean (`llmb_tui.language.text.clean`).
    """

    def __init__(self, what: str, why: str = "", fix: str = "", exit_code: int = 2) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.exit_code = exit_code
        self.run_id: str | None = None
        """Id of the run, for a caller that does not know it yet."""
        self.extra_fields: dict[str, object] = {}
        """Further keys of the JSON error document: what was done before the failure."""

    def __str__(self) -> str:
        """The three parts as lines, without the empty ones."""
        return "\n".join(part for part in (self.what, self.why, self.fix) if part)


def remedy_in(text: str) -> str:
    """Remedy for the system error that another program's message quotes in English; empty if it quotes none."""
    words = text.lower()
    return next((fix for number, fix in _FIXES.items() if os.strerror(number).lower() in words), "")


def error_with_remedy(error: OSError, action: str = "use", path: Path | None = None) -> LlmbError | None:
    """The error with a remedy for its file or directory; None if the user cannot fix it there."""
    place = path or error.filename
    if error.errno not in _FIXES or place is None:
        return None
    return LlmbError(f"Could not {action} {place}.", f"{error.strerror}.", _FIXES[error.errno])
