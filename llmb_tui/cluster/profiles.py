"""Saved clusters: one TOML file each, named after the cluster, for people to read, edit and copy."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import tomli_w

from llmb_tui.catalog.locate import KeyPath, line_of, syntax_line
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profile_check import WrongField, check_profile
from llmb_tui.errors import Trouble
from llmb_tui.store.files import write_atomic
from llmb_tui.text import clean_line

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FIX = "Mend the file in an editor, or move it away and save the cluster again."


class ProfileProblem(Trouble):
    """A file that is no cluster profile: which file, which line, which field. Exit code 1."""

    def __init__(self, file: Path, line: int | None, field: str, why: str, fix: str = _FIX) -> None:
        self.file = file
        self.line = line
        """1-based; None where the file as a whole is meant."""
        self.field = field
        """Dotted path of keys; empty for the whole file."""
        where = f"{file}, line {line}," if line else str(file)
        super().__init__(f"{where} is no cluster profile.", clean_line(why), fix, exit_code=1)


def load_profiles(
    directory: Path, on_problem: Callable[[ProfileProblem], None] | None = None
) -> tuple[ClusterProfile, ...]:
    """All saved clusters, by name; none when the directory does not exist.

    A file that is no cluster profile is told to `on_problem` and passed over; without it, ProfileProblem is raised.
    """
    found = []
    for path in profile_files(directory):
        try:
            found.append(load_profile(path))
        except ProfileProblem as problem:
            if on_problem is None:
                raise
            on_problem(problem)
    return tuple(found)


def profile_files(directory: Path) -> list[Path]:
    """The files of a directory that are meant to be profiles."""
    return sorted(path for path in directory.glob("*.toml") if not path.name.startswith("."))


def load_profile(path: Path) -> ClusterProfile:
    """The cluster in one file. Raises ProfileProblem."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ProfileProblem(path, None, "", f"It cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ProfileProblem(path, None, "", f"It is not UTF-8: {error}.") from error
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProfileProblem(path, syntax_line(error), "", f"It is not TOML: {error}.") from error
    return _profile(path, text, table)


def save_profile(directory: Path, profile: ClusterProfile) -> None:
    """Write the profile to `<name>.toml`; atomic, mode 0600. Raises WrongField when a field cannot be right."""
    check_profile(profile)
    table = {key: value for key, value in profile_document(profile).items() if value not in (None, [], {})}
    write_atomic(directory / f"{profile.name}.toml", tomli_w.dumps(table).encode())


def profile_document(profile: ClusterProfile) -> dict[str, Any]:
    """Every field as JSON and TOML hold it: the mounts a list, the environment a table."""
    return {**asdict(profile), "mounts": list(profile.mounts), "env": dict(profile.env)}


def _profile(path: Path, text: str, table: dict[str, Any]) -> ClusterProfile:
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - costs 0.1 s, and the first frame needs none

    known = [field.name for field in fields(ClusterProfile)]
    for key in table:
        if key not in known:
            why = f"{key} is set, and there is no such field. Known are: {', '.join(known)}."
            raise ProfileProblem(path, line_of(text, (key,)), key, why)
    document = json.dumps(_env_as_pairs(path, text, table), default=str)  # strict mode takes JSON's lists for tuples
    try:
        profile = TypeAdapter(ClusterProfile).validate_json(document, strict=True)
        check_profile(profile)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where: KeyPath = tuple(first["loc"])
        field = ".".join(map(str, where))
        line = line_of(text, where) if first["type"] != "missing" else None
        raise ProfileProblem(path, line, field, f"{field}: {first['msg']}.") from error
    except WrongField as wrong:
        line = line_of(text, tuple(wrong.field.split(".", 1)))
        raise ProfileProblem(path, line, wrong.field, f"{wrong.what} {wrong.why}".strip(), wrong.fix) from wrong
    if profile.name != path.stem:
        why = f"Its name is {profile.name}, but the file's name says {path.stem}."
        raise ProfileProblem(path, line_of(text, ("name",)), "name", why, "Make the two the same.")
    return profile


def _env_as_pairs(path: Path, text: str, table: dict[str, Any]) -> dict[str, Any]:
    """The environment is a table in the file, and pairs in the profile."""
    env = table.get("env", {})
    if not isinstance(env, dict):
        raise ProfileProblem(path, line_of(text, ("env",)), "env", 'env: It is a table, such as NAME = "text".')
    for name, value in env.items():
        if not isinstance(value, str):
            line = line_of(text, ("env", name))
            raise ProfileProblem(path, line, f"env.{name}", f"env.{name}: Its value is text, in quotes.")
    return {**table, "env": list(env.items())} if env else table
