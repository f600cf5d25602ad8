"""Saved clusters: one TOML file each, named after the cluster, for people to read, edit and copy."""

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
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profile_check import WrongField
from llmb_tui.store.files import write_atomic
from llmb_tui.toml.read import FileProblem, read_toml, toml_files

_KIND = re.compile(r"""(?m)^kind\s*=\s*["']([^"'\n]*)["']""")


class ProfileProblem(FileProblem):
    """A file that is no cluster profile. Exit code 1."""

    kind = "cluster profile"


def load_profiles(
    directory: Path, on_problem: Callable[[ProfileProblem], None] | None = None
) -> tuple[ClusterProfile, ...]:
    """All saved clusters, by name; none when the directory does not exist.

    A file that is no cluster profile is told to `on_problem` and passed over; without it, ProfileProblem is raised.
    """
    profiles = []
    for path in toml_files([directory]):
        try:
            profiles.append(load_profile(path))
        except ProfileProblem as problem:
            if on_problem is None:
                raise
            on_problem(problem)
    return tuple(profiles)


def load_profile(path: Path) -> ClusterProfile:
    """The cluster in one file. Raises ProfileProblem."""
    profile, text = _read(path)
    try:
        _check(profile)
    except WrongField as wrong:
        reason = f"{wrong.what} {wrong.why}".strip()
        problem = ProfileProblem.at(path, text, (tuple(wrong.field.split(".", 1)), reason))
        problem.fix = wrong.fix
        raise problem from wrong
    if profile.name != path.stem:
        reason = f"Its name is {profile.name}, but the file's name says {path.stem}. Make the two the same."
        raise ProfileProblem.at(path, text, (("name",), reason))
    return profile


def save_profile(directory: Path, profile: ClusterProfile) -> None:
    """Write the profile to `<name>.toml`; atomic, mode 0600. Raises WrongField when a field cannot be right."""
    _check(profile)
    file = (directory / f"{profile.name}.toml").resolve()  # it may be a link to where it is kept
    write_atomic(file, tomli_w.dumps(profile_table(profile)).encode())


def profile_table(profile: ClusterProfile) -> dict[str, Any]:
    """What a file holds of it."""
    return {key: value for key, value in profile_document(profile).items() if value not in (None, [], {})}


def profile_document(profile: ClusterProfile) -> dict[str, Any]:
    """Every field as JSON and TOML hold it: the mounts a list, the environment a table; and the kind unless Slurm."""
    kind = {"kind": profile.kind} if profile.kind != UNNAMED else {}
    return {**kind, **asdict(profile), "mounts": list(profile.mounts), "env": dict(profile.env)}


def _read(path: Path) -> tuple[ClusterProfile, str]:
    kind = _kind_of(path)
    document, text = read_toml(path, _form_of(kind), ProfileProblem)
    values = {one.name: getattr(document, one.name) for one in fields(kind.profile)}
    return kind.profile(**{**values, "env": tuple(document.env.items())}), text


def _kind_of(path: Path) -> ClusterKind[Any]:
    """The kind that a file names; Slurm for a file that names none, and for one that cannot be read."""
    try:
        # Reading a pipe would block.
        named = _KIND.search(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (OSError, ValueError):
        named = None
    return KINDS.get(named[1] if named else UNNAMED, KINDS[UNNAMED])


@cache
def _form_of(kind: ClusterKind[Any]) -> type[Any]:
    """A profile as its file holds it: the environment is a table, and a kind other than Slurm is named."""
    profile = kind.profile
    own: list[tuple[str, Any, Any]] = [("env", dict[str, str], field(default_factory=dict))]
    if profile.kind != UNNAMED:
        own.append(("kind", Literal[profile.kind], field(default=profile.kind, kw_only=True)))
    config = {"__pydantic_config__": {"strict": True, "extra": "forbid"}, "__module__": profile.__module__}
    return make_dataclass(f"{profile.__name__}File", own, bases=(profile,), frozen=True, namespace=config)


def _check(profile: ClusterProfile) -> None:
    KINDS[profile.kind].check(profile)
