"""Saved clusters: one TOML file each, named after the cluster, which users may read, edit and copy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, field, fields, make_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import tomli_w

from llmb_tui.cluster.kind import ClusterKind
from llmb_tui.cluster.kinds import KINDS, UNNAMED
from llmb_tui.cluster.profile import LATER, ClusterProfile
from llmb_tui.cluster.profile_check import InvalidFieldError
from llmb_tui.store.files import write_atomic
from llmb_tui.toml.read import TomlFileError, file_text, read_toml, toml_files

_KIND = re.compile(r"""(?m)^kind\s*=\s*["']([^"'\n]*)["']""")


class ProfileError(TomlFileError):
    """A file is not a valid cluster profile. Exit code 1."""

    kind = "cluster profile"


def load_profiles(
    directory: Path, on_problem: Callable[[ProfileError], None] | None = None
) -> tuple[ClusterProfile, ...]:
    """Load all saved clusters, sorted by name; none if the directory does not exist.

    A file that is not a valid profile is skipped and reported to `on_problem`; without it, ProfileError is raised.
    """
    profiles = []
    for path in toml_files([directory]):
        try:
            profiles.append(load_profile(path))
        except ProfileError as problem:
            if on_problem is None:
                raise
            on_problem(problem)
    return tuple(profiles)


def load_profile(path: Path) -> ClusterProfile:
    """Load the profile in one file. Raises ProfileError."""
    profile, text = _read(path)
    try:
        _check(profile)
    except InvalidFieldError as wrong:
        reason = f"{wrong.what} {wrong.why}".strip()
        problem = ProfileError.at(path, text, (tuple(wrong.field.split(".", 1)), reason))
        problem.fix = wrong.fix
        raise problem from wrong
    if profile.name != path.stem:
        reason = f"The profile's name is {profile.name}, but the file is named {path.stem}. Use the same name for both."
        raise ProfileError.at(path, text, (("name",), reason))
    return profile


def save_profile(directory: Path, profile: ClusterProfile) -> None:
    """Write the profile to `<name>.toml`; atomic, mode 0600. Raises InvalidFieldError for an invalid field."""
    _check(profile)
    file = (directory / f"{profile.name}.toml").resolve()  # a link stays a link
    write_atomic(file, tomli_w.dumps(profile_table(profile)).encode())


def profile_table(profile: ClusterProfile) -> dict[str, Any]:
    """Content of a profile's file: all fields that have a value."""
    return {key: value for key, value in profile_document(profile).items() if value not in (None, [], {})}


def profile_document(profile: ClusterProfile) -> dict[str, Any]:
    """All fields as in JSON and TOML: mounts as a list, environment as a table; the kind unless it is Slurm."""
    kind = {"kind": profile.kind} if profile.kind != UNNAMED else {}
    document = {**kind, **asdict(profile), "mounts": list(profile.mounts), "env": dict(profile.env)}
    later = {field.name for field in fields(profile) if field.metadata == LATER}
    return {key: value for key, value in document.items() if value is not None or key not in later}


def _read(path: Path) -> tuple[ClusterProfile, str]:
    kind = _kind_of(path)
    document, text = read_toml(path, _form_of(kind), ProfileError)
    values = {field.name: getattr(document, field.name) for field in fields(kind.profile)}
    return kind.profile(**{**values, "env": tuple(document.env.items())}), text


def _kind_of(path: Path) -> ClusterKind[Any]:
    """Kind that a file names; Slurm for a file that names none or cannot be read."""
    try:
        match = _KIND.search(file_text(path))
    except (OSError, ValueError):
        match = None
    return KINDS.get(match[1] if match else UNNAMED, KINDS[UNNAMED])


@cache
def _form_of(kind: ClusterKind[Any]) -> type[Any]:
    """Make the class of a profile's file: its environment is a table, and it names its kind unless that is Slurm."""
    profile = kind.profile
    file_fields: list[tuple[str, Any, Any]] = [("env", dict[str, str], field(default_factory=dict))]
    if profile.kind != UNNAMED:
        file_fields.append(("kind", Literal[profile.kind], field(default=profile.kind, kw_only=True)))
    config = {"__pydantic_config__": {"strict": True, "extra": "forbid"}, "__module__": profile.__module__}
    return make_dataclass(f"{profile.__name__}File", file_fields, bases=(profile,), frozen=True, namespace=config)


def _check(profile: ClusterProfile) -> None:
    KINDS[profile.kind].check(profile)
