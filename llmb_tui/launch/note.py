"""`Note`: a user's note on one run, and its tags."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A note of one line, and tags in the order in which they were added."""

    text: str = ""
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text or self.tags)

    @property
    def words(self) -> str:
        """Tags and note on one line; empty if there is neither."""
        return " ".join([*(f"#{tag}" for tag in self.tags), self.text]).rstrip()


NO_NOTE = Note()
