"""The fields of a cluster profile that a person gives, for a form and for flags: text, and back. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profile_check import WrongField, check_profile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import Trouble

_NUMBER = re.compile(r"[0-9]{1,18}")
EMPTY = SlurmProfile(name="", host="", account="", partition="", install_dir="")


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


REACH = (
    ProfileField("name", "name", "as you call it", needed=True),
    ProfileField("host", "host", "login node, or its name in your ssh configuration", needed=True),
    ProfileField("port", "port", "as ssh would"),
    ProfileField("user", "user", "as ssh would"),
    ProfileField("identity_file", "identity file", "as ssh would: agent, keys, jump hosts"),
)
"""What a connection needs."""

USE = (
    ProfileField("account", "account", needed=True),
    ProfileField("partition", "partition", needed=True),
    ProfileField("install_dir", "install directory", "on a file system that all nodes share", needed=True),
)
"""What every job needs."""

MORE = (
    ProfileField("cpu_partition", "CPU partition", "for work without a GPU"),
    ProfileField("qos", "QOS"),
    ProfileField("reservation", "reservation"),
    ProfileField("constraint", "constraint", "gpu&memory"),
    ProfileField("segment", "segment", "nodes in an NVLink block"),
    ProfileField("exclude", "exclude nodes", "cn[003,007]"),
    ProfileField("memory", "memory", "the whole node's, or 500G"),
    ProfileField("cpus_per_task", "CPUs per task", "no pinning"),
    ProfileField("numa_binding", "NUMA binding", "yes, where the recipe has it"),
    ProfileField("vboost", "vboost", "no; yes needs sudo on the nodes"),
    ProfileField("slurm_params", "Slurm parameters", "key=value;key=value;flag"),
    ProfileField("mounts", "mounts", "/data:/data:ro, /scratch:/scratch"),
    ProfileField("env", "environment", "NAME=value; NAME=value"),
    ProfileField("group_writable", "group may write", "no; yes shares what is made in the install directory"),
    ProfileField("read_only", "observer mode", "no; yes changes nothing there"),
)
"""What some sites need."""

FIELDS = (*REACH, *USE, *MORE)
"""The form."""

BESIDE = (
    ProfileField("known_hosts", "file of known host keys", "as ssh would"),
    ProfileField("ssh_config", "OpenSSH configuration", "your own; none: none at all"),
    ProfileField("transport", "transport", "ssh; local: this machine is the login node"),
    ProfileField("gpu_request", "GPU request", "gpus-per-node, gres or none"),
)
"""What the form asks otherwise, or not at all."""


def texts_of(profile: ClusterProfile, fields: Iterable[ProfileField] = FIELDS, empty: object = EMPTY) -> dict[str, str]:
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


def reachable(base: SlurmProfile, texts: dict[str, str]) -> SlurmProfile:
    """The profile as far as a connection needs it. Raises Trouble, WrongField where a field is to blame."""
    host = texts["host"] or ("localhost" if base.transport == "local" else "")
    if not host:
        raise WrongField("host", "", "Give the login node, or its name in your ssh configuration.")
    return replace(base, **values_of(REACH[2:], texts, EMPTY), host=host)


def profile_of(base: SlurmProfile, texts: dict[str, str]) -> SlurmProfile:
    """The whole profile; what the form does not show is the base's.

    Raises WrongField for the first field that cannot be right.
    """
    needed((field for field in FIELDS if field.name != "host" or base.transport != "local"), texts)
    profile = replace(reachable(base, texts), name=texts["name"], **values_of((*USE, *MORE), texts, EMPTY))
    check_profile(profile)
    return profile


def field_at_fault(trouble: Trouble, fields: Iterable[ProfileField] = FIELDS) -> str | None:
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
