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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from llmb_tui.plan.selection import LAYOUT
from llmb_tui.results.suite.suite_file import MOST_RUNS, Asked, SuiteForm, SuiteProblem, SuiteText, content
from llmb_tui.toml.lines import KeyPath

_HEADER = re.compile(r"(?P<workload>.+)_(?P<size>[0-9.]+[bt])")
_TASK = re.compile(r"\((.*)\)")
_MOST_VALUES = 100_000
_OF_WORKLOAD = ("defaults", "dtypes", "scales", "repeats", "add_profile", "tasks")
_OF_TASK = ("dtypes", "scales", "repeats", "profile", "add_profile", "proxy", "overrides")
_PARAMS = {**{one.name: one.name for one in LAYOUT}, "max_steps": "steps"}
"""llmb-run hands them to the launch script as variables in upper case."""
_NO_ENV = (
    "cannot be set for a run from here. Variables that hold for every run of a cluster stand in its profile, as `env`"
)


@dataclass
class _Bulk:
    """One file as it is read."""

    file: Path
    lines: dict[KeyPath, int] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    count: int = 0

    def line_of(self, path: KeyPath) -> int:
        return next((self.lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.lines), 1)

    def problem(self, path: KeyPath, reason: str) -> SuiteProblem:
        return self.source.problem((path, reason))

    @property
    def source(self) -> SuiteText:
        return SuiteText(self.file, self.line_of, tuple(self.asked), SuiteForm())

    def ask(self, one: Asked, path: KeyPath) -> None:
        self.count += one.repeats
        if self.count > MOST_RUNS:
            raise self.problem(path, f"the file asks for more than {MOST_RUNS:,} runs")
        self.asked.append(one)


def read_yaml(file: Path) -> SuiteText:
    """The YAML form. Raises SuiteProblem."""
    import yaml  # noqa: PLC0415 - only who has such a file needs it

    text = content(file)
    bulk = _Bulk(file)
    try:
        bulk.lines = _lines(bulk, yaml.compose(text, Loader=yaml.SafeLoader))
        data = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or error
        raise SuiteProblem(file, mark.line + 1 if mark else None, "", f"is not YAML: {why}") from error
    if not isinstance(data, dict):
        raise bulk.problem((), "has no workloads: each is a key such as `pretrain_nemotron4_15b`, with its `tasks`")
    for header, spec in data.items():
        _workload(bulk, header, spec)
    return bulk.source


def read_text(file: Path) -> SuiteText:
    """The text form: a header `WORKLOAD_SIZE:`, then lines `(dtypes, scales, repeats[, profile])`."""
    bulk = _Bulk(file)
    named: dict[str, str] | None = None
    header: KeyPath = ()
    for number, line in enumerate(map(str.strip, content(file).splitlines()), start=1):
        here: KeyPath = (*header, number) if named else (line,)
        bulk.lines[here] = number
        if not line or line.startswith("#"):
            continue
        if line.endswith(":"):
            header = (line[:-1],)
            bulk.lines[header] = number
            named = _header(bulk, line[:-1], header)
        elif (match := _TASK.fullmatch(line)) and named is not None:
            _tuple(bulk, match[1], named, here)
        elif match:
            raise bulk.problem(here, "stands below no header such as `pretrain_nemotron4_15b:`")
        else:
            raise bulk.problem(here, "is neither a header `WORKLOAD_SIZE:` nor `(dtypes, scales, repeats)`")
    return bulk.source


def _tuple(bulk: _Bulk, words: str, named: Mapping[str, str], here: KeyPath) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # it would be printed
            parts = ast.literal_eval(f"({words},)")
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise bulk.problem(here, "is no list of values such as `('bf16', [16, 32], 3)`") from error
    if not 3 <= len(parts) <= 4:
        raise bulk.problem(here, "has dtypes, scales and repeats, and True at the end for a profile")
    names = ("dtypes", "scales", "repeats", "profile")
    task = dict(zip(names, parts, strict=False))
    _task(bulk, named, task, {}, here)


def _workload(bulk: _Bulk, header: object, spec: object) -> None:
    path: KeyPath = (str(header),)
    named = _header(bulk, str(header), path)
    spec = _table(bulk, path, spec, _OF_WORKLOAD)
    defaults = _table(bulk, (*path, "defaults"), spec.get("defaults"), ("env", "params"))
    _no_env(bulk, (*path, "defaults", "env"), defaults.get("env"))
    tasks = spec.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        raise bulk.problem((*path, "tasks"), "is missing: llmb-run starts what stands below `tasks`, and nothing else")
    for index, task in enumerate(tasks):
        here = (*path, "tasks", index)
        own = _table(bulk, here, task, _OF_TASK)
        inherited = {name: spec[name] for name in ("dtypes", "scales", "repeats", "add_profile") if name in spec}
        overrides = _table(bulk, (*here, "overrides"), own.get("overrides"), ("env", "params"))
        _no_env(bulk, (*here, "overrides", "env"), overrides.get("env"))
        if own.get("proxy"):
            why = "is no choice here: a recipe's proxy is what it lists for that scale; leave `proxy` out"
            raise bulk.problem((*here, "proxy"), why)
        params = {
            **_params(bulk, (*path, "defaults", "params"), defaults.get("params")),
            **_params(bulk, (*here, "overrides", "params"), overrides.get("params")),
        }
        _task(bulk, named, {**inherited, **own}, params, here)


