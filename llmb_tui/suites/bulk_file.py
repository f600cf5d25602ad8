"""`read_yaml`, `read_text`: the two forms of llmb-run's bulk files, as `llmb-run submit -f` takes them.

What such a file asks for and no run from here can have is refused in words: variables of one task, proxies by name.
(llmb-run 1.15: `task_loader.py`, `Bulk_Examples.md`.)
"""

from __future__ import annotations

import ast
import itertools
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from llmb_tui.cluster.yaml_text import NotYaml, nodes_of, yaml_of
from llmb_tui.plan.selection import LAYOUT
from llmb_tui.suites.suite_text import NO_NUMBER, FileRun, SuiteProblem, SuiteText, TomlSuite, content
from llmb_tui.toml.lines import KeyPath, Lines
from llmb_tui.toml.read import known_names

_HEADER = re.compile(r"(?P<workload>.+)_(?P<size>[0-9.]+[bt])")
_TASK = re.compile(r"\((.*)\)")
_MOST_VALUES = 100_000
_FOR_ALL = ("dtypes", "scales", "repeats", "add_profile")
"""What a task has from its workload where it does not say it itself."""
_OF_WORKLOAD = ("defaults", *_FOR_ALL, "tasks")
_OF_TASK = (*_FOR_ALL, "profile", "proxy", "overrides")
_PARAMS = {**{one.name: one.name for one in LAYOUT}, "max_steps": "steps"}
"""llmb-run hands them to the launch script as variables in upper case."""
_NO_ENV = (
    "cannot be set for a run from here. Variables that hold for every run of a cluster stand in its profile, as `env`"
)


def read_yaml(file: Path) -> SuiteText:
    """The YAML form. Raises SuiteProblem."""
    text = content(file)
    source = SuiteText(file, Lines(), TomlSuite())
    try:
        _note_lines(source, nodes_of(text))  # too many values are refused before any of them is made
        data = yaml_of(text)
    except NotYaml as error:
        why = f": {error.problem}" if error.problem else ""
        raise SuiteProblem(file, error.line, "", f"is not YAML{why}") from error
    except RecursionError as error:
        raise SuiteProblem(file, None, "", "is not YAML: it goes round in itself, or is nested too deeply") from error
    if not isinstance(data, dict):
        raise source.problem((), "has no workloads: each is a key such as `pretrain_nemotron4_15b`, with its `tasks`")
    for header, spec in data.items():
        _workload(source, header, spec)
    return source


def read_text(file: Path) -> SuiteText:
    """The text form: a header `WORKLOAD_SIZE:`, then lines `(dtypes, scales, repeats[, profile])`."""
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
            raise source.problem(here, "stands below no header such as `pretrain_nemotron4_15b:`")
        else:
            raise source.problem(here, "is neither a header `WORKLOAD_SIZE:` nor `(dtypes, scales, repeats)`")
    return source


def _tuple(source: SuiteText, words: str, named: Mapping[str, str], here: KeyPath) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # it would be printed
            parts = ast.literal_eval(f"({words},)")
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise source.problem(here, "is no list of values such as `('bf16', [16, 32], 3)`") from error
    if not 3 <= len(parts) <= 4:
        raise source.problem(here, "has dtypes, scales and repeats, and True at the end for a profile")
    _task(source, named, dict(zip(("dtypes", "scales", "repeats", "profile"), parts, strict=False)), {}, here)


def _workload(source: SuiteText, header: object, spec: object) -> None:
    path: KeyPath = (str(header),)
    named = _header(source, str(header), path)
    spec = _table(source, path, spec, _OF_WORKLOAD)
    defaults = _variables(source, (*path, "defaults"), spec.get("defaults"))
    tasks = spec.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        raise source.problem(
            (*path, "tasks"), "is missing: llmb-run starts what stands below `tasks`, and nothing else"
        )
    for index, task in enumerate(tasks):
        here = (*path, "tasks", index)
        own = _table(source, here, task, _OF_TASK)
        params = defaults | _variables(source, (*here, "overrides"), own.get("overrides"))
        if own.get("proxy"):
            why = "is no choice here: a recipe's proxy is what it lists for that scale; leave `proxy` out"
            raise source.problem((*here, "proxy"), why)
        _task(source, named, {name: spec[name] for name in _FOR_ALL if name in spec} | {**own}, params, here)


