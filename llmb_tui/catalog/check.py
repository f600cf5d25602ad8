"""`faults`: consistency checks of a preset, beyond the types of its fields."""

from __future__ import annotations

from collections.abc import Iterator

from llmb_tui.catalog.layout import fills_pipeline, sequence_pieces, shared_heads, stage_places
from llmb_tui.catalog.recipe import ConfigTable, Gpu, LaunchFacts, Model, Recipe, ResultRule, ResultTable
from llmb_tui.catalog.rows import PRINTED_COLUMNS, Row, gbs_by_rule, row_of, rows
from llmb_tui.catalog.settings import LAYOUT, PLACEHOLDERS, SettingsGroup, applies, passed_values, placeholder_faults
from llmb_tui.catalog.upstream_check import Faults, among, below, comma_list, condition_faults, upstream_faults
from llmb_tui.language.text import plural
from llmb_tui.toml.lines import KeyPath

_NEEDED_COLUMNS = ("gpus", "tp", "pp", "cp", "mbs", "gbs")
_MAY_BE_NA = ("ep", "vp")


def faults(recipe: Recipe) -> Faults:
    """Every inconsistency of a recipe. Checks that depend on a faulty part are skipped."""
    inconsistencies = [
        *_names(recipe),
        *_models(recipe),
        *_launch(recipe.launch, recipe),
        *_rule(recipe.rule, recipe.launch.steps),
    ]
    for index, table in enumerate(recipe.tables):
        inconsistencies += below(("tables", index), _table(table, recipe))
    for index, group in enumerate(recipe.settings):
        inconsistencies += below(("settings", index), _settings(group, recipe))
    inconsistencies += [*_corrections(recipe), *_upstream(recipe)]
    if not inconsistencies:
        inconsistencies += [*_rows(recipe), *_results(recipe), *_unset_values(recipe)]
    yield from inconsistencies


def _names(recipe: Recipe) -> Faults:
    for field, value in (("dtypes", recipe.dtypes), ("gpus", recipe.gpus), ("models", recipe.models)):
        if not value:
            yield (field,), "is empty"
    yield from among(("precision_variants",), recipe.precision_variants, recipe.dtypes)
    yield from among(("containers",), recipe.containers, {gpu.container for gpu in recipe.gpus.values()})
    for gpu, facts in recipe.gpus.items():
        path = ("gpus", gpu, "peak_tflops")
        yield from among(path, facts.peak_tflops, recipe.dtypes)
        run = [dtype for dtype in recipe.dtypes if any(t.gpu == gpu and dtype in t.dtypes for t in recipe.tables)]
        if not facts.peak_tflops.keys() >= set(run):
            yield path, f"must have a peak for each of {comma_list(run)}"


def _models(recipe: Recipe) -> Faults:
    for size, model in recipe.models.items():
        path = ("models", size)
        if all(table.size != size for table in recipe.tables):
            yield path, "has no table of configurations"
        if model.heads % model.query_groups:
            yield (*path, "query_groups"), f"{model.query_groups} does not divide {model.heads} heads"
        if model.experts_per_token > model.experts:
            yield (*path, "experts_per_token"), f"more than {model.experts} experts"
        for field in ("save_min_gpus", "load_min_gpus"):
            yield from among((*path, field), getattr(model, field), recipe.gpus)


def _launch(launch: LaunchFacts, recipe: Recipe) -> Faults:
    if launch.kind == "nemo2" and set(launch.factories) != set(recipe.models):
        yield ("launch", "factories"), f"must have a factory for each of {comma_list(recipe.models)}"
    for reason in placeholder_faults(launch.arguments):
        yield ("launch", "arguments"), reason
    if launch.kind == "hydra" and not launch.command:
        yield ("launch", "command"), "is empty"


def _settings(group: SettingsGroup, recipe: Recipe) -> Faults:
    """Faults of one group of settings, with paths inside it."""
    yield from among(("containers",), group.containers, {gpu.container for gpu in recipe.gpus.values()})
    yield from among(("sizes",), group.sizes, recipe.models)
    yield from among(("gpus",), group.gpus, recipe.gpus)
    yield from among(("dtypes",), group.dtypes, recipe.dtypes)
    yield from condition_faults(group.when)
    for field in ("overrides", "prefix"):
        for index, text in enumerate(getattr(group, field)):
            for reason in placeholder_faults(text):
                yield (field, index), reason
    for reason in placeholder_faults(group.differs):
        yield ("differs",), reason
    for field in ("recipe", "base", "env", "srun"):
        for name, value in getattr(group, field).items():
            for reason in placeholder_faults(value):
                yield (field, name), reason