def _task(
    bulk: _Bulk, named: Mapping[str, str], task: Mapping[str, Any], params: Mapping[str, list[Any]], here: KeyPath
) -> None:
    """Every combination of a task, in llmb-run's order."""
    repeats = task.get("repeats", 1)
    if not isinstance(repeats, int) or isinstance(repeats, bool) or repeats < 1:
        raise bulk.problem((*here, "repeats"), "must be a whole number from 1 on")
    flags = {}
    for name in ("profile", "add_profile"):
        flags[name] = task.get(name, False)
        if not isinstance(flags[name], bool):
            raise bulk.problem((*here, name), "must be true or false")
    if flags["profile"] and flags["add_profile"]:
        raise bulk.problem((*here, "add_profile"), "goes not with `profile`")
    where = {name: _inherited(bulk, here, name) for name in ("scales", "dtypes")}
    scales, dtypes = (_list(bulk, path, task.get(name)) for name, path in where.items())
    for values in itertools.product(*params.values()):
        for dtype, scale in itertools.product(dtypes, scales):
            one = {**named, **dict(zip(params, values, strict=True)), "dtype": dtype, "scale": scale}
            paths = {"": here, "dtype": where["dtypes"], "scale": where["scales"]}
            paths |= {"workload": here[:1], "size": here[:1]}
            paths |= dict.fromkeys(params, (*here, "overrides", "params"))
            bulk.ask(Asked(one | ({"profile": True} if flags["profile"] else {}), paths, repeats), here)
            if flags["add_profile"]:
                bulk.ask(Asked(one | {"profile": True}, paths), here)


def _inherited(bulk: _Bulk, here: KeyPath, name: str) -> KeyPath:
    """Where a task has it from: its own line, or the workload's."""
    own, workload = (*here, name), (here[0], name)
    return workload if own not in bulk.lines and workload in bulk.lines else own


def _header(bulk: _Bulk, header: str, path: KeyPath) -> dict[str, str]:
    match = _HEADER.fullmatch(header)
    if match is None:
        raise bulk.problem(path, "is no workload and size such as `pretrain_nemotron4_15b`")
    return {"workload": match["workload"], "size": match["size"]}


def _table(bulk: _Bulk, path: KeyPath, value: object, known: tuple[str, ...]) -> Mapping[str, Any]:
    """A mapping with these keys; nothing given is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bulk.problem(path, f"must have keys: {', '.join(known)}")
    for key in value:
        if key not in known:
            from difflib import get_close_matches  # noqa: PLC0415 - only who mistyped needs it

            close = get_close_matches(str(key), known, n=1)
            meant = f"; {close[0]} may be meant" if close else ""
            raise bulk.problem((*path, str(key)), f"is not known; known are: {', '.join(known)}{meant}")
    return value


def _list(bulk: _Bulk, path: KeyPath, value: object) -> list[Any]:
    """One value or several."""
    if value is None or value == []:
        raise bulk.problem(path, "is missing")
    return value if isinstance(value, list) else [value]


def _params(bulk: _Bulk, path: KeyPath, value: object) -> dict[str, list[Any]]:
    """The numbers of a layout, each with one value or with several that are swept."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise bulk.problem(path, f"must have keys: {', '.join(_PARAMS)}")
    params = {}
    for key, given in value.items():
        name = _PARAMS.get(str(key).lower())
        if name is None:
            why = f"cannot be set for a run from here; known are: {', '.join(_PARAMS)}"
            raise bulk.problem((*path, str(key)), why)
        params[name] = _list(bulk, (*path, str(key)), given)
    return params


def _no_env(bulk: _Bulk, path: KeyPath, value: object) -> None:
    if value:
        raise bulk.problem(path, _NO_ENV)


def _lines(bulk: _Bulk, root: Any) -> dict[KeyPath, int]:
    """1-based line of every value. Raises SuiteProblem for a key that is given twice, and for too many values."""
    lines: dict[KeyPath, int] = {}
    for path, node in itertools.islice(_values(bulk, (), root), _MOST_VALUES):
        lines.setdefault(path, node.start_mark.line + 1)
    if len(lines) >= _MOST_VALUES:
        raise bulk.problem((), "has too many values")
    return lines


def _values(bulk: _Bulk, path: KeyPath, node: Any) -> Iterator[tuple[KeyPath, Any]]:
    children = getattr(node, "value", None)
    if node is not None and node.id == "mapping":
        seen = set()
        for key, value in children or ():
            if key.id != "scalar":
                raise SuiteProblem(bulk.file, key.start_mark.line + 1, "", "has a key that is no word")
            if key.value in seen and key.value != "<<":
                line = key.start_mark.line + 1
                raise SuiteProblem(bulk.file, line, str(key.value), "is given twice")
            seen.add(key.value)
            here = (*path, str(key.value))
            yield here, key
            yield from _values(bulk, here, value)
    elif node is not None and node.id == "sequence":
        for index, value in enumerate(children or ()):
            yield (*path, index), value
            yield from _values(bulk, (*path, index), value)
