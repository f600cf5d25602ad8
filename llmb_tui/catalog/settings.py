"""`SettingsGroup`: settings of a recipe from one source, and the configurations that they apply to.

A string may contain placeholders for values of the plan, such as `{tp}` or `{steps*gbs}`. A string that is one
placeholder becomes the plan's value with its type; in a longer string the value is written in Hydra's syntax.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Annotated, Any

from llmb_tui.toml.bounds import Bound, Spelled

STRICT = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
"""Pydantic configuration of preset files; a plain dict, so that the dataclasses do not need pydantic."""

Value = int | str | bool | list[int] | None
Values = Mapping[str, Value]

LAYOUT = tuple("tp pp cp ep vp mbs gbs seq_len layers".split())
"""Columns of a layout in a configuration table; `dp` and `ga` follow from them."""
NUMBERS = (*LAYOUT, *"dp ga hidden vocab nodes gpus_per_node gpus steps profile_start profile_stop".split())
PLACEHOLDERS = (
    *NUMBERS,
    *"dtype fp8 pipelined strong all_ranks tokenizer results_dir none".split(),
    *"hub_tokenizer profile nccl_trace save_checkpoint load_checkpoint no_network_file".split(),
)
"""Names of placeholders and conditions. `vp` is null without virtual stages; `fp8`, `pipelined` (PP above 1) and
`strong` (strong scaling) are true or false; `hidden` and `vocab` belong to the model, `tokenizer` is its repository on
the model hub; `all_ranks` is the list of the job's ranks; `results_dir` is a directory in the container; `none` is
null, which TOML lacks; the last row, `profile_start` and `profile_stop` are run options."""

_CONDITION = re.compile(r"(?:(not) )?(\w+)(?: (>|<|==) (\d+))?", re.ASCII)
# A complete value, or a complete override of Hydra.
_PASSED_VALUE = re.compile(r"(?:[^{}=]*=)?\{(\w+)\}", re.ASCII)
_COMPARE = {">": operator.gt, "<": operator.lt, "==": operator.eq}
_RecipeField = Annotated[
    str,
    Spelled(
        r"[a-z]\w*(\.[a-z]\w*(\[[A-Z]\w*\])?)*",
        "is not a field of a recipe, such as `trainer.callbacks[TimingCallback].name`",
    ),
]
_Variable = Annotated[str, Spelled(r"[A-Za-z_][A-Za-z0-9_]*", "is not a name of an environment variable")]
_SrunOption = Annotated[str, Spelled(r"[a-z][a-z-]*", "is not a long option of srun")]


@dataclass(frozen=True, slots=True)
class SettingsGroup:
    """Settings that apply if every filter and condition holds; a later group overrides an earlier one."""

    source: str
    containers: tuple[str, ...] = ()
    """Filter by image reference; empty: all. The next three filters work alike."""
    sizes: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    """Conditions, such as `pp > 1`, `mbs == 2`, `profile` or `not profile`. Null counts as 0."""
    note: str | None = None
    differs: str | None = None
    """Difference from NVIDIA's scripts in a few words, for the review of a run."""
    recipe: dict[_RecipeField, Any] = field(default_factory=dict)
    """nemo2: fields of NeMo's recipe, for `remote/pretrain.py`."""
    base: dict[str, Any] = field(default_factory=dict)
    """hydra: dotted fields of the base configuration."""
    overrides: tuple[str, ...] = ()
    """hydra: overrides on the command line, in their order."""
    env: dict[_Variable, str] = field(default_factory=dict)
    """Environment variables of the training."""
    srun: dict[_SrunOption, str | bool] = field(default_factory=dict)
    """Long options of the `srun` that starts the training; true for a flag."""
    prefix: tuple[str, ...] = ()
    """Words before the training's command, such as a profiler's."""
    tasks_per_numa_node: Annotated[int, Bound(ge=1)] | None = None
    """Binds each task to the NUMA node (local task number / this); None: no binding."""
    segment: Annotated[int, Bound(ge=1)] | None = None
    """Largest segment for `sbatch --segment`; the largest number up to this that divides the job's nodes is used."""


def applies(group: SettingsGroup, names: tuple[str | None, str, str, str], values: Values) -> bool:
    """True if a group applies to a configuration: (container, size, GPU type, precision) and values."""
    filters = (group.containers, group.sizes, group.gpus, group.dtypes)
    is_selected = all(not allowed or name in allowed for allowed, name in zip(filters, names, strict=True))
    return is_selected and all(holds(text, values) for text in group.when)


def passed_values(setting: Any) -> Iterator[str]:
    """Names of the values that settings pass on unchanged: `"{tp}"` does, `"{steps*gbs}"` does not."""
    if isinstance(setting, str):
        match = _PASSED_VALUE.fullmatch(setting)
        if match:
            yield match[1]
    elif isinstance(setting, (dict, list, tuple)):
        for part in setting.values() if isinstance(setting, dict) else setting:
            yield from passed_values(part)


def holds(condition: str, values: Values) -> bool:
    """True if a condition holds. Raises ValueError for an invalid condition."""
    match = _CONDITION.fullmatch(condition)
    names = PLACEHOLDERS if match is None or match[3] is None else NUMBERS
    if match is None or match[2] not in names or (match[1] and match[3]):
        raise ValueError(f"{condition!r} is not a condition such as `pp > 1`, `profile` or `not profile`")
    value = values[match[2]]
    if match[3] is None:
        return bool(value) is not bool(match[1])
    return bool(_COMPARE[match[3]](_number(value), int(match[4])))


def fill(value: Any, values: Values) -> Any:
    """The value of a setting with every placeholder replaced, also in lists and tables."""
    if isinstance(value, dict):
        return {name: fill(part, values) for name, part in value.items()}
    if isinstance(value, list):
        return [fill(part, values) for part in value]
    if not isinstance(value, str):
        return value
    parts = list(Formatter().parse(value))
    if len(parts) == 1 and parts[0][0] == "" and parts[0][1] is not None:
        return _value(parts[0][1], values)
    return "".join(before + ("" if name is None else _word(_value(name, values))) for before, name, _, _ in parts)


def placeholder_faults(value: Any) -> Iterator[str]:
    """Faults of the placeholders in a setting's value."""
    if isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from placeholder_faults(part)
    elif isinstance(value, str):
        try:
            parts = list(Formatter().parse(value))
        except ValueError as error:
            yield f"{value!r}: {error}"
            return
        for _, names, spec, conversion in parts:
            if names is not None and not _is_product(names, spec, conversion):
                yield f"{value!r}: {{{names}}} is not one of {', '.join(PLACEHOLDERS)}, or a product of them"


def _is_product(names: str, spec: str | None, conversion: str | None) -> bool:
    factors = names.split("*")
    all_known = all(name in (NUMBERS if len(factors) > 1 else PLACEHOLDERS) for name in factors)
    return all_known and not spec and not conversion


def _value(names: str, values: Values) -> Value:
    """The value of `tp` or `steps*gbs`."""
    if "*" not in names:
        return values[names]
    return math.prod(_number(values[name]) for name in names.split("*"))


def _number(value: Value) -> int:
    """The number; 0 for null."""
    return value if isinstance(value, int) else 0


def _word(value: Value) -> str:
    return "null" if value is None else str(value)