def _task(
    source: SuiteText, named: Mapping[str, str], task: Mapping[str, Any], params: Mapping[str, list[Any]], here: KeyPath
) -> None:
    """Every combination of a task, in llmb-run's order."""
    repeats = task.get("repeats", 1)
    if type(repeats) is not int or repeats < 1:
        raise source.problem((*here, "repeats"), NO_NUMBER)
    for name in ("profile", "add_profile"):
        if not isinstance(task.get(name, False), bool):
            raise source.problem((*here, name), "must be true or false")
    profile, beside = task.get("profile"), task.get("add_profile")
    if profile and beside:
        raise source.problem((*here, "add_profile"), "goes not with `profile`")
    where = {name: _inherited(source, here, name) for name in ("dtypes", "scales")}
    dtypes, scales = (_list(source, path, task.get(name)) for name, path in where.items())
    paths: dict[str, KeyPath] = {"": here, "dtype": where["dtypes"], "scale": where["scales"]}
    paths |= {"workload": here[:1], "size": here[:1], **dict.fromkeys(params, (*here, "overrides", "params"))}
    for *values, dtype, scale in itertools.product(*params.values(), dtypes, scales):
        one = {**named, **dict(zip(params, values, strict=True)), "dtype": dtype, "scale": scale}
        source.ask(FileRun(one | ({"profile": True} if profile else {}), paths, repeats), here)
        if beside:
            source.ask(FileRun(one | {"profile": True}, paths), here)


def _inherited(source: SuiteText, here: KeyPath, name: str) -> KeyPath:
    """Where a task has it from: its own line, or the workload's."""
    own, workload = (*here, name), (here[0], name)
    return workload if own not in source.lines and workload in source.lines else own


def _header(source: SuiteText, header: str, path: KeyPath) -> dict[str, str]:
    match = _HEADER.fullmatch(header)
    if match is None:
        raise source.problem(path, "is no workload and size such as `pretrain_nemotron4_15b`")
    return {"workload": match["workload"], "size": match["size"]}


def _table(source: SuiteText, path: KeyPath, value: object, known: tuple[str, ...]) -> Mapping[str, Any]:
    """A mapping with these keys; nothing given is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise source.problem(path, f"must have keys: {', '.join(known)}")
    if odd := [str(key) for key in value if key not in known]:
        raise source.problem((*path, odd[0]), f"is not known. {known_names(known, odd[0])}")
    return value


def _variables(source: SuiteText, path: KeyPath, value: object) -> dict[str, list[Any]]:
    """The numbers of a layout in `params`, each with one value or with several that are swept; nothing in `env`."""
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
            raise source.problem((*here, str(key)), f"cannot be set for a run here. {known_names([*_PARAMS], name)}")
        if _PARAMS[name] in params:
            raise source.problem((*here, str(key)), "is given twice")
        params[_PARAMS[name]] = _list(source, (*here, str(key)), values)
    return params


def _list(source: SuiteText, path: KeyPath, value: object) -> list[Any]:
    """One value or several."""
    if value is None or value == []:
        raise source.problem(path, "is missing")
    return value if isinstance(value, list) else [value]


def _note_lines(source: SuiteText, root: Any) -> None:
    """Of every value. Raises SuiteProblem for a key that is given twice, and for too many values."""
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
                raise SuiteProblem(source.file, line, "", "has a key that is no word")
            if key.value in seen and key.value != "<<":
                raise SuiteProblem(source.file, line, str(key.value), "is given twice")
            seen.add(key.value)
            yield (*path, str(key.value)), key
            yield from _values(source, (*path, str(key.value)), value)
    elif node is not None and node.id == "sequence":
        for index, value in enumerate(node.value):
            yield (*path, index), value
            yield from _values(source, (*path, index), value)
