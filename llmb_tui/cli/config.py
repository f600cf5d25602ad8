"""`config`: where settings live, what is in force and why, and whether every file can be read."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from typing import Any

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Grid, Remark, Remarks, Text
from llmb_tui.answers.table import Table
from llmb_tui.catalog.load import PresetError, load_presets, read_preset
from llmb_tui.cli.output import write
from llmb_tui.cli.user import flags_of
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profiles import load_profiles, profile_document
from llmb_tui.diagnosis.load import example_problems, load_rules
from llmb_tui.errors import LlmbError
from llmb_tui.language.states import severity_label
from llmb_tui.launch.runs import Runs
from llmb_tui.store.journal import Journal
from llmb_tui.store.paths import CONFIG_VARIABLE, STATE_VARIABLE, UserPaths
from llmb_tui.store.settings import Setting, SettingError, key_line, load_settings, settings_in_force
from llmb_tui.toml.read import TomlFileError, toml_files

_DEFAULT = "default"


def config_verb(arguments: argparse.Namespace) -> int:
    """`path`, `show` or `validate`."""
    places = UserPaths.of_user()
    verbs = {"path": _path, "show": _show, "validate": _validate}
    answer, exit_code = verbs[arguments.action](places, flags_of(arguments))
    write(answer, arguments)
    return exit_code


def _path(places: UserPaths, _: Sequence[str]) -> tuple[Answer, int]:
    rows = [*_places(places)]
    grid = Grid("", Table.of(("setting", "path", "from"), rows))
    return Answer("Places", lambda: (grid,), lambda: _places_document(rows)), 0


def _places_document(rows: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    return {name: {"path": path, "from": source} for name, path, source in rows}


def _places(places: UserPaths) -> Iterator[tuple[str, str, str]]:
    for names, variable in (
        (("config", "settings", "clusters", "presets", "failures"), CONFIG_VARIABLE),
        (("state", "runs", "journal"), STATE_VARIABLE),
    ):
        source = variable if os.environ.get(variable) else _DEFAULT
        for name in names:
            yield name, str(getattr(places, name)), source


def _show(places: UserPaths, flags: Sequence[str]) -> tuple[Answer, int]:
    """Settings in force. A cluster's file that cannot be read is left out here: `validate` names it."""
    settings, rows, in_file = list(_in_force(places, flags)), list(_places(places)), str(places.settings)
    profiles = load_profiles(places.clusters, lambda _: None)
    files = {profile.name: str(places.clusters / f"{profile.name}.toml") for profile in profiles}
    presets = list(_own_presets(places))
    document = {
        "places": _places_document(rows),
        "settings": {one.name: {"value": one.value, "from": one.source} for one in settings},
        "clusters": [{"file": files[profile.name], "settings": _settings(profile)} for profile in profiles],
        "presets": [{"preset": name, "file": file} for name, file in presets],
    }
    rows += [(one.name, _as_text(one.value), in_file if one.source == "file" else one.source) for one in settings]
    for profile in profiles:
        for name, setting in _settings(profile).items():
            source = files[profile.name] if setting["from"] == "file" else setting["from"]
            rows.append((f"{profile.name}.{name}", _as_text(setting["value"]), source))
    rows += [(f"preset {name}", name, file) for name, file in presets]
    grid = Grid("", Table.of(("setting", "value", "from"), rows))
    return Answer("Settings", lambda: (grid,), lambda: document), 0


def _in_force(places: UserPaths, flags: Sequence[str]) -> Iterator[Setting]:
    """The settings, and after them the keys that are as they always are."""
    from llmb_tui.ui.screen_settings import keys_by_id  # the bindings stand on the screens

    settings = settings_in_force(places.settings, flags)
    yield from settings
    names = {one.name for one in settings}
    for name, key in sorted(keys_by_id().items()):
        if f"keys.{name}" not in names:
            yield Setting(f"keys.{name}", key, "default")


def _settings(profile: ClusterProfile) -> dict[str, dict[str, Any]]:
    """Every field of a profile; one that is as a profile has it from the start may stand in the file all the same."""
    document = profile_document(profile)
    start = {field.name: field.default for field in fields(profile)}
    return {
        name: {"value": value, "from": _DEFAULT if getattr(profile, name) == start[name] else "file"}
        for name, value in document.items()
        if name in start
    }


def _as_text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return str(value)


def _own_presets(places: UserPaths) -> Iterator[tuple[str, str]]:
    for file in toml_files([places.presets]):
        with contextlib.suppress(PresetError):
            yield read_preset(file).id, str(file)


def _validate(places: UserPaths, flags: Sequence[str]) -> tuple[Answer, int]:
    """Read every file; 1 when one cannot be read."""
    faults = [*_faults_of_settings(places, flags), *_faults(places)]
    checked = len(list(toml_files([places.clusters, places.presets, places.failures]))) + places.settings.exists()
    document = {"ok": not faults, "files": checked, "faults": faults}
    return Answer("Faults", lambda: tuple(_fault_blocks(faults, checked)), lambda: document), 1 if faults else 0


def _fault_blocks(faults: Sequence[dict[str, Any]], checked: int) -> Iterator[Block]:
    """Faults of a file that have the same fix stand together, with the fix once."""
    label = severity_label("error")
    for (_, fix), group in groupby(faults, lambda fault: (fault["file"], fault["mend"])):
        yield Remarks(tuple(Remark(label, f"{fault['what']} {fault['why']}".rstrip()) for fault in group))
        yield Text(fix)
    files = f"{checked} files of settings, clusters, presets and failure rules, journal and runs"
    yield Text(f"{files}: {len(faults) or 'no'} faults")


def _faults_of_settings(places: UserPaths, flags: Sequence[str]) -> Iterator[dict[str, Any]]:
    try:
        settings = load_settings(places.settings, flags)
    except SettingError as problem:
        yield _fault(problem, problem.file, problem.line, problem.key)
        return
    from llmb_tui.ui.screen_settings import screen_faults  # what can be set of the screen, the screen knows

    in_file = {one.name for one in settings_in_force(places.settings, flags) if one.source == "file"}
    for key, why in screen_faults(settings):
        line = key_line(places.settings, key) if key in in_file else None
        where = f"{places.settings}, line {line}," if line else key
        error = LlmbError(f"{where} has no effect.", f"{key}: {why}", "Correct it, or take it out.")
        yield _fault(error, places.settings if line else None, line, key)


def _faults(places: UserPaths) -> Iterator[dict[str, Any]]:
    problems: list[TomlFileError] = []
    load_profiles(places.clusters, problems.append)
    load_presets((places.presets,), problems.append)
    problems += example_problems(load_rules([places.failures], problems.append))
    for problem in problems:
        for one in (problem, *problem.others):
            yield _fault(one, one.file, one.line, one.field) | {"why": ""}  # the others of the file come by themselves
    for error in Runs(places).unreadable():
        yield _fault(error, places.runs)
    try:
        Journal(places.journal).read()
    except LlmbError as error:
        yield _fault(error, places.journal)


def _fault(error: LlmbError, file: Path | None, line: int | None = None, field: str = "") -> dict[str, Any]:
    """Something wrong with a file of the user's own, as JSON."""
    fix = error.fix or "Change the permissions of the file, or move it."
    where = {"file": str(file or ""), "line": line, "field": field}
    return {**where, "what": error.what, "why": error.why, "mend": fix}
