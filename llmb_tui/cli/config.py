"""`config`: paths and values of the settings with their origins, and a check of every file."""

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
from llmb_tui.cli.user import setting_flags
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
    """Run `path`, `show` or `validate`."""
    paths = UserPaths.of_user()
    verbs = {"path": _path, "show": _show, "validate": _validate}
    answer, exit_code = verbs[arguments.action](paths, setting_flags(arguments))
    write(answer, arguments)
    return exit_code


def _path(paths: UserPaths, _: Sequence[str]) -> tuple[Answer, int]:
    rows = [*_path_rows(paths)]
    grid = Grid("", Table.of(("setting", "path", "from"), rows))
    return Answer("Places", lambda: (grid,), lambda: _paths_document(rows)), 0


def _paths_document(rows: Iterable[tuple[str, str, str]]) -> dict[str, dict[str, str]]:
    return {name: {"path": path, "from": source} for name, path, source in rows}


def _path_rows(paths: UserPaths) -> Iterator[tuple[str, str, str]]:
    for names, variable in (
        (("config", "settings", "clusters", "presets", "failures"), CONFIG_VARIABLE),
        (("state", "runs", "journal"), STATE_VARIABLE),
    ):
        source = variable if os.environ.get(variable) else _DEFAULT
        for name in names:
            yield name, str(getattr(paths, name)), source


def _show(paths: UserPaths, flags: Sequence[str]) -> tuple[Answer, int]:
    """Settings in force, without clusters whose file cannot be read: `validate` reports these."""
    settings, rows, in_file = list(_in_force(paths, flags)), list(_path_rows(paths)), str(paths.settings)
    profiles = load_profiles(paths.clusters, lambda _: None)
    files = {profile.name: str(paths.clusters / f"{profile.name}.toml") for profile in profiles}
    presets = list(_user_presets(paths))
    document = {
        "places": _paths_document(rows),
        "settings": {setting.name: {"value": setting.value, "from": setting.source} for setting in settings},
        "clusters": [{"file": files[profile.name], "settings": _settings(profile)} for profile in profiles],
        "presets": [{"preset": name, "file": file} for name, file in presets],
    }
    for setting in settings:
        rows.append((setting.name, _as_text(setting.value), in_file if setting.source == "file" else setting.source))
    for profile in profiles:
        for name, entry in _settings(profile).items():
            source = files[profile.name] if entry["from"] == "file" else entry["from"]
            rows.append((f"{profile.name}.{name}", _as_text(entry["value"]), source))
    rows += [(f"preset {name}", name, file) for name, file in presets]
    grid = Grid("", Table.of(("setting", "value", "from"), rows))
    return Answer("Settings", lambda: (grid,), lambda: document), 0


def _in_force(paths: UserPaths, flags: Sequence[str]) -> Iterator[Setting]:
    """Settings in force, followed by the keys with their default."""
    from llmb_tui.ui.screen_settings import keys_by_id  # the screens define the bindings

    settings = settings_in_force(paths.settings, flags)
    yield from settings
    names = {setting.name for setting in settings}
    for name, key in sorted(keys_by_id().items()):
        if f"keys.{name}" not in names:
            yield Setting(f"keys.{name}", key, "default")


def _settings(profile: ClusterProfile) -> dict[str, dict[str, Any]]:
    """Fields of a profile with their origin. The file may also state a field that has its default."""
    document = profile_document(profile)
    defaults = {field.name: field.default for field in fields(profile)}
    return {
        name: {"value": value, "from": _DEFAULT if getattr(profile, name) == defaults[name] else "file"}
        for name, value in document.items()
        if name in defaults
    }


def _as_text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in value.items()) or "–"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return str(value)


def _user_presets(paths: UserPaths) -> Iterator[tuple[str, str]]:
    for file in toml_files([paths.presets]):
        with contextlib.suppress(PresetError):
            yield read_preset(file).id, str(file)


def _validate(paths: UserPaths, flags: Sequence[str]) -> tuple[Answer, int]:
    """Check every file. The exit code is 1 if one has a fault."""
    faults = [*_faults_of_settings(paths, flags), *_faults(paths)]
    checked = len(list(toml_files([paths.clusters, paths.presets, paths.failures]))) + paths.settings.exists()
    document = {"ok": not faults, "files": checked, "faults": faults}
    return Answer("Faults", lambda: tuple(_fault_blocks(faults, checked)), lambda: document), 1 if faults else 0


def _fault_blocks(faults: Sequence[dict[str, Any]], checked: int) -> Iterator[Block]:
    """Blocks of the faults. Faults of a file with the same fix are in one block, with the fix once."""
    label = severity_label("error")
    for (_, fix), group in groupby(faults, lambda fault: (fault["file"], fault["mend"])):
        yield Remarks(tuple(Remark(label, f"{fault['what']} {fault['why']}".rstrip()) for fault in group))
        yield Text(fix)
    files = f"{checked} files of settings, clusters, presets and failure rules, journal and runs"
    yield Text(f"{files}: {len(faults) or 'no'} faults")


def _faults_of_settings(paths: UserPaths, flags: Sequence[str]) -> Iterator[dict[str, Any]]:
    try:
        settings = load_settings(paths.settings, flags)
    except SettingError as problem:
        yield _fault(problem, problem.file, problem.line, problem.key)
        return
    from llmb_tui.ui.screen_settings import screen_faults  # the screens define their settings

    in_file = {each.name for each in settings_in_force(paths.settings, flags) if each.source == "file"}
    for key, why in screen_faults(settings):
        line = key_line(paths.settings, key) if key in in_file else None
        where = f"{paths.settings}, line {line}," if line else key
        error = LlmbError(f"{where} has no effect.", f"{key}: {why}", "Correct it, or remove it.")
        yield _fault(error, paths.settings if line else None, line, key)


def _faults(paths: UserPaths) -> Iterator[dict[str, Any]]:
    problems: list[TomlFileError] = []
    load_profiles(paths.clusters, problems.append)
    load_presets((paths.presets,), problems.append)
    problems += example_problems(load_rules([paths.failures], problems.append))
    for problem in problems:
        for fault in (problem, *problem.others):  # each has an entry, so that `why` need not list the others
            yield _fault(fault, fault.file, fault.line, fault.field) | {"why": ""}
    for error in Runs(paths).unreadable():
        yield _fault(error, paths.runs)
    try:
        Journal(paths.journal).read()
    except LlmbError as error:
        yield _fault(error, paths.journal)


def _fault(error: LlmbError, file: Path | None, line: int | None = None, field: str = "") -> dict[str, Any]:
    """JSON object of a fault in one of the user's files."""
    fix = error.fix or "Change the permissions of the file, or move it."
    where = {"file": str(file or ""), "line": line, "field": field}
    return {**where, "what": error.what, "why": error.why, "mend": fix}
