"""`Note`: a person's note on one run, and its tags."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """A note of one line, and tags in order."""

    text: str = ""
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text or self.tags)

    @property
    def words(self) -> str:
        """Both, as a person reads them; empty without either."""
        return " ".join([*(f"#{tag}" for tag in self.tags), self.text]).rstrip()


NO_NOTE = Note()
