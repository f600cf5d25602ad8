"""The fields of a cluster profile that a person gives, for a form and for flags: text, and back. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

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
    ProfileField("gpu_request", "GPU request", "gpus-per-node, gres or none"),
)
"""What the form asks otherwise, or not at all."""


def texts_of(profile: SlurmProfile) -> dict[str, str]:
    """The profile's values as they stand in the form, by field."""
    values = {field.name: getattr(profile, field.name) for field in FIELDS}
    # Empty stands for what is right for most.
    return {name: text_of(value) if value != getattr(EMPTY, name) else "" for name, value in values.items()}


def reachable(base: SlurmProfile, texts: dict[str, str]) -> SlurmProfile:
    """The profile as far as a connection needs it. Raises Trouble, WrongField where a field is to blame."""
    host = texts["host"] or ("localhost" if base.transport == "local" else "")
    if not host:
        raise WrongField("host", "", "Give the login node, or its name in your ssh configuration.")
    return replace(
        base,
        host=host,
        port=_number("port", texts["port"]),
        user=texts["user"] or None,
        identity_file=texts["identity_file"] or None,
    )


def profile_of(base: SlurmProfile, texts: dict[str, str]) -> SlurmProfile:
    """The whole profile; what the form does not show is the base's.

    Raises WrongField for the first field that cannot be right.
    """
    needed((field for field in FIELDS if field.name != "host" or base.transport != "local"), texts)
    profile = replace(
        reachable(base, texts),
        name=texts["name"],
        account=texts["account"],
        partition=texts["partition"],
        install_dir=texts["install_dir"],
        cpu_partition=texts["cpu_partition"] or None,
        qos=texts["qos"] or None,
        reservation=texts["reservation"] or None,
        constraint=texts["constraint"] or None,
        segment=_number("segment", texts["segment"]),
        exclude=texts["exclude"] or None,
        memory=texts["memory"] or EMPTY.memory,
        cpus_per_task=_number("cpus_per_task", texts["cpus_per_task"]) or EMPTY.cpus_per_task,
        numa_binding=flag_of("numa_binding", texts["numa_binding"], EMPTY.numa_binding),
        vboost=flag_of("vboost", texts["vboost"], EMPTY.vboost),
        slurm_params=texts["slurm_params"] or None,
        mounts=parts_of(texts["mounts"]),
        env=environment_of(texts["env"]),
        group_writable=flag_of("group_writable", texts["group_writable"], EMPTY.group_writable),
        read_only=flag_of("read_only", texts["read_only"], EMPTY.read_only),
    )
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


def parts_of(text: str) -> tuple[str, ...]:
    """What stands between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


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


def _number(name: str, text: str) -> int | None:
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise WrongField(name, text, "It is a number.")
    return int(text)


def flag_of(name: str, text: str, usual: bool) -> bool:
    """Yes or no; `usual` where nothing is said. Raises WrongField."""
    if text.lower() not in ("", "yes", "no"):
        raise WrongField(name, text, "It is yes or no.")
    return text.lower() == "yes" if text else usual


def environment_of(text: str) -> tuple[tuple[str, str], ...]:
    """(name, value) of variables that stand between semicolons. Raises WrongField."""
    pairs = []
    for part in text.split(";"):
        name, equals, value = part.strip().partition("=")
        if not equals and name:
            raise WrongField("env", name, "Write NAME=value, with semicolons between several.")
        if name:
            pairs.append((name, value))
    return tuple(pairs)
