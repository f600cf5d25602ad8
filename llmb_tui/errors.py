"""`Trouble`: an error that a person can act on."""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` takes a tenth of `--help`
    from pathlib import Path

_MENDS = {
    errno.EACCES: "Mend its permissions, and those of the directories above it.",
    errno.EPERM: "Mend its permissions, and those of the directories above it.",
    errno.ENOTDIR: "Something on its path is a file where a directory has to be: move that away.",
    errno.EISDIR: "It is a directory where a file has to be: move it away.",
    errno.EEXIST: "Something else has its name: move that away.",
    errno.ELOOP: "A symbolic link is in its place, or leads back to itself: remove it.",
    errno.EROFS: "Its file system can only be read: choose another directory.",
    errno.ENOSPC: "Free some space.",
    errno.EDQUOT: "Free some space, or ask for a larger quota.",
    errno.ENAMETOOLONG: "Choose a directory with a shorter path.",
}
"""By what the system says of a file or directory that is in nobody's way but its owner's."""


class Trouble(Exception):
    """Something failed: what happened, why as far as is known, and what to do.

    `exit_code` is what a verb answers with: 1 when the request is wrong or impossible, 2 when the
    cluster or the machine failed (docs/verbs.md). The texts may hold remote text: clean it
    with `llmb_tui.language.text.clean` before it comes here.
    """

    def __init__(self, what: str, why: str = "", fix: str = "", exit_code: int = 2) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.fix = fix
        self.exit_code = exit_code
        self.run_id: str | None = None
        """The run that it is about, where whoever asked does not know its id yet."""
        self.beside: dict[str, object] = {}
        """What was done all the same, for the document in which a verb says the trouble."""

    def __str__(self) -> str:
        """The three parts as lines, without the empty ones."""
        return "\n".join(part for part in (self.what, self.why, self.fix) if part)


def trouble_of(error: OSError, action: str = "use", path: Path | None = None) -> Trouble | None:
    """What a person can do about a file or directory; None for an error that is no matter of theirs."""
    place = path or error.filename
    if error.errno not in _MENDS or place is None:
        return None
    return Trouble(f"Could not {action} {place}.", f"{error.strerror}.", _MENDS[error.errno])
