"""`read_yaml`, `read_text`: readers for both forms of llmb-run's bulk files (`llmb-run submit -f`).

Settings that no run of this program can have, such as variables of one task or proxies by name, are rejected with an
explanation. (llmb-run 1.15: `task_loader.py`, `Bulk_Examples.md`.)
"""

from __future__ import annotations

import ast
import itertools
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from llmb_tui.cluster.yaml_text import YamlError, nodes_of, yaml_of
from llmb_tui.plan.selection import LAYOUT
from llmb_tui.suites.suite_text import NO_NUMBER, FileRun, SuiteFileError, SuiteText, TomlSuite, content
from llmb_tui.toml.lines import KeyPath, Lines
from llmb_tui.toml.read import known_names

_HEADER = re.compile(r"(?P<workload>.+)_(?P<size>[0-9.]+[bt])")
_TASK = re.compile(r"\((.*)\)")
_MOST_VALUES = 100_000
_FOR_ALL = ("dtypes", "scales", "repeats", "add_profile")
"""Settings that a task inherits from its workload if it does not set them itself."""
_OF_WORKLOAD = ("defaults", *_FOR_ALL, "tasks")
_OF_TASK = (*_FOR_ALL, "profile", "proxy", "overrides")
_PARAMS = {**{field.name: field.name for field in LAYOUT}, "max_steps": "steps"}
"""llmb-run passes them to the launch script as variables in upper case."""
_NO_ENV = "cannot be set for one run. Set variables for every run of a cluster in its profile, as `env`"


def read_yaml(file: Path) -> SuiteText:
    """Read the YAML form. Raises SuiteFileError."""
    text = content(file)
    source = SuiteText(file, Lines(), TomlSuite())
    try:
        _note_lines(source, nodes_of(text))  # reject too many values before creating any of them
        data = yaml_of(text)
    except YamlError as error:
        why = f": {error.problem}" if error.problem else ""
        raise SuiteFileError(file, error.line, "", f"is not YAML{why}") from error
    except RecursionError as error:
        raise SuiteFileError(file, None, "", "is not YAML: it refers to itself, or is nested too deeply") from error
    if not isinstance(data, dict):
        raise source.problem((), "has no workloads: each is a key such as `pretrain_nemotron4_15b`, with its `tasks`")
    for header, spec in data.items():
        _workload(source, header, spec)
    return source


def read_text(file: Path) -> SuiteText:
    """Read the text form: a header `WORKLOAD_SIZE:`, then lines `(dtypes, scales, repeats[, profile])`."""
    source = SuiteText(file, Lines(), TomlSuite())
    named: dict[str, str] | None = None
    header: KeyPath = ()
    for number, line in enumerate(map(str.strip, content(file).splitlines()), start=1):
        here: KeyPath = (*header, number) if named else (line,)
        source.lines.note(here, number)
        if not line or line.startswith("#"):
            continue
        if line.endswith(":"):
            header = (line[:-1],)
            source.lines.note(header, number)
            named = _header(source, line[:-1], header)
        elif (match := _TASK.fullmatch(line)) and named is not None:
            _tuple(source, match[1], named, here)
        elif match:
            raise source.problem(here, "is not below a header such as `pretrain_nemotron4_15b:`")
        else:
            raise source.problem(here, "is neither a header `WORKLOAD_SIZE:` nor `(dtypes, scales, repeats)`")
    return source


def _tuple(source: SuiteText, words: str, named: Mapping[str, str], here: KeyPath) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # would be printed otherwise
            parts = ast.literal_eval(f"({words},)")
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise source.problem(here, "is not a list of values such as `('bf16', [16, 32], 3)`") from error
    if not 3 <= len(parts) <= 4:
        raise source.problem(here, "must have dtypes, scales and repeats, and optionally True for a profile")
    _task(source, named, dict(zip(("dtypes", "scales", "repeats", "profile"), parts, strict=False)), {}, here)


def _workload(source: SuiteText, header: object, spec: object) -> None:
    path: KeyPath = (str(header),)
    named = _header(source, str(header), path)
    spec = _table(source, path, spec, _OF_WORKLOAD)
    defaults = _variables(source, (*path, "defaults"), spec.get("defaults"))
    tasks = spec.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        raise source.problem((*path, "tasks"), "is missing: llmb-run only starts the entries below `tasks`")
    for index, task in enumerate(tasks):
        here = (*path, "tasks", index)
        own = _table(source, here, task, _OF_TASK)
        params = defaults | _variables(source, (*here, "overrides"), own.get("overrides"))
        if own.get("proxy"):
            why = "is not supported: a recipe's proxy is the one that it lists for that scale; remove `proxy`"
            raise source.problem((*here, "proxy"), why)
        _task(source, named, {name: spec[name] for name in _FOR_ALL if name in spec} | {**own}, params, here)


