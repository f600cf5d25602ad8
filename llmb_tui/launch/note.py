"""`Note`: what people say of one run, and the tags that they give it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Note:
    """What is said of one run, on one line, and its tags in order."""

    text: str = ""
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.text or self.tags)

    @property
    def words(self) -> str:
        """Both, as a person reads them; empty without either."""
        return " ".join([*(f"#{tag}" for tag in self.tags), self.text]).rstrip()


NO_NOTE = Note()
