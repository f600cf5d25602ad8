"""`read_suite`: the suite that a file asks for, whole or not at all: TOML, or what `llmb-run submit -f` reads.

`suite_toml` writes such a file.

A fault names file, line, field and the nearest valid value, all faults of a file at once; nothing was sent then.
`docs/suites.md` has the form.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from llmb_tui.catalog.catalog import Catalog, Unknown
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.plan.make import plan
from llmb_tui.plan.request import UnreadableRequest, read_request
from llmb_tui.plan.selection import DEFAULT_PROCEDURE, FIELDS, LAYOUT, OPTIONS, ProcedureId, Selection, is_given
from llmb_tui.suites.bulk_file import read_text, read_yaml
from llmb_tui.suites.suite import Suite, make_suite
from llmb_tui.suites.suite_text import NO_NUMBER, FileRun, SuiteProblem, SuiteText, TomlSuite, content
from llmb_tui.toml.lines import KeyPath, Lines
from llmb_tui.toml.read import known_names, read_toml

_LONGEST_NAME = 80
_LISTS = {"workloads": "workload", "sizes": "size", "precisions": "dtype", "scales": "scale"}
"""Those that multiply, and what each of their values is of a selection."""
_NAMES = {"precision": "dtype"}
"""Of a row, as of the lists."""
_OF_ALL = ("gpu", "strong_scaling", "steps", "time_limit")
_LAYOUT = [one.name for one in LAYOUT]
_PROCEDURES = [name for name, facts in PROCEDURES.items() if facts.starts_runs]


def read_suite(  # noqa: PLR0913 - what may be given beside a file
    file: Path,
    catalog: Catalog,
    *,
    cluster: str | None = None,
    gpu: str | None = None,
    procedure: ProcedureId | None = None,
    at_most: int | None = None,
    stop_after: int | None = None,
    shuffle: int | None = None,
) -> Suite:
    """The suite of a file, by its ending. What is given here wins over what the file says.

    Raises SuiteProblem; Trouble (exit code 1) where neither says on which cluster.
    """
    source = _read(file)
    form = source.form
    where = cluster or form.cluster
    if not where:
        what = f"{file} does not say on which cluster."
        raise Trouble(what, "", 'Write `cluster = "NAME"` into it, or add `--cluster NAME`.', exit_code=1)
    name = form.name or file.stem
    if len(name) > _LONGEST_NAME or name != clean_line(name).strip() or not name:
        raise source.problem(("name",), f"A name is one line of at most {_LONGEST_NAME} characters.")
    seed = (1 if form.shuffle else None) if isinstance(form.shuffle, bool) else form.shuffle
    return make_suite(
        name,
        where,
        _runs(source, catalog, gpu, procedure),
        at_most=at_most or form.at_most,
        stop_after=stop_after or form.stop_after,
        chain=form.chain,
        shuffle=seed if shuffle is None else shuffle,
    )


def _read(file: Path) -> SuiteText:
    ending = file.suffix.lower()
    if ending == ".toml":
        return _read_toml(file)
    if ending in (".yaml", ".yml", ".txt"):
        return (read_text if ending == ".txt" else read_yaml)(file)
    why = "A suite is a .toml file, or one that llmb-run reads: .yaml, .yml or .txt."
    raise SuiteProblem(file, None, "", f"cannot be read. {why}")


def _runs(
    source: SuiteText, catalog: Catalog, gpu: str | None, procedure: ProcedureId | None
) -> list[tuple[Selection, ProcedureId]]:
    """Every run, each as often as it is repeated. Raises SuiteProblem with all that is wrong."""
    faults: dict[KeyPath, str] = {}
    runs: list[tuple[Selection, ProcedureId]] = []
    if not source.asked:
        raise source.problem((), "asks for no run")
    for asked in source.asked:
        try:
            selection = read_request(catalog, _with_gpu(catalog, asked.values, gpu))
        except (UnreadableRequest, Unknown) as trouble:
            words = "; ".join(filter(None, (trouble.what, trouble.why, trouble.fix)))
            faults.setdefault(_place(asked, trouble.field), words.replace("\n", "; "))
            continue
        for problem in plan(catalog, selection).problems:
            if problem.severity == "error":
                faults.setdefault(_place(asked, problem.field), f"{problem.reason} {problem.fix}".strip())
        runs += [(selection, procedure or asked.procedure or DEFAULT_PROCEDURE)] * asked.repeats
    if faults:
        raise SuiteProblem.at(source.file, source.lines, *faults.items())
    return runs


def _with_gpu(catalog: Catalog, values: Mapping[str, Any], gpu: str | None) -> Mapping[str, Any]:
    """With the GPU type that is given, or else the only one that the recipe has."""
    if gpu is not None:
        return {**values, "gpu": gpu}
    workload, release = values.get("workload"), values.get("release")
    if values.get("gpu") is None and isinstance(workload, str) and (release is None or isinstance(release, str)):
        recipe = catalog.recipe(workload.lower(), release)
        if len(recipe.gpus) == 1:
            return {**values, "gpu": next(iter(recipe.gpus))}
    return values


def _place(asked: FileRun, name: str) -> KeyPath:
    if name == "release" and name not in asked.paths:
        name = "workload"
    return asked.paths.get(name, asked.paths.get("", ()))


def _read_toml(file: Path) -> SuiteText:
    content(file)
    form, text = read_toml(file, TomlSuite, SuiteProblem)
    source = SuiteText(file, Lines(text), form)
    missing = [name for name in _LISTS if not getattr(form, name)]
    if missing and (form.layouts or len(missing) < len(_LISTS)):
        why = f"is missing: {', '.join(_LISTS)} multiply, and each has one value or more"
        raise SuiteProblem.at(file, source.lines, *(((name,), why) for name in missing))
    for index, layout in enumerate(form.layouts):
        if odd := next((name for name in layout if name not in _LAYOUT), None):
            why = f"is not a field of a layout. {known_names(_LAYOUT, odd.lower())}"
            raise source.problem(("layouts", index, odd), why)
    by = _procedure(source, ("procedure",), form.procedure)
    for one in _of_lists(form, by):
        source.ask(one, ())
    for index, row in enumerate(form.runs):
        source.ask(_of_row(source, index, row, by), ("runs", index))
    return source


def _of_lists(form: TomlSuite, by: ProcedureId | None) -> Iterator[FileRun]:
    """Every combination; the layout changes fastest."""
    lists = [enumerate(getattr(form, name)) for name in _LISTS]
    for combination in itertools.product(*lists, enumerate(form.layouts or ({},))):
        *one_of_each, (at, layout) = combination
        values, paths = _for_all(form)
        for name, (index, value) in zip(_LISTS, one_of_each, strict=True):
            values[_LISTS[name]], paths[_LISTS[name]] = value, (name, index)
        values |= layout
        paths |= {name: ("layouts", at, name) for name in layout}
        yield FileRun(values, paths, form.repeats, by)


def _of_row(source: SuiteText, index: int, row: Mapping[str, Any], by: ProcedureId | None) -> FileRun:
    values, paths = _for_all(source.form)
    here: KeyPath = ("runs", index)
    own: dict[str, Any] = {}
    for name, value in row.items():
        if _NAMES.get(name, name) in own:
            raise source.problem((*here, name), f"is given twice, as {_NAMES.get(name, name)} as well")
        own[_NAMES.get(name, name)] = value
    paths |= {"": here, **{_NAMES.get(name, name): (*here, name) for name in row}}
    repeats = own.pop("repeats", source.form.repeats)
    if type(repeats) is not int or repeats < 1:
        raise source.problem((*here, "repeats"), NO_NUMBER)
    by = _procedure(source, (*here, "procedure"), own.pop("procedure", None)) or by
    return FileRun({**values, **own}, paths, repeats, by)


def _for_all(form: TomlSuite) -> tuple[dict[str, Any], dict[str, KeyPath]]:
    """What the file says for all of its runs, and where."""
    values = {name: given for name in _OF_ALL if (given := getattr(form, name)) is not None}
    paths: dict[str, KeyPath] = {name: (name,) for name in values}
    known = {option.name for option in OPTIONS}
    for name, given in form.options.items():
        field = name if name in known else f"options.{name}"
        values[field], paths[field] = given, ("options", name)
    return values, paths


def _procedure(source: SuiteText, path: KeyPath, name: object) -> ProcedureId | None:
    """A procedure by which a run can be started; None where none is named. Raises SuiteProblem."""
    found = next((one for one in _PROCEDURES if one == name), None)
    if found is None and name is not None:
        raise source.problem(path, f"is none of {', '.join(_PROCEDURES)}")
    return found


def suite_toml(suite: Suite) -> str:
    """A suite as the text of a file. Runs that follow each other and are alike are one with `repeats`.

    It is read as rows chosen one by one, in the order in which they stand: what shuffled them is done.
    """
    conduct = {name: given for name in ("at_most", "stop_after", "chain") if (given := getattr(suite, name))}
    alike = itertools.groupby(suite.rows, key=lambda row: (row.selection, row.procedure))
    runs = [_table_of(*run, repeats=len(list(rows))) for run, rows in alike]
    return tomli_w.dumps({"name": suite.name, "cluster": suite.cluster, **conduct, "runs": runs})


def file_name(name: str) -> str:
    """A suite's name as one of a file."""
    return re.sub(r"[^\w.@+-]+", "-", name).strip("-.") or "suite"


def _table_of(selection: Selection, procedure: ProcedureId, *, repeats: int) -> dict[str, Any]:
    values = {name: selection.value(name) for name in FIELDS if name not in ("workload", "release")}
    given = {name: value for name, value in values.items() if is_given(value)}
    run = {"workload": selection.recipe_id, **given, "procedure": procedure}
    return run | ({"repeats": repeats} if repeats > 1 else {})
