"""Fields of a cluster profile that the user enters in a form or as flags, with conversions from and to text. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profile_check import InvalidFieldError
from llmb_tui.errors import LlmbError

_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class ProfileField:
    """One field of the form."""

    name: str
    """Name of the profile's field."""
    title: str
    hint: str = ""
    needed: bool = False

    @property
    def flag(self) -> str:
        """Flag of `clusters add`."""
        return f"--{self.name.replace('_', '-')}"


def texts_from_profile(profile: ClusterProfile, fields: Iterable[ProfileField], empty: object) -> dict[str, str]:
    """Texts of a profile's values in the form, by field; a default value is an empty text."""
    values = {field.name: getattr(profile, field.name) for field in fields}
    return {name: text_of(value) if value != getattr(empty, name) else "" for name, value in values.items()}


def values_from_texts(fields: Iterable[ProfileField], texts: Mapping[str, str], empty: object) -> dict[str, Any]:
    """Parse the texts of a form, by field; an empty text is the value of an empty profile. Raises InvalidFieldError."""
    return {
        field.name: _PARSERS.get(field.name, _unchanged)(field.name, text)
        if (text := texts[field.name])
        else getattr(empty, field.name)
        for field in fields
    }


def field_at_fault(error: LlmbError, fields: Iterable[ProfileField]) -> str | None:
    """Name of the form's field that caused an error; None if it was not a field."""
    if not isinstance(error, InvalidFieldError):
        return None
    name = error.field.partition(".")[0]
    return name if any(field.name == name for field in fields) else None


def needed(fields: Iterable[ProfileField], texts: Mapping[str, str]) -> None:
    """Raise InvalidFieldError for the first required field that is empty."""
    for field in fields:
        if field.needed and not texts[field.name]:
            raise InvalidFieldError(field.name, "", f"Enter the {field.title}: it is required.")


def text_of(value: object) -> str:
    """Text of a value in a form."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        pairs = all(isinstance(part, tuple) for part in value)
        return "; ".join("=".join(part) for part in value) if pairs else ", ".join(value)
    return str(value)


def _unchanged(_: str, text: str) -> str:
    return text


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise InvalidFieldError(name, text, "Enter a whole number.")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("yes", "no"):
        raise InvalidFieldError(name, text, "Enter yes or no.")
    return text.lower() == "yes"


def parts_of(text: str) -> tuple[str, ...]:
    """Split a text at its commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _environment(field: str, text: str) -> tuple[tuple[str, str], ...]:
    """Parse environment variables, separated by semicolons, to (name, value)."""
    pairs = [part.strip().partition("=") for part in text.split(";")]
    for name, equals, _ in pairs:
        if name and not equals:
            raise InvalidFieldError(field, name, "Write NAME=value; separate variables with semicolons.")
    return tuple((name, value) for name, _, value in pairs if name)


_PARSERS: dict[str, Callable[[str, str], object]] = {
    **dict.fromkeys(("port", "segment", "cpus_per_task"), _number),
    **dict.fromkeys(("numa_binding", "vboost", "group_writable", "read_only"), _flag),
    "mounts": lambda _, text: parts_of(text),
    "env": _environment,
}
"""Parser of a field's text, by field name; the values of other fields are texts."""
