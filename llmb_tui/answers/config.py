"""The answers to `config`: places of files, settings in force with their sources, and faults of the user's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, Final

from llmb_tui.answers.answer import Answer
from llmb_tui.answers.blocks import Block, Grid, Remark, Remarks, Text
from llmb_tui.answers.table import Table
from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profiles import profile_document
from llmb_tui.language.states import severity_label
from llmb_tui.store.settings import Setting

Place = tuple[str, str, str]
"""Name of a file or folder, its path, and the source of that: a variable or `default`."""
Fault = Mapping[str, Any]
"""JSON object of a fault in a file of the user."""
DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that is in force on this machine."""

    places: Sequence[Place]
    settings: Sequence[Setting]
    settings_file: str
    clusters: Sequence[tuple[ClusterProfile, str]]
    """Profiles with their files."""
    presets: Sequence[tuple[str, str]]
    """Ids of the user's own presets with their files."""


def places_of_files(places: Sequence[Place]) -> Answer:
    """The files and folders of the program."""
    return Answer(
        "Places",
        lambda: (Grid("", Table.of(("setting", "path", "from"), places)),),
        lambda: _places_document(places),
    )


def settings_answer(found: Configuration) -> Answer:
    """Each setting with its value and its source."""
    return Answer(
        "Settings",
        lambda: (Grid("", Table.of(("setting", "value", "from"), _rows(found))),),
        lambda: {
            "places": _places_document(found.places),
            "settings": {one.name: {"value": one.value, "from": one.source} for one in found.settings},
            "clusters": [{"file": file, "settings": _settings(profile)} for profile, file in found.clusters],
            "presets": [{"preset": name, "file": file} for name, file in found.presets],
        },
    )


def faults_of_files(faults: Sequence[Fault], checked: int) -> Answer:
    """The faults of `checked` files."""
    return Answer(
        "Faults",
        lambda: tuple(_fault_blocks(faults, checked)),
        lambda: {"ok": not faults, "files": checked, "faults": faults},
    )


def _places_document(places: Sequence[Place]) -> dict[str, dict[str, str]]:
    return {name: {"path": path, "from": source} for name, path, source in places}


def _rows(found: Configuration) -> Iterator[tuple[str, str, str]]:
    yield from found.places
    for one in found.settings:
        yield one.name, _as_text(one.value), found.settings_file if one.source == "file" else one.source
    for profile, file in found.clusters:
        for name, setting in _settings(profile).items():
            source = file if setting["from"] == "file" else setting["from"]
            yield f"{profile.name}.{name}", _as_text(setting["value"]), source
    yield from ((f"preset {name}", name, file) for name, file in found.presets)


def _settings(profile: ClusterProfile) -> dict[str, dict[str, Any]]:
    """The fields of a profile with their sources; a value that is the default may be in the file too."""
    start = {field.name: field.default for field in fields(profile)}
    return {
        name: {"value": value, "from": DEFAULT if getattr(profile, name) == start[name] else "file"}
        for name, value in profile_document(profile).items()
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


def _fault_blocks(faults: Sequence[Fault], checked: int) -> Iterator[Block]:
    """Faults of a file that have the same fix stand together, with the fix once."""
    label = severity_label("error")
    for (_, fix), group in groupby(faults, lambda fault: (fault["file"], fault["mend"])):
        yield Remarks(tuple(Remark(label, f"{fault['what']} {fault['why']}".rstrip()) for fault in group))
        yield Text(fix)
    files = f"{checked} files of settings, clusters, presets and failure rules, journal and runs"
    yield Text(f"{files}: {len(faults) or 'no'} faults")