def _rule(rule: ResultRule, steps: int) -> Faults:
    if rule.kind == "last":
        for field in ("first", "last"):
            if getattr(rule, field) is not None:
                yield ("rule", field), "belongs to the kind `mean`"
    elif rule.first is None or rule.last is None or not rule.first <= rule.last < steps:
        yield ("rule",), f"`mean` needs first and last, in order and below {steps} steps"


def _table(table: ConfigTable, recipe: Recipe) -> Faults:
    """Faults of one table of configurations, with paths inside it."""
    yield from among(("size",), [table.size], recipe.models)
    yield from among(("gpu",), [table.gpu], recipe.gpus)
    yield from among(("dtypes",), table.dtypes, recipe.dtypes)
    if not table.dtypes:
        yield ("dtypes",), "is empty"
    try:
        gbs_by_rule(table.gbs_rule, 1)
    except (ValueError, ZeroDivisionError):
        yield ("gbs_rule",), f"{table.gbs_rule!r} is neither a fraction such as 252/576 nor `const` and a number"
    yield from among(("columns",), table.columns, ("gpus", *PRINTED_COLUMNS))
    missing = [name for name in _NEEDED_COLUMNS if name not in table.columns]
    if missing or len(set(table.columns)) != len(table.columns):
        yield ("columns",), f"{comma_list(missing)} missing" if missing else "a column is there twice"
        return
    if not table.rows:
        yield ("rows",), "is empty"
        return
    for index, cells in enumerate(table.rows):
        if len(cells) != len(table.columns):
            yield ("rows", index), f"{len(cells)} cells for {len(table.columns)} columns"
            continue
        for position, (name, cell) in enumerate(zip(table.columns, cells, strict=True)):
            if (cell == "NA" and name not in _MAY_BE_NA) or (cell != "NA" and int(cell) < 1):
                yield ("rows", index, position), f"{name} cannot be {cell}"
    if all(len(cells) == len(table.columns) for cells in table.rows):
        yield from among(("notes",), table.notes, [str(cells[table.columns.index("gpus")]) for cells in table.rows])


def _upstream(recipe: Recipe) -> Faults:
    if recipe.upstream is not None:
        ignored = [option.variable for option in recipe.options if not option.effective]
        yield from below("upstream", upstream_faults(recipe.upstream, recipe.gpus, ignored))


def _corrections(recipe: Recipe) -> Faults:
    for index, correction in enumerate(recipe.corrections):
        yield from among(("corrections", index, "size"), [correction.size], recipe.models)
        yield from among(("corrections", index, "column"), [correction.column], LAYOUT)


def _rows(recipe: Recipe) -> Faults:
    keys: set[tuple[object, ...]] = set()
    for index, table in enumerate(recipe.tables):
        for line, cells in enumerate(table.rows):
            path = ("tables", index, "rows", line)
            # The checks of a row's numbers do not depend on its precision.
            row = row_of(recipe, table, cells, table.dtypes[0])
            for reason in _row_faults(row, recipe.models[table.size], recipe.gpus[table.gpu]):
                yield path, reason
            gbs = gbs_by_rule(table.gbs_rule, row.gpus)
            if not row.proxy and row.gbs != gbs:
                yield path, f"GBS {row.gbs} differs from gbs_rule, which gives {gbs or 'a fraction'}"
            for dtype in table.dtypes:
                key = (table.size, table.gpu, dtype, row.gpus, table.scaling)
                if key in keys:
                    yield path, f"{table.size} {table.gpu} {dtype} on {row.gpus} GPUs is there twice"
                keys.add(key)


def _row_faults(row: Row, model: Model, gpu: Gpu) -> Iterator[str]:
    if row.layers > model.layers:
        yield f"{row.layers} layers are more than the model's {model.layers}"
    if row.tp * row.pp * row.cp * row.dp != row.gpus:
        yield f"TP {row.tp} * PP {row.pp} * CP {row.cp} does not divide {row.gpus} GPUs"
        return
    if row.dp % row.ep:
        yield f"EP {row.ep} does not divide DP {row.dp}"
    if row.mbs * row.dp * row.ga != row.gbs:
        yield f"MBS {row.mbs} * DP {row.dp} does not divide GBS {row.gbs}"
    if stage_places(model, row.layers) % (row.pp * (row.vp or 1)):
        yield f"{row.layers} layers do not divide over PP {row.pp} * VP {row.vp or 1}"
    yield from _launch_faults(row, model, gpu)
    if not row.notes:
        # Some READMEs print DP divided by EP.
        if row.printed["dp"] not in (None, row.dp, row.dp / row.ep):
            yield f"the README prints DP {row.printed['dp']}, the other columns give {row.dp}: add a note"
        if row.printed["ga"] not in (None, row.ga):
            yield f"the README prints GA {row.printed['ga']}, the other columns give {row.ga}: add a note"


