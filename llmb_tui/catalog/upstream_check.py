"""`upstream_faults`: consistency checks of the facts about NVIDIA's scripts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from string import Formatter

from llmb_tui.catalog.settings import PLACEHOLDERS, holds
from llmb_tui.catalog.upstream import ALWAYS, GIVEN, NAMES, PLACES, LaunchScript, Setup, UpstreamScripts, Variables
from llmb_tui.toml.lines import KeyPath

Faults = Iterator[tuple[KeyPath, str]]
"""(path below the checked part, reason) of each fault."""

_CONSTRAINT = re.compile(r"[A-Za-z0-9][\w.-]*[=<]=[\w.+]+( ; [\w .'()<>=!*]+)?", re.ASCII)
_PLACED = re.compile(r"\{(\w+)\}(/.+)?", re.ASCII)


def upstream_faults(procedure: UpstreamScripts, gpus: Collection[str], ignored: Iterable[str]) -> Faults:
    """Every inconsistency. `ignored`: documented variables that the recipe's scripts do not read."""
    if procedure.python and procedure.python_exact:
        yield ("python_exact",), "`python` is set already"
    if constraints := procedure.constraints:
        for line in constraints.requirements:
            if not _CONSTRAINT.fullmatch(line):
                reason = f"{line!r} is not `NAME==VERSION` or `NAME<=VERSION`, with or without a marker"
                yield ("constraints", "file"), f"{constraints.file}: {reason}"
    for index, commit in enumerate(procedure.commits):
        yield from among(("commits", index, "gpus"), commit.gpus, gpus)
    yield from below("setup", _setup(procedure.setup))
    yield from below("launch", _launch(procedure.launch, set(ignored)))


def _setup(setup: Setup) -> Faults:
    if (setup.how == "job") is (setup.time_limit is None):
        yield ("time_limit",), "is required for a job, and not allowed without one"
    yield from _variables(("variables",), setup.variables)
    for field in ("folders", "undo"):
        for index, place in enumerate(getattr(setup, field)):
            yield from _placed((field, index), place)


def _launch(launch: LaunchScript, ignored: set[str]) -> Faults:
    yield from _unknown(("module",), launch.module)
    if bool(launch.module) is not bool(launch.module_directory):
        yield ("module_directory",), "is required for a module, and not allowed without one"
    for field in ("directory", "results", "trace_results", "log", "checkpoints_below", "module_directory"):
        place = getattr(launch, field)
        if place or field in ("directory", "results"):
            yield from _placed((field,), place)
    for field in ("options", "job_name", "log"):
        if bool(getattr(launch, field)) is not (launch.how == "sbatch"):
            yield (field,), "is required for sbatch, and not allowed otherwise"
    for index, option in enumerate(launch.options):
        yield from _unknown(("options", index), option)
    for index, name in enumerate(launch.always):
        if name not in ALWAYS:
            yield ("always", index), f"{name!r} is not one of {', '.join(ALWAYS)}"
    for index, group in enumerate(launch.variables):
        yield from below(("variables", index), _group(group, ignored))
    for index, flaw in enumerate(launch.flaws):
        yield from below(("flaws", index), condition_faults(flaw.when))


def _group(group: Variables, ignored: set[str]) -> Faults:
    yield from _variables(("values",), group.values)
    yield from condition_faults(group.when)
    for name, value in group.values.items():
        if name in ignored:
            yield ("values", name), "has no effect, according to `options`"
        if group.if_given and value not in [f"{{{key}}}" for key in GIVEN]:
            yield ("values", name), f"{value!r} is not one placeholder of {', '.join(GIVEN)}"


def condition_faults(when: Iterable[str]) -> Faults:
    """Invalid conditions, below `when`."""
    for index, condition in enumerate(when):
        try:
            holds(condition, dict.fromkeys(PLACEHOLDERS))
        except ValueError as error:
            yield ("when", index), str(error)


def _variables(path: KeyPath, values: dict[str, str]) -> Faults:
    for name, value in values.items():
        yield from _unknown((*path, name), value)


def _placed(path: KeyPath, place: str) -> Faults:
    """Fault of a path that does not begin with a placeholder of a directory, or leaves that directory."""
    match = _PLACED.fullmatch(place)
    if match is None or match[1] not in (*PLACES, "results") or ".." in place.split("/"):
        yield path, f"{place!r} is not a path below {', '.join(f'{{{name}}}' for name in PLACES)}"
    yield from _unknown(path, place)


def _unknown(path: KeyPath, text: str) -> Faults:
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        yield path, f"{text!r}: {error}"
        return
    for _, name, spec, conversion in parts:
        if name is not None and (name not in NAMES or spec or conversion):
            yield path, f"{text!r}: {{{name}}} is not one of {', '.join(NAMES)}"


def among(path: KeyPath, names: Iterable[str], allowed: Iterable[str]) -> Faults:
    """Faults of names that are not allowed, each with its own path if the names are keys of a table."""
    allowed = tuple(allowed)
    for name in names:
        if name not in allowed:
            where = (*path, name) if isinstance(names, dict) else path
            yield where, f"{name!r} is not one of {comma_list(allowed)}"


def comma_list(names: Iterable[str]) -> str:
    """The names, or `none`."""
    return ", ".join(names) or "none"


def below(path: str | KeyPath, faults: Faults) -> Faults:
    """The faults with the path of their part in front."""
    start = (path,) if isinstance(path, str) else path
    yield from (((*start, *keys), reason) for keys, reason in faults)
