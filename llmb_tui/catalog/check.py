"""`faults`: what the parts of a preset must agree on, beyond the types of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from llmb_tui.catalog.locate import KeyPath
from llmb_tui.catalog.published_check import published_faults
from llmb_tui.catalog.recipe import ConfigTable, Launch, Model, Option, Recipe, ResultRule, ResultTable
from llmb_tui.catalog.rows import PRINTED_COLUMNS, Row, gbs_by_rule, row_of
from llmb_tui.catalog.settings import PLACEHOLDERS, Settings, holds, placeholder_faults

# Names become parts of paths, job names and options, so they hold nothing that a shell or Slurm would read.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_RELEASE = re.compile(r"\d+(\.\d+)*", re.ASCII)
_CLOCK = re.compile(r"\d+:\d\d:\d\d", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTION = re.compile(r"[a-z][a-z-]*")
_RECIPE_FIELD = re.compile(r"[a-z]\w*(\.[a-z]\w*(\[[A-Z]\w*\])?)*", re.ASCII)

_NEEDED_COLUMNS = ("gpus", "tp", "pp", "cp", "mbs", "gbs")
_MAY_BE_NA = ("ep", "vp")
_MAY_BE_CORRECTED = tuple(name for name in PRINTED_COLUMNS if name not in ("dp", "ga"))


@dataclass(frozen=True, slots=True)
class Fault:
    """One disagreement: at which keys, and why."""

    path: KeyPath
    reason: str


def faults(recipe: Recipe) -> Iterator[Fault]:
    """Every disagreement in a recipe. What rests on a part that is at fault itself is not looked at."""
    found = [
        *_names(recipe),
        *_models(recipe),
        *_launch(recipe.launch, recipe),
        *_rule(recipe.rule, recipe.launch.steps),
        *_options(recipe.options),
    ]
    for index, table in enumerate(recipe.tables):
        found += [Fault(("tables", index, *fault.path), fault.reason) for fault in _table(table, recipe)]
    for index, group in enumerate(recipe.settings):
        found += [Fault(("settings", index, *fault.path), fault.reason) for fault in _settings(group, recipe)]
    found += [*_corrections(recipe), *_published(recipe)]
    if not found:
        found += [*_rows(recipe), *_results(recipe)]
    yield from found


def _names(recipe: Recipe) -> Iterator[Fault]:
    named: list[tuple[KeyPath, str]] = [(("workload",), recipe.workload)]
    named += [(("gpus", gpu), gpu) for gpu in recipe.gpus]
    named += [(("models", size), size) for size in recipe.models]
    named += [(("dtypes", index), dtype) for index, dtype in enumerate(recipe.dtypes)]
    for path, name in named:
        if not _NAME.fullmatch(name):
            yield Fault(path, f"{name!r} is no name: lower-case letters, digits and . _ - are")
    if not _RELEASE.fullmatch(recipe.release):
        yield Fault(("release",), f"{recipe.release!r} is no release: numbers with dots between them are")
    for field, value in (("dtypes", recipe.dtypes), ("gpus", recipe.gpus), ("models", recipe.models)):
        if not value:
            yield Fault((field,), "is empty")
    for gpu, facts in recipe.gpus.items():
        if set(facts.peak_tflops) != set(recipe.dtypes):
            yield Fault(("gpus", gpu, "peak_tflops"), f"must have a peak for each of {_listed(recipe.dtypes)}")


def _models(recipe: Recipe) -> Iterator[Fault]:
    for size, model in recipe.models.items():
        path = ("models", size)
        if all(table.size != size for table in recipe.tables):
            yield Fault(path, "has no table of configurations")
        if model.heads % model.query_groups:
            yield Fault((*path, "query_groups"), f"{model.query_groups} does not divide {model.heads} heads")
        if model.experts_per_token > model.experts:
            yield Fault((*path, "experts_per_token"), f"more than {model.experts} experts")
        for field in ("save_min_gpus", "load_min_gpus"):
            yield from _known((*path, field), getattr(model, field), recipe.gpus)


def _launch(launch: Launch, recipe: Recipe) -> Iterator[Fault]:
    for field in ("time_limit", "time_limit_strong"):
        value = getattr(launch, field)
        if value is not None and not _CLOCK.fullmatch(value):
            yield Fault(("launch", field), f"{value!r} is not HH:MM:SS")
    if launch.kind == "nemo2" and set(launch.factories) != set(recipe.models):
        yield Fault(("launch", "factories"), f"must have a factory for each of {_listed(recipe.models)}")
    for reason in placeholder_faults(launch.arguments):
        yield Fault(("launch", "arguments"), reason)
    if launch.kind == "hydra" and not launch.command:
        yield Fault(("launch", "command"), "is empty")


def _settings(group: Settings, recipe: Recipe) -> Iterator[Fault]:
    """Faults of one group of settings, with paths inside it."""
    yield from _known(("containers",), group.containers, {gpu.container for gpu in recipe.gpus.values()})
    yield from _known(("sizes",), group.sizes, recipe.models)
    yield from _known(("gpus",), group.gpus, recipe.gpus)
    yield from _known(("dtypes",), group.dtypes, recipe.dtypes)
    for index, condition in enumerate(group.when):
        try:
            holds(condition, dict.fromkeys(PLACEHOLDERS))
        except ValueError as error:
            yield Fault(("when", index), str(error))
    for field in ("overrides", "prefix"):
        for index, text in enumerate(getattr(group, field)):
            for reason in placeholder_faults(text):
                yield Fault((field, index), reason)
    for reason in placeholder_faults(group.differs):
        yield Fault(("differs",), reason)
    for field in ("recipe", "base", "env", "srun"):
        for name, value in getattr(group, field).items():
            for reason in placeholder_faults(value):
                yield Fault((field, name), reason)
    for field, name, reason in _names_that_do_not_fit(group):
        yield Fault((field, name), reason)


def _names_that_do_not_fit(group: Settings) -> Iterator[tuple[str, str, str]]:
    """(field of the group, name in it, why)."""
    wanted = (
        ("recipe", _RECIPE_FIELD, "is no field of a recipe, such as `trainer.callbacks[TimingCallback].name`"),
        ("env", _VARIABLE, "is no name of an environment variable"),
        ("srun", _OPTION, "is no long option of srun"),
    )
    for field, pattern, reason in wanted:
        yield from ((field, name, reason) for name in getattr(group, field) if not pattern.fullmatch(name))


def _options(options: tuple[Option, ...]) -> Iterator[Fault]:
    for index, option in enumerate(options):
        if option.time_limit is not None and not _CLOCK.fullmatch(option.time_limit):
            yield Fault(("options", index, "time_limit"), f"{option.time_limit!r} is not HH:MM:SS")


def _rule(rule: ResultRule, steps: int) -> Iterator[Fault]:
    if rule.kind == "last":
        for field in ("first", "last"):
            if getattr(rule, field) is not None:
                yield Fault(("rule", field), "belongs to the kind `mean`")
    elif rule.first is None or rule.last is None or not rule.first <= rule.last < steps:
        yield Fault(("rule",), f"`mean` needs first and last, in order and below {steps} steps")


def _table(table: ConfigTable, recipe: Recipe) -> Iterator[Fault]:
    """Faults of one table of configurations, with paths inside it."""
    yield from _known(("size",), [table.size], recipe.models)
    yield from _known(("gpu",), [table.gpu], recipe.gpus)
    yield from _known(("dtypes",), table.dtypes, recipe.dtypes)
    if not table.dtypes:
        yield Fault(("dtypes",), "is empty")
    try:
        gbs_by_rule(table.gbs_rule, 1)
    except (ValueError, ZeroDivisionError):
        yield Fault(("gbs_rule",), f"{table.gbs_rule!r} is neither a fraction such as 252/576 nor `const` and a number")
    yield from _known(("columns",), table.columns, ("gpus", *PRINTED_COLUMNS))
    missing = [name for name in _NEEDED_COLUMNS if name not in table.columns]
    if missing or len(set(table.columns)) != len(table.columns):
        yield Fault(("columns",), f"{_listed(missing)} missing" if missing else "a column stands there twice")
        return
    for index, cells in enumerate(table.rows):
        if len(cells) != len(table.columns):
            yield Fault(("rows", index), f"{len(cells)} cells for {len(table.columns)} columns")
            continue
        for position, (name, cell) in enumerate(zip(table.columns, cells, strict=True)):
            if (cell == "NA" and name not in _MAY_BE_NA) or (cell != "NA" and int(cell) < 1):
                yield Fault(("rows", index, position), f"{name} cannot be {cell}")
    yield from _known(("notes",), table.notes, [str(cells[table.columns.index("gpus")]) for cells in table.rows])


def _published(recipe: Recipe) -> Iterator[Fault]:
    if recipe.published is not None:
        ignored = [option.variable for option in recipe.options if not option.effective]
        for path, reason in published_faults(recipe.published, recipe.gpus, ignored):
            yield Fault(("published", *path), reason)


def _corrections(recipe: Recipe) -> Iterator[Fault]:
    for index, correction in enumerate(recipe.corrections):
        yield from _known(("corrections", index, "size"), [correction.size], recipe.models)
        yield from _known(("corrections", index, "column"), [correction.column], _MAY_BE_CORRECTED)


def _rows(recipe: Recipe) -> Iterator[Fault]:
    seen: set[tuple[object, ...]] = set()
    for index, table in enumerate(recipe.tables):
        for line, cells in enumerate(table.rows):
            path = ("tables", index, "rows", line)
            # What a row's numbers must agree on does not depend on its precision.
            row = row_of(recipe, table, cells, table.dtypes[0])
            for reason in _disagreements(row, recipe.models[table.size]):
                yield Fault(path, reason)
            wanted = gbs_by_rule(table.gbs_rule, row.gpus)
            if not row.proxy and row.gbs != wanted:
                yield Fault(path, f"GBS {row.gbs} is not what gbs_rule gives: {wanted or 'no whole number'}")
            for dtype in table.dtypes:
                key = (table.size, table.gpu, dtype, row.gpus, table.scaling)
                if key in seen:
                    yield Fault(path, f"{table.size} {table.gpu} {dtype} on {row.gpus} GPUs stands there twice")
                seen.add(key)


def _disagreements(row: Row, model: Model) -> Iterator[str]:
    if row.layers > model.layers:
        yield f"{row.layers} layers are more than the model's {model.layers}"
    if row.tp * row.pp * row.cp * row.dp != row.gpus:
        yield f"TP {row.tp} * PP {row.pp} * CP {row.cp} does not divide {row.gpus} GPUs"
        return
    if row.dp % row.ep:
        yield f"EP {row.ep} does not divide DP {row.dp}"
    if row.mbs * row.dp * row.ga != row.gbs:
        yield f"MBS {row.mbs} * DP {row.dp} does not divide GBS {row.gbs}"
    stages = row.pp * (row.vp or 1)
    if stages > 1 and (row.layers + model.stage_extra_layers) % stages:
        yield f"{row.layers} layers do not divide over PP {row.pp} * VP {row.vp or 1}"
    if not row.notes:
        # Some READMEs print what is left of DP after expert parallelism.
        if row.printed["dp"] not in (None, row.dp, row.dp / row.ep):
            yield f"DP {row.printed['dp']} is printed, the other columns make it {row.dp}: a note must say so"
        if row.printed["ga"] not in (None, row.ga):
            yield f"GA {row.printed['ga']} is printed, the other columns make it {row.ga}: a note must say so"


def _results(recipe: Recipe) -> Iterator[Fault]:
    configured: set[tuple[object, ...]] = {
        (table.size, table.gpu, dtype, cells[table.columns.index("gpus")], table.scaling)
        for table in recipe.tables
        for dtype in table.dtypes
        for cells in table.rows
    }
    seen: set[tuple[object, ...]] = set()
    for index, table in enumerate(recipe.results):
        path = ("results", index)
        yield from _lengths(path, table)
        yield from _known((*path, "notes"), table.notes, [str(gpus) for gpus in table.gpus])
        for position, gpus in enumerate(table.gpus):
            key = (table.size, table.gpu, table.dtype, gpus, table.scaling)
            what = f"{table.size} {table.gpu} {table.dtype} on {gpus} GPUs ({table.scaling})"
            if key not in configured:
                yield Fault((*path, "gpus", position), f"{what} has no row of configuration")
            if (*key, table.release) in seen:
                yield Fault((*path, "gpus", position), f"{what} stands there twice")
            seen.add((*key, table.release))
    yield from _examples(recipe, configured)


def _examples(recipe: Recipe, configured: set[tuple[object, ...]]) -> Iterator[Fault]:
    for index, example in enumerate(recipe.examples):
        key = (example.size, example.gpu, example.dtype, example.gpus, example.scaling)
        if key not in configured:
            what = f"{example.size} {example.gpu} {example.dtype} on {example.gpus} GPUs ({example.scaling})"
            yield Fault(("examples", index, "gpus"), f"{what} has no row of configuration")


def _lengths(path: KeyPath, table: ResultTable) -> Iterator[Fault]:
    for field in ("step_time_s", "tokens_per_s", "mfu_pct", "days_per_1t_tokens"):
        length = len(getattr(table, field))
        if length != len(table.gpus) and not (field == "days_per_1t_tokens" and length == 0):
            yield Fault((*path, field), f"{length} values for {len(table.gpus)} scales")


def _known(path: KeyPath, names: Iterable[str], known: Iterable[str]) -> Iterator[Fault]:
    """Faults for the names that are not known; those that are keys of a table are pointed at one by one."""
    known = tuple(known)
    for name in names:
        if name not in known:
            yield Fault((*path, name) if isinstance(names, dict) else path, f"{name!r} is none of {_listed(known)}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
