"""`read_suite`: reads a suite completely, or not at all, from a TOML file or a file of `llmb-run submit -f`.

`suite_toml` writes a TOML file.

An error names file, line, field and the nearest valid value. All errors of a file are reported at once, and nothing is
submitted. `docs/suites.md` describes the format.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from llmb_tui.catalog.catalog import Catalog, UnknownNameError
from llmb_tui.errors import LlmbError
from llmb_tui.language.text import clean_line
from llmb_tui.launch.procedures import PROCEDURES
from llmb_tui.plan.make import plan
from llmb_tui.plan.request import InvalidRequestError, read_request
from llmb_tui.plan.selection import DEFAULT_PROCEDURE, FIELDS, LAYOUT, OPTIONS, ProcedureId, Selection, is_given
from llmb_tui.suites.bulk_file import read_text, read_yaml
from llmb_tui.suites.suite import Suite, make_suite
from llmb_tui.suites.suite_text import NO_NUMBER, FileRun, SuiteFileError, SuiteText, TomlSuite
from llmb_tui.toml.lines import KeyPath, Lines
from llmb_tui.toml.read import known_names, read_toml

_LONGEST_NAME = 80
_LISTS = {"workloads": "workload", "sizes": "size", "precisions": "dtype", "scales": "scale"}
"""Lists that multiply, and the field of a selection that each of their values sets."""
_NAMES = {"precision": "dtype"}
"""Names in a row that differ from the names of the selection's fields."""
_OF_ALL = ("gpu", "strong_scaling", "steps", "time_limit")
_LAYOUT = [field.name for field in LAYOUT]
_PROCEDURES = [name for name, facts in PROCEDURES.items() if facts.starts_runs]


def read_suite(  # noqa: PLR0913 - options besides the file
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
    """The suite of a file, in the format of its suffix. Arguments override values of the file.

    Raises SuiteFileError; LlmbError (exit code 1) if no cluster is given.
    """
    source = _read(file)
    form = source.form
    where = cluster or form.cluster
    if not where:
        what = f"{file} names no cluster."
        raise LlmbError(what, "", 'Write `cluster = "NAME"` into it, or add `--cluster NAME`.', exit_code=1)
    name = form.name or file.stem
    if len(name) > _LONGEST_NAME or name != clean_line(name).strip() or not name:
        raise source.problem(("name",), f"must be one line of at most {_LONGEST_NAME} characters.")
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
    raise SuiteFileError(file, None, "", f"cannot be read. {why}")


def _runs(
    source: SuiteText, catalog: Catalog, gpu: str | None, procedure: ProcedureId | None
) -> list[tuple[Selection, ProcedureId]]:
    """Every run, with its repeats. Raises SuiteFileError with all errors."""
    faults: dict[KeyPath, str] = {}
    runs: list[tuple[Selection, ProcedureId]] = []
    if not source.asked:
        raise source.problem((), "has no runs")
    for asked in source.asked:
        try:
            selection = read_request(catalog, _with_gpu(catalog, asked.values, gpu))
        except (InvalidRequestError, UnknownNameError) as error:
            words = "; ".join(filter(None, (error.what, error.why, error.fix)))
            faults.setdefault(_place(asked, error.field), words.replace("\n", "; "))
            continue
        for problem in plan(catalog, selection).problems:
            if problem.severity == "error":
                faults.setdefault(_place(asked, problem.field), f"{problem.reason} {problem.fix}".strip())
        runs += [(selection, procedure or asked.procedure or DEFAULT_PROCEDURE)] * asked.repeats
    if faults:
        raise SuiteFileError.at(source.file, source.lines, *faults.items())
    return runs


def _with_gpu(catalog: Catalog, values: Mapping[str, Any], gpu: str | None) -> Mapping[str, Any]:
    """Add the given GPU type, or the only one of the recipe."""
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
    form, text = read_toml(file, TomlSuite, SuiteFileError)
    source = SuiteText(file, Lines(text), form)
    missing = [name for name in _LISTS if not getattr(form, name)]
    if missing and (form.layouts or len(missing) < len(_LISTS)):
        why = f"is missing: {', '.join(_LISTS)} multiply, and each has one value or more"
        raise SuiteFileError.at(file, source.lines, *(((name,), why) for name in missing))
    for index, layout in enumerate(form.layouts):
        if unknown := next((name for name in layout if name not in _LAYOUT), None):
            why = f"is not a field of a layout. {known_names(_LAYOUT, unknown.lower())}"
            raise source.problem(("layouts", index, unknown), why)
    by = _procedure(source, ("procedure",), form.procedure)
    for run in _of_lists(form, by):
        source.ask(run, ())
    for index, row in enumerate(form.runs):
        source.ask(_of_row(source, index, row, by), ("runs", index))
    return source


def _of_lists(form: TomlSuite, by: ProcedureId | None) -> Iterator[FileRun]:
    """Every combination of the lists; the layout changes fastest."""
    lists = [enumerate(getattr(form, name)) for name in _LISTS]
    for combination in itertools.product(*lists, enumerate(form.layouts or ({},))):
        *values_of_lists, (position, layout) = combination
        values, paths = _for_all(form)
        for name, (index, value) in zip(_LISTS, values_of_lists, strict=True):
            values[_LISTS[name]], paths[_LISTS[name]] = value, (name, index)
        values |= layout
        paths |= {name: ("layouts", position, name) for name in layout}
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
    """Values that the file sets for all of its runs, with their paths."""
    values = {name: given for name in _OF_ALL if (given := getattr(form, name)) is not None}
    paths: dict[str, KeyPath] = {name: (name,) for name in values}
    known = {option.name for option in OPTIONS}
    for name, given in form.options.items():
        field = name if name in known else f"options.{name}"
        values[field], paths[field] = given, ("options", name)
    return values, paths


def _procedure(source: SuiteText, path: KeyPath, name: object) -> ProcedureId | None:
    """Launch method that can start runs; None if none is given. Raises SuiteFileError."""
    procedure = next((known for known in _PROCEDURES if known == name), None)
    if procedure is None and name is not None:
        raise source.problem(path, f"must be one of {', '.join(_PROCEDURES)}")
    return procedure


def suite_toml(suite: Suite) -> str:
    """Text of a TOML file for a suite. Equal consecutive runs are written once, with `repeats`.

    The file lists single rows in their current order, so a shuffled order is kept.
    """
    conduct = {name: given for name in ("at_most", "stop_after", "chain") if (given := getattr(suite, name))}
    alike = itertools.groupby(suite.rows, key=lambda row: (row.selection, row.procedure))
    runs = [_table_of(*run, repeats=len(list(rows))) for run, rows in alike]
    return tomli_w.dumps({"name": suite.name, "cluster": suite.cluster, **conduct, "runs": runs})


def file_name(name: str) -> str:
    """File name for a suite's name."""
    return re.sub(r"[^\w.@+-]+", "-", name).strip("-.") or "suite"


def _table_of(selection: Selection, procedure: ProcedureId, *, repeats: int) -> dict[str, Any]:
    values = {name: selection.value(name) for name in FIELDS if name not in ("workload", "release")}
    given = {name: value for name, value in values.items() if is_given(value)}
    run = {"workload": selection.recipe_id, **given, "procedure": procedure}
    return run | ({"repeats": repeats} if repeats > 1 else {})
