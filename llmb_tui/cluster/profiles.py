"""Saved clusters: one TOML file each, named after the cluster, for people to read, edit and copy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import tomli_w

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profile_check import WrongField
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.runai.profile_check import check_runai_profile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.cluster.slurm.profile_check import check_profile
from llmb_tui.store.files import write_atomic
from llmb_tui.toml.read import FileProblem, read_toml, toml_files

_KIND = re.compile(r"""(?m)^kind\s*=\s*["']runai["']""")


class ProfileProblem(FileProblem):
    """A file that is no cluster profile. Exit code 1."""

    kind = "cluster profile"


@dataclass(frozen=True)
class _Slurm(SlurmProfile):
    """A profile as its file holds it: the environment is a table."""

    __pydantic_config__: ClassVar = {"strict": True, "extra": "forbid"}
    env: dict[str, str] = field(default_factory=dict)  # type: ignore[assignment]  # pairs, in the profile


@dataclass(frozen=True)
class _Runai(RunaiProfile):
    """As above, and it says of which kind it is."""

    __pydantic_config__: ClassVar = {"strict": True, "extra": "forbid"}
    env: dict[str, str] = field(default_factory=dict)  # type: ignore[assignment]  # pairs, in the profile
    kind: Literal["runai"] = "runai"


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
    """Every field as JSON and TOML hold it: the mounts a list, the environment a table; and the kind but Slurm."""
    kind = {"kind": "runai"} if isinstance(profile, RunaiProfile) else {}
    return {**kind, **asdict(profile), "mounts": list(profile.mounts), "env": dict(profile.env)}


def is_runai(path: Path) -> bool:
    """Whether a file says that it is of that kind; False for one that cannot be read."""
    try:
        return path.is_file() and bool(_KIND.search(path.read_text(encoding="utf-8")))  # a pipe would be waited for
    except (OSError, ValueError):
        return False


def _read(path: Path) -> tuple[ClusterProfile, str]:
    form: type[_Slurm | _Runai] = _Runai if is_runai(path) else _Slurm
    document, text = read_toml(path, form, ProfileProblem)
    values = {**asdict(document), "env": tuple(document.env.items())}
    kind = RunaiProfile if values.pop("kind", None) else SlurmProfile
    return kind(**values), text


def _check(profile: ClusterProfile) -> None:
    if isinstance(profile, RunaiProfile):
        check_runai_profile(profile)
    else:
        check_profile(profile)
