"""Saved clusters: one TOML file each, named after the cluster, for people to read, edit and copy."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import tomli_w

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.quoting import one_line
from llmb_tui.errors import Trouble
from llmb_tui.store.files import write_atomic
from llmb_tui.text import clean_line

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FIX = "Mend the file in an editor, or move it away and save the cluster again."


def load_profiles(directory: Path) -> tuple[ClusterProfile, ...]:
    """All saved clusters, by name; none when the directory does not exist.

    Raises Trouble, naming the file and the field, for a file that is no cluster profile.
    """
    return tuple(_load(path) for path in sorted(directory.glob("*.toml")))


def save_profile(directory: Path, profile: ClusterProfile) -> None:
    """Write the profile to `<name>.toml`; atomic, mode 0600. Raises Trouble when a field cannot be right."""
    check_profile(profile)
    table = {key: value for key, value in asdict(profile).items() if value not in (None, ())}
    write_atomic(directory / f"{profile.name}.toml", tomli_w.dumps(table).encode())


def check_profile(profile: ClusterProfile) -> None:
    """Raise Trouble (exit code 1), naming the field, unless every value may be used in commands and scripts."""
    for key, value in asdict(profile).items():
        if isinstance(value, str):
            one_line(value, f"The cluster's {key}")
    if not _NAME.fullmatch(profile.name):
        raise _wrong("name", profile.name, "Use letters, digits, dots, dashes and underscores, at most 64 of them.")
    for field in ("host", "account", "partition"):
        value = getattr(profile, field)
        if not value or " " in value or value.startswith("-"):
            raise _wrong(field, value, "It is one word that does not begin with a dash.")
    if profile.port is not None and not 1 <= profile.port <= 65535:
        raise _wrong("port", str(profile.port), "Ports go from 1 to 65535; SSH's own is 22.")
    if not profile.install_dir.startswith("/"):
        raise _wrong("install_dir", profile.install_dir, "Give an absolute path on the cluster's shared file system.")


def _load(path: Path) -> ClusterProfile:
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - costs 0.1 s, and the first frame needs none

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        _refuse_unknown(table)
        document = json.dumps(table, default=str)  # as JSON a table may become a dataclass and still be strict
        profile = TypeAdapter(ClusterProfile).validate_json(document, strict=True)
        check_profile(profile)
        if profile.name != path.stem:
            raise _wrong("name", profile.name, f"The file's name says {path.stem}: make them the same.")
    except OSError as error:
        raise Trouble(f"Could not read {path}.", f"{error.strerror}.", _FIX) from error
    except ValidationError as error:
        first = error.errors()[0]
        raise _unfit(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}.") from error
    except ValueError as error:  # no TOML, or no UTF-8
        raise _unfit(path, f"{error}.") from error
    except Trouble as trouble:
        raise _unfit(path, f"{trouble.what} {trouble.why}".strip(), trouble.fix) from trouble
    return profile


def _refuse_unknown(table: dict[str, Any]) -> None:
    known = [field.name for field in fields(ClusterProfile)]
    for key in table:
        if key not in known:
            raise _wrong(key, "set", f"There is no such field. Known are: {', '.join(known)}.")


def _unfit(path: Path, why: str, fix: str = _FIX) -> Trouble:
    return Trouble(f"{path} is no cluster profile.", clean_line(why), fix, exit_code=1)


def _wrong(field: str, value: str, fix: str) -> Trouble:
    return Trouble(f"The cluster's {clean_line(field)} cannot be {clean_line(value) or 'empty'}.", "", fix, exit_code=1)
