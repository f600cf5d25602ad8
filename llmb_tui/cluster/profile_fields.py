"""The fields of a cluster profile that a person gives, for a form and for flags: text, and back. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profile_check import WrongField
from llmb_tui.errors import Trouble

_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class ProfileField:
    """One line of the form."""

    name: str
    """Name of the profile's field."""
    title: str
    hint: str = ""
    needed: bool = False

    @property
    def flag(self) -> str:
        """Of `clusters add`."""
        return f"--{self.name.replace('_', '-')}"


def texts_of(profile: ClusterProfile, fields: Iterable[ProfileField], empty: object) -> dict[str, str]:
    """The profile's values as they stand in the form, by field."""
    values = {field.name: getattr(profile, field.name) for field in fields}
    # Empty stands for what is right for most.
    return {name: text_of(value) if value != getattr(empty, name) else "" for name, value in values.items()}


def values_of(fields: Iterable[ProfileField], texts: Mapping[str, str], empty: object) -> dict[str, Any]:
    """The values that stand in a form, by field; what is empty is as in an empty profile. Raises WrongField."""
    return {
        field.name: _READ.get(field.name, _as_it_is)(field.name, text)
        if (text := texts[field.name])
        else getattr(empty, field.name)
        for field in fields
    }


def field_at_fault(trouble: Trouble, fields: Iterable[ProfileField]) -> str | None:
    """Name of the form's field that a trouble is about, if it is about one."""
    if not isinstance(trouble, WrongField):
        return None
    name = trouble.field.partition(".")[0]
    return name if any(field.name == name for field in fields) else None


def needed(fields: Iterable[ProfileField], texts: Mapping[str, str]) -> None:
    """Raise WrongField for the first field that is needed and empty."""
    for field in fields:
        if field.needed and not texts[field.name]:
            raise WrongField(field.name, "", f"The {field.title} is needed.")


def text_of(value: object) -> str:
    """A value as it stands in a form."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        pairs = all(isinstance(part, tuple) for part in value)
        return "; ".join("=".join(part) for part in value) if pairs else ", ".join(value)
    return str(value)


def _as_it_is(_: str, text: str) -> str:
    return text


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise WrongField(name, text, "It is a number.")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("yes", "no"):
        raise WrongField(name, text, "It is yes or no.")
    return text.lower() == "yes"


def parts_of(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _environment(field: str, text: str) -> tuple[tuple[str, str], ...]:
    """(name, value) of variables that stand between semicolons."""
    pairs = [part.strip().partition("=") for part in text.split(";")]
    for name, equals, _ in pairs:
        if name and not equals:
            raise WrongField(field, name, "Write NAME=value, with semicolons between several.")
    return tuple((name, value) for name, _, value in pairs if name)


_READ: dict[str, Callable[[str, str], object]] = {
    **dict.fromkeys(("port", "segment", "cpus_per_task"), _number),
    **dict.fromkeys(("numa_binding", "vboost", "group_writable", "read_only"), _flag),
    "mounts": lambda _, text: parts_of(text),
    "env": _environment,
}
"""What reads the text of a field, by its name; all others are texts."""
