"""`upstream_faults`: what a recipe's own scripts must agree on, beyond the types of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from string import Formatter

from llmb_tui.catalog.settings import PLACEHOLDERS, holds
from llmb_tui.catalog.upstream import (
    ALWAYS,
    GIVEN,
    NAMES,
    PLACES,
    Constraints,
    LaunchScript,
    Setup,
    UpstreamScripts,
    Variables,
)
from llmb_tui.toml.lines import KeyPath

Faults = Iterator[tuple[KeyPath, str]]
"""Keys, below the part that is looked at, and why."""

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_ADDRESS = re.compile(r"https://[A-Za-z0-9.-]+(/[A-Za-z0-9._-]+)+", re.ASCII)
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9.]+", re.ASCII)
_CONSTRAINT = re.compile(r"[A-Za-z0-9][\w.-]*[=<]=[\w.+]+( ; [\w .'()<>=!*]+)?", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_MODULE = re.compile(r"[\w.{}]+", re.ASCII)
_PYTHON = re.compile(r"3\.\d+(\.\d+)?", re.ASCII)
CLOCK = re.compile(r"\d+:\d\d:\d\d", re.ASCII)
# Names become parts of paths on the cluster.
_BELOW = re.compile(r"[A-Za-z0-9_][\w.+-]*(/[A-Za-z0-9_][\w.+-]*)*", re.ASCII)
_PLACED = re.compile(r"\{(\w+)\}(/.+)?", re.ASCII)


def upstream_faults(procedure: UpstreamScripts, gpus: Iterable[str], ignored: Iterable[str]) -> Faults:
    """Every disagreement. `ignored` are the documented variables that the recipe's scripts do not read."""
    patterns = (
        ("repository", _ADDRESS, procedure.repository),
        ("tag", _BELOW, procedure.tag),
        ("folder", _BELOW, procedure.folder),
        ("checkout", _BELOW, procedure.checkout),
        ("images", _BELOW, procedure.images or "none"),
        ("python", _PYTHON, procedure.python or "3.0"),
        ("python_exact", _PYTHON, procedure.python_exact or "3.0"),
    )
    yield from _unlike(patterns)
    if procedure.python and procedure.python_exact:
        yield ("python_exact",), "there is an oldest Python already"
    for index, pin in enumerate(procedure.pins):
        yield from _unlike([(("pins", index, "requirement"), _REQUIREMENT, pin.requirement)])
    if procedure.constraints:
        yield from below("constraints", _constraints(procedure.constraints))
    types = tuple(gpus)
    for index, commit in enumerate(procedure.commits):
        path = ("commits", index)
        yield from _unlike([((*path, "repository"), _ADDRESS, commit.repository)])
        yield from _unlike([((*path, "commit"), _COMMIT, commit.commit)])
        for gpu in commit.gpus:
            if gpu not in types:
                yield (*path, "gpus"), f"{gpu!r} is none of {', '.join(types)}"
    yield from below("setup", _setup(procedure.setup))
    yield from below("launch", _launch(procedure.launch, set(ignored)))


def _constraints(constraints: Constraints) -> Faults:
    yield from _unlike([(("file",), _BELOW, constraints.file), (("resolved",), _DAY, constraints.resolved)])
    for line in constraints.requirements:
        if not _CONSTRAINT.fullmatch(line):
            yield (
                ("file",),
                f"{constraints.file}: {line!r} is no `NAME==VERSION` or `NAME<=VERSION`, with or without a marker",
            )


def _setup(setup: Setup) -> Faults:
    yield from _unlike([(("script",), _BELOW, setup.script), (("time_limit",), CLOCK, setup.time_limit or "0:00:00")])
    if (setup.how == "job") is (setup.time_limit is None):
        yield ("time_limit",), "belongs to a job, and every job has one"
    yield from _variables(("variables",), setup.variables)
    yield from _unlike((("clear", index), _VARIABLE, name) for index, name in enumerate(setup.clear))
    for field in ("folders", "undo"):
        for index, place in enumerate(getattr(setup, field)):
            yield from _placed((field, index), place)


def _launch(launch: LaunchScript, ignored: set[str]) -> Faults:
    yield from _unlike([(("script",), _BELOW, launch.script)])
    if launch.module:
        yield from _unlike([(("module",), _MODULE, launch.module)])
    yield from _unknown(("module",), launch.module)
    if bool(launch.module) is not bool(launch.module_directory):
        yield ("module_directory",), "belongs to a module, and a module needs it"
    for field in ("directory", "results", "trace_results", "log", "checkpoints_below", "module_directory"):
        place = getattr(launch, field)
        if place or field in ("directory", "results"):
            yield from _placed((field,), place)
    for field in ("options", "job_name", "log"):
        if bool(getattr(launch, field)) is not (launch.how == "sbatch"):
            yield (field,), "belongs to sbatch, and sbatch needs it"
    for index, option in enumerate(launch.options):
        yield from _unknown(("options", index), option)
    yield from _unlike((("clear", index), _VARIABLE, name) for index, name in enumerate(launch.clear))
    for index, name in enumerate(launch.always):
        if name not in ALWAYS:
            yield ("always", index), f"{name!r} is none of {', '.join(ALWAYS)}"
    for index, group in enumerate(launch.variables):
        yield from below(("variables", index), _group(group, ignored))
    for index, flaw in enumerate(launch.flaws):
        yield from below(("flaws", index), condition_faults(flaw.when))


def _group(group: Variables, ignored: set[str]) -> Faults:
    yield from _variables(("values",), group.values)
    yield from condition_faults(group.when)
    for name, value in group.values.items():
        if name in ignored:
            yield ("values", name), "is said to have no effect, in `options`"
        if group.if_given and value not in [f"{{{key}}}" for key in GIVEN]:
            yield ("values", name), f"{value!r} is not one placeholder of {', '.join(GIVEN)}"


def condition_faults(when: Iterable[str]) -> Faults:
    """Conditions that cannot be read, below `when`."""
    for index, condition in enumerate(when):
        try:
            holds(condition, dict.fromkeys(PLACEHOLDERS))
        except ValueError as error:
            yield ("when", index), str(error)


def _variables(path: KeyPath, values: dict[str, str]) -> Faults:
    for name, value in values.items():
        yield from _unlike([((*path, name), _VARIABLE, name)])
        yield from _unknown((*path, name), value)


def _placed(path: KeyPath, place: str) -> Faults:
    """A path on the cluster begins with a place, and does not lead out of it."""
    match = _PLACED.fullmatch(place)
    if match is None or match[1] not in (*PLACES, "results") or ".." in place.split("/"):
        yield path, f"{place!r} is no path below {', '.join(f'{{{name}}}' for name in PLACES)}"
    yield from _unknown(path, place)


def _unknown(path: KeyPath, text: str) -> Faults:
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        yield path, f"{text!r}: {error}"
        return
    for _, name, spec, conversion in parts:
        if name is not None and (name not in NAMES or spec or conversion):
            yield path, f"{text!r}: {{{name}}} is none of {', '.join(NAMES)}"


def _unlike(patterns: Iterable[tuple[str | KeyPath, re.Pattern[str], str]]) -> Faults:
    for path, pattern, value in patterns:
        if not pattern.fullmatch(value):
            yield (path,) if isinstance(path, str) else path, f"{value!r} cannot be used here"


def below(path: str | KeyPath, faults: Faults) -> Faults:
    """The same faults, seen from where the part is."""
    start = (path,) if isinstance(path, str) else path
    yield from (((*start, *keys), reason) for keys, reason in faults)