def _task(
    source: SuiteText, named: Mapping[str, str], task: Mapping[str, Any], params: Mapping[str, list[Any]], here: KeyPath
) -> None:
    """Request every combination of a task, in llmb-run's order."""
    repeats = task.get("repeats", 1)
    if type(repeats) is not int or repeats < 1:
        raise source.problem((*here, "repeats"), NO_NUMBER)
    for name in ("profile", "add_profile"):
        if not isinstance(task.get(name, False), bool):
            raise source.problem((*here, name), "must be true or false")
    profile, add_profile = task.get("profile"), task.get("add_profile")
    if profile and add_profile:
        raise source.problem((*here, "add_profile"), "cannot be combined with `profile`")
    where = {name: _inherited(source, here, name) for name in ("dtypes", "scales")}
    dtypes, scales = (_list(source, path, task.get(name)) for name, path in where.items())
    paths: dict[str, KeyPath] = {"": here, "dtype": where["dtypes"], "scale": where["scales"]}
    paths |= {"workload": here[:1], "size": here[:1], **dict.fromkeys(params, (*here, "overrides", "params"))}
    for *values, dtype, scale in itertools.product(*params.values(), dtypes, scales):
        values_of_run = {**named, **dict(zip(params, values, strict=True)), "dtype": dtype, "scale": scale}
        source.ask(FileRun(values_of_run | ({"profile": True} if profile else {}), paths, repeats), here)
        if add_profile:
            source.ask(FileRun(values_of_run | {"profile": True}, paths), here)


def _inherited(source: SuiteText, here: KeyPath, name: str) -> KeyPath:
    """Path that provides a task's value: the task's own, or the workload's."""
    own, workload = (*here, name), (here[0], name)
    return workload if own not in source.lines and workload in source.lines else own


def _header(source: SuiteText, header: str, path: KeyPath) -> dict[str, str]:
    match = _HEADER.fullmatch(header)
    if match is None:
        raise source.problem(path, "is not a workload and size such as `pretrain_nemotron4_15b`")
    return {"workload": match["workload"], "size": match["size"]}


def _table(source: SuiteText, path: KeyPath, value: object, known: tuple[str, ...]) -> Mapping[str, Any]:
    """A mapping that has only these keys; an absent value is an empty mapping."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise source.problem(path, f"must have keys: {', '.join(known)}")
    if unknown := [str(key) for key in value if key not in known]:
        raise source.problem((*path, unknown[0]), f"is not known. {known_names(known, unknown[0])}")
    return value


def _variables(source: SuiteText, path: KeyPath, value: object) -> dict[str, list[Any]]:
    """Layout values in `params`, each with one value or several; `env` must be empty."""
    given = _table(source, path, value, ("env", "params"))
    if given.get("env"):
        raise source.problem((*path, "env"), _NO_ENV)
    here, table = (*path, "params"), given.get("params")
    table = {} if table is None else table
    if not isinstance(table, dict):
        raise source.problem(here, f"must have keys: {', '.join(_PARAMS)}")
    params = {}
    for key, values in table.items():
        if (name := str(key).lower()) not in _PARAMS:
            raise source.problem((*here, str(key)), f"cannot be set for one run. {known_names([*_PARAMS], name)}")
        if _PARAMS[name] in params:
            raise source.problem((*here, str(key)), "is given twice")
        params[_PARAMS[name]] = _list(source, (*here, str(key)), values)
    return params


def _list(source: SuiteText, path: KeyPath, value: object) -> list[Any]:
    """The value as a list; a list stays unchanged."""
    if value is None or value == []:
        raise source.problem(path, "is missing")
    return value if isinstance(value, list) else [value]


def _note_lines(source: SuiteText, root: Any) -> None:
    """Note the line of every value. Raises SuiteFileError for a duplicate key, and for too many values."""
    for count, (path, node) in enumerate(_values(source, (), root)):
        if count == _MOST_VALUES:
            raise source.problem((), "has too many values")
        source.lines.note(path, node.start_mark.line + 1)


def _values(source: SuiteText, path: KeyPath, node: Any) -> Iterator[tuple[KeyPath, Any]]:
    if node is not None and node.id == "mapping":
        seen = set()
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.id != "scalar":
                raise SuiteFileError(source.file, line, "", "has a key that is not a single value")
            if key.value in seen and key.value != "<<":
                raise SuiteFileError(source.file, line, str(key.value), "is given twice")
            seen.add(key.value)
            yield (*path, str(key.value)), key
            yield from _values(source, (*path, str(key.value)), value)
    elif node is not None and node.id == "sequence":
        for index, value in enumerate(node.value):
            yield (*path, index), value
            yield from _values(source, (*path, index), value)