def _launch_faults(row: Row, model: Model, gpu: Gpu) -> Iterator[str]:
    """Errors of a plan of the row, which could not be launched."""
    if row.gpus % gpu.gpus_per_node:
        yield f"{row.gpus} GPUs do not fill nodes of {gpu.gpus_per_node}"
    if shared_heads(model) % row.tp:
        yield f"TP {row.tp} does not divide {model.heads} heads and {plural(model.query_groups, 'query group')}"
    if model.experts % row.ep:
        yield f"EP {row.ep} does not divide {plural(model.experts, 'expert')}"
    if row.seq_len % (pieces := sequence_pieces(row.tp, row.cp)):
        yield f"sequence length {row.seq_len} does not split into {pieces} pieces (TP {row.tp}, CP {row.cp})"
    if row.vp and row.pp == 1:
        yield f"VP {row.vp} needs a pipeline, and PP is 1"
    elif row.vp and not fills_pipeline(row.ga, row.pp):
        yield f"GA {row.ga} is not a multiple of PP {row.pp}; virtual stages need that"


# Values of every plan. EP is 1 for a model without experts, whatever is set.
_PLANNED = ("tp", "pp", "cp", "vp", "mbs", "gbs", "seq_len", "layers", "steps", "nodes")


def _unset_values(recipe: Recipe) -> Faults:
    """Values of a plan that no setting passes to the run: NeMo's defaults would run instead."""
    for index, table in enumerate(recipe.tables):
        missing: dict[str, None] = {}
        for dtype in table.dtypes:
            for cells in table.rows:
                missing |= dict.fromkeys(_not_set(recipe, row_of(recipe, table, cells, dtype)))
        if missing:
            reason = f"no setting passes {comma_list(missing)}: NeMo's defaults would run instead of this table"
            yield ("tables", index), reason


def _not_set(recipe: Recipe, row: Row) -> Iterator[str]:
    runs = {name: getattr(row, name) for name in (*LAYOUT, "dp", "ga", "gpus", "dtype")}
    runs |= {"fp8": row.dtype == "fp8", "pipelined": row.pp > 1, "strong": row.scaling == "strong"}
    values = dict.fromkeys(PLACEHOLDERS) | runs | {"steps": recipe.launch.steps}
    names = (recipe.gpus[row.gpu].container, row.size, row.gpu, row.dtype)
    groups = [group for group in recipe.settings if applies(group, names, values)]
    passed = set(passed_values(recipe.launch.arguments))
    passed |= {name for group in groups for name in passed_values([group.recipe, group.base, group.overrides])}
    planned = (*_PLANNED, "ep") if recipe.models[row.size].experts > 1 else _PLANNED
    yield from (f"{{{name}}}" for name in planned if name not in passed)
    several = len(recipe.dtypes) > 1  # a setting of all runs needs no condition
    if several and row.dtype != "bf16" and not passed & {"dtype", "fp8"} and not any(map(_is_for_precision, groups)):
        yield row.dtype


def _is_for_precision(group: SettingsGroup) -> bool:
    """True for settings that exclude BF16, the default precision of the recipes."""
    return "fp8" in group.when or bool(group.dtypes and "bf16" not in group.dtypes)


def _results(recipe: Recipe) -> Faults:
    configured = {(row.size, row.gpu, row.dtype, row.gpus, row.scaling) for row in rows(recipe)}
    keys: set[tuple[object, ...]] = set()
    for index, table in enumerate(recipe.results):
        path = ("results", index)
        yield from _lengths(path, table)
        yield from among((*path, "notes"), table.notes, [str(gpus) for gpus in table.gpus])
        for position, gpus in enumerate(table.gpus):
            key = (table.size, table.gpu, table.dtype, gpus, table.scaling)
            if key not in configured:
                yield (*path, "gpus", position), f"{_in_words(*key)} has no configuration row"
            if (*key, table.release) in keys:
                yield (*path, "gpus", position), f"{_in_words(*key)} is there twice"
            keys.add((*key, table.release))
    for index, example in enumerate(recipe.examples):
        key = (example.size, example.gpu, example.dtype, example.gpus, example.scaling)
        if key not in configured:
            yield ("examples", index, "gpus"), f"{_in_words(*key)} has no configuration row"


def _in_words(size: str, gpu: str, dtype: str, gpus: int, scaling: str) -> str:
    return f"{size} {gpu} {dtype} on {gpus} GPUs ({scaling})"


def _lengths(path: KeyPath, table: ResultTable) -> Faults:
    for field in ("step_time_s", "tokens_per_s", "mfu_pct", "days_per_1t_tokens"):
        length = len(getattr(table, field))
        if length != len(table.gpus) and not (field == "days_per_1t_tokens" and length == 0):
            yield (*path, field), f"{length} values for {len(table.gpus)} scales"
