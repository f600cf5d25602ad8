"""`SettingsGroup`: some of a recipe's settings that have one source, and where they apply.

A string may hold placeholders, such as `{tp}` or `{steps*gbs}`, for what the plan says. A string that is nothing but
one placeholder becomes the plan's value with its type; in a longer one the value is written as Hydra reads it.
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
"""How pydantic reads a file of presets, and the dataclasses in it; a plain dict, so that none needs pydantic."""

Value = int | str | bool | list[int] | None
Values = Mapping[str, Value]

LAYOUT = tuple("tp pp cp ep vp mbs gbs seq_len layers".split())
"""What a configuration table says of a layout; `dp` and `ga` follow from it."""
NUMBERS = (*LAYOUT, *"dp ga hidden vocab nodes gpus_per_node gpus steps profile_start profile_stop".split())
PLACEHOLDERS = (
    *NUMBERS,
    *"dtype fp8 pipelined strong all_ranks tokenizer results_dir none".split(),
    *"hub_tokenizer profile nccl_trace save_checkpoint load_checkpoint no_network_file".split(),
)
"""What a placeholder or a condition may name. `vp` is null for none; `fp8`, `pipelined` (PP above 1) and `strong`
(strong scaling) are true or false; `hidden` and `vocab` are the model's, `tokenizer` is its repository on the model
hub; `all_ranks` is the list of the job's ranks; `results_dir` is a directory in the container; `none` is null, for
which TOML has no word; the last line and `profile_start`, `profile_stop` are the run's options."""

_CONDITION = re.compile(r"(?:(not) )?(\w+)(?: (>|<|==) (\d+))?", re.ASCII)
# The whole of a value, or of an override of Hydra's.
_HANDED_ON = re.compile(r"(?:[^{}=]*=)?\{(\w+)\}", re.ASCII)
_COMPARE = {">": operator.gt, "<": operator.lt, "==": operator.eq}
_RecipeField = Annotated[
    str,
    Spelled(
        r"[a-z]\w*(\.[a-z]\w*(\[[A-Z]\w*\])?)*",
        "is no field of a recipe, such as `trainer.callbacks[TimingCallback].name`",
    ),
]
_Variable = Annotated[str, Spelled(r"[A-Za-z_][A-Za-z0-9_]*", "is no name of an environment variable")]
_SrunOption = Annotated[str, Spelled(r"[a-z][a-z-]*", "is no long option of srun")]


@dataclass(frozen=True, slots=True)
class SettingsGroup:
    """A group of settings. It applies where every filter and condition holds; of two groups the later one wins."""

    source: str
    containers: tuple[str, ...] = ()
    """Image references that it is for; empty, as with the filters below: all."""
    sizes: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    when: tuple[str, ...] = ()
    """Conditions, such as `pp > 1`, `mbs == 2`, `profile` or `not profile`. Null counts as 0."""
    note: str | None = None
    differs: str | None = None
    """What is otherwise than in NVIDIA's own scripts, in a few words for who reviews a run."""
    recipe: dict[_RecipeField, Any] = field(default_factory=dict)
    """nemo2: fields of NeMo's recipe, as `remote/pretrain.py` reads them."""
    base: dict[str, Any] = field(default_factory=dict)
    """hydra: dotted fields of the base configuration."""
    overrides: tuple[str, ...] = ()
    """hydra: overrides on the command line, in their order."""
    env: dict[_Variable, str] = field(default_factory=dict)
    """Environment variables of the training."""
    srun: dict[_SrunOption, str | bool] = field(default_factory=dict)
    """Long options of the `srun` that starts the training; true for a flag."""
    prefix: tuple[str, ...] = ()
    """Words in front of the training's command, such as those of a profiler."""
    tasks_per_numa_node: Annotated[int, Bound(ge=1)] | None = None
    """Every task is bound to the NUMA node of its number on the node, divided by this; None: none is bound."""
    segment: Annotated[int, Bound(ge=1)] | None = None
    """Most nodes in a segment, for `sbatch --segment`: the greatest such number that divides the job's nodes."""


def applies(group: SettingsGroup, names: tuple[str | None, str, str, str], values: Values) -> bool:
    """Whether a group is for a configuration of this container, size, GPU type and precision, with these values."""
    filters = (group.containers, group.sizes, group.gpus, group.dtypes)
    mine = all(not allowed or name in allowed for allowed, name in zip(filters, names, strict=True))
    return mine and all(holds(text, values) for text in group.when)


def handed_on(setting: Any) -> Iterator[str]:
    """Names of the values that settings hand on as they are, as `"{tp}"` does, and `"{steps*gbs}"` does not."""
    if isinstance(setting, str):
        match = _HANDED_ON.fullmatch(setting)
        if match:
            yield match[1]
    elif isinstance(setting, (dict, list, tuple)):
        for part in setting.values() if isinstance(setting, dict) else setting:
            yield from handed_on(part)


def holds(condition: str, values: Values) -> bool:
    """Whether one condition is met. Raises ValueError for one that cannot be read."""
    match = _CONDITION.fullmatch(condition)
    names = PLACEHOLDERS if match is None or match[3] is None else NUMBERS
    if match is None or match[2] not in names or (match[1] and match[3]):
        raise ValueError(f"{condition!r} is no condition such as `pp > 1`, `profile` or `not profile`")
    value = values[match[2]]
    if match[3] is None:
        return bool(value) is not bool(match[1])
    return bool(_COMPARE[match[3]](_number(value), int(match[4])))


def fill(value: Any, values: Values) -> Any:
    """A setting's value, also inside lists and tables, with every placeholder replaced."""
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
    """Why the placeholders in a setting's value cannot be filled."""
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
                yield f"{value!r}: {{{names}}} is none of {', '.join(PLACEHOLDERS)}, nor a product of them"


def _is_product(names: str, spec: str | None, conversion: str | None) -> bool:
    factors = names.split("*")
    all_known = all(name in (NUMBERS if len(factors) > 1 else PLACEHOLDERS) for name in factors)
    return all_known and not spec and not conversion


def _value(names: str, values: Values) -> Value:
    """What `tp` or `steps*gbs` stands for."""
    if "*" not in names:
        return values[names]
    return math.prod(_number(values[name]) for name in names.split("*"))


def _number(value: Value) -> int:
    """The number, 0 for null."""
    return value if isinstance(value, int) else 0


def _word(value: Value) -> str:
    return "null" if value is None else str(value)
