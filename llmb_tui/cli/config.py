"""`config`: where settings live, what is in force and why, and whether every file can be read."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from llmb_tui.catalog.load import PresetProblem, load_presets, preset_files, read_preset
from llmb_tui.cli.output import print_json, print_line, print_table
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profiles import ProfileProblem, load_profiles, profile_document, profile_files
from llmb_tui.errors import Trouble
from llmb_tui.launch.runs import Runs
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import CONFIG_VARIABLE, STATE_VARIABLE, Places

_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a file of the user's own."""

    file: str
    line: int | None
    field: str
    what: str
    why: str
    mend: str


def config_verb(arguments: argparse.Namespace) -> int:
    """`path`, `show` or `validate`."""
    places = Places.of_user()
    verbs = {"path": _path, "show": _show, "validate": _validate}
    return verbs[arguments.action](places, arguments.json)


def _path(places: Places, as_json: bool) -> int:
    rows = list(_places(places))
    if as_json:
        print_json({name: {"path": path, "from": source} for name, path, source in rows})
    else:
        print_table(("setting", "path", "from"), rows)
    return 0


def _places(places: Places) -> Iterator[tuple[str, str, str]]:
    for names, variable in (
        (("config", "clusters", "presets"), CONFIG_VARIABLE),
        (("state", "runs", "journal"), STATE_VARIABLE),
    ):
        source = variable if os.environ.get(variable) else _DEFAULT
        for name in names:
            yield name, str(getattr(places, name)), source


def _show(places: Places, as_json: bool) -> int:
    """Settings in force. A file that cannot be read is left out here: `validate` names it."""
    profiles = load_profiles(places.clusters, lambda _: None)
    files = {profile.name: str(places.clusters / f"{profile.name}.toml") for profile in profiles}
    own = list(_own_presets(places))
    if as_json:
        where = {name: {"path": path, "from": source} for name, path, source in _places(places)}
        clusters = [{"file": files[p.name], "settings": _settings(p)} for p in profiles]
        presets = [{"preset": name, "file": file} for name, file in own]
        print_json({"places": where, "clusters": clusters, "presets": presets})
        return 0
    rows = list(_places(places))
    for profile in profiles:
        for name, setting in _settings(profile).items():
            source = files[profile.name] if setting["from"] == "file" else setting["from"]
            rows.append((f"{profile.name}.{name}", _shown(setting["value"]), source))
    rows += [(f"preset {name}", name, file) for name, file in own]
    print_table(("setting", "value", "from"), rows)
    return 0


def _settings(profile: ClusterProfile) -> dict[str, dict[str, Any]]:
    """Every field of a profile; one that is as a profile has it from the start may stand in the file all the same."""
    document = profile_document(profile)
    start = {field.name: field.default for field in fields(ClusterProfile)}
    return {
        name: {"value": value, "from": _DEFAULT if getattr(profile, name) == start[name] else "file"}
        for name, value in document.items()
    }


def _shown(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return str(value)


def _own_presets(places: Places) -> Iterator[tuple[str, str]]:
    for file in preset_files([places.presets]):
        with contextlib.suppress(PresetProblem):
            yield read_preset(file).id, str(file)


def _validate(places: Places, as_json: bool) -> int:
    """Read every file; 1 when one cannot be read."""
    faults = list(_faults(places))
    checked = len(profile_files(places.clusters)) + len(list(preset_files([places.presets])))
    if as_json:
        print_json({"ok": not faults, "files": checked, "faults": [asdict(fault) for fault in faults]})
    else:
        for fault in faults:
            for line in filter(None, (fault.what, f"  {fault.why}" if fault.why else "", f"  {fault.mend}")):
                print_line(line)
        print_line(f"{checked} files of clusters and presets, journal and runs: {len(faults) or 'no'} faults")
    return 1 if faults else 0


def _faults(places: Places) -> Iterator[Fault]:
    found: list[PresetProblem | ProfileProblem] = []
    load_profiles(places.clusters, found.append)
    load_presets((places.presets,), found.append)
    for problem in found:
        yield Fault(str(problem.file), problem.line, problem.field, problem.what, problem.why, problem.fix)
    for trouble in Runs(places).unreadable():
        yield _of_state(places.runs, trouble)
    try:
        Journal(places.journal).read()
    except Trouble as trouble:
        yield _of_state(places.journal, trouble)


def _of_state(path: Path, trouble: Trouble) -> Fault:
    mend = trouble.fix or "Mend the permissions of the file, or move it away."
    return Fault(str(path), None, "", trouble.what, trouble.why, mend)
