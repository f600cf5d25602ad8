"""Settings of the training by NVIDIA's scripts of the Hydra recipes, and by our script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.launch.direct.spec_of import launch_spec
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.make import plan
from llmb_tui.plan.selection import Overrides, RunOptions, Selection
from llmb_tui.request import RunRequest
from tests.launch.launch_cases import PROFILE, RUN_ID

_TOKENIZER = (
    "a tokenizer that needs no file takes the recipe's place, with the vocabulary that NeMo pads the recipe's to"
)
_UNUSED = "only the recipe's tokenizer and data files are looked for below it, and mock data takes none"
ALLOWED = {
    "llama3.1-24.11": {
        "data_dir": _UNUSED,
        "model.override_vocab_size": _TOKENIZER,
        "model.tokenizer.delimiter": _TOKENIZER,
        "model.tokenizer.library": _TOKENIZER,
        "model.tokenizer.merge_file": _TOKENIZER,
        "model.tokenizer.model": _TOKENIZER,
        "model.tokenizer.type": _TOKENIZER,
        "model.tokenizer.vocab_file": _TOKENIZER,
    },
    "grok1-25.02": {
        "model.override_vocab_size": _TOKENIZER,
        "model.tokenizer.library": _TOKENIZER,
        "model.tokenizer.type": _TOKENIZER,
        "model.tokenizer.use_fast": _TOKENIZER,
    },
}
"""By preset: fields with a value that differs from the published one, or that only one side has, and the reason."""
_SELECTED = {"llama3.1-24.11": ("llama3.1", "24.11", "405b"), "grok1-25.02": ("grok1", "25.02", "314b")}


class Row(NamedTuple):
    """Row of the published tables, and the options of the run."""

    preset: str
    gpus: int
    dtype: str
    options: RunOptions

    def spec(self, catalog: Catalog) -> LaunchSpec:
        workload, release, size = _SELECTED[self.preset]
        selection = Selection(workload, release, size, "h100", self.dtype, self.gpus, options=self.options)
        return launch_spec(
            RunRequest(catalog.recipe(f"{workload}@{release}"), plan(catalog, selection), PROFILE), RUN_ID
        )


def golden() -> dict[str, tuple[Row, dict[str, Any]]]:
    """Each row by name, with its published configuration by dotted field."""
    found = {}
    for preset in _SELECTED:
        recorded = json.loads(Path(__file__).with_name("golden").joinpath(f"{preset}.resolved.json").read_text())
        for name, fields in recorded["rows"].items():
            gpus, dtype, *options = name.split()
            row = Row(
                preset, int(gpus), dtype, RunOptions(profile="profile" in options, nccl_trace="nccl_trace" in options)
            )
            found[f"{preset} {name}"] = (row, recorded["common"] | fields)
    return found


def without_virtual_stages(catalog: Catalog) -> list[LaunchSpec]:
    """Runs with a pipeline but without virtual stages, one per preset; no published row is like that."""
    asked = [
        Selection(*_SELECTED[preset], "h100", "bf16", gpus, overrides=Overrides(vp=1))
        for preset, gpus in (("llama3.1-24.11", 96), ("grok1-25.02", 512))
    ]
    recipes = [catalog.recipe(selection.workload, selection.release) for selection in asked]
    plans = [plan(catalog, selection) for selection in asked]
    assert all(made.launchable for made in plans)
    pairs = zip(recipes, plans, strict=True)
    return [launch_spec(RunRequest(recipe, made, PROFILE), RUN_ID) for recipe, made in pairs]


def overlaps_of_virtual_stages(fields: dict[str, Any]) -> list[Any]:
    """Settings that Megatron and NeMo refuse without virtual stages, and their replacements."""
    names = ("overlap_p2p_comm", "optim.overlap_param_gather_with_optimizer_step", "batch_p2p_comm")
    return [fields.get(f"model.{name}", False) for name in names]


def flat(value: Any, field: str = "") -> dict[str, Any]:
    """Configuration by dotted field."""
    if not isinstance(value, dict) or not value:
        return {field: value}
    return {f: v for name, part in value.items() for f, v in flat(part, f"{field}.{name}".lstrip(".")).items()}


def differing(ours: dict[str, Any], published: dict[str, Any]) -> set[str]:
    """Fields with different values or types, or that only one side has."""
    pairs = [{(field, json.dumps(value)) for field, value in fields.items()} for fields in (ours, published)]
    return {field for field, _ in pairs[0] ^ pairs[1]}


def given(spec: LaunchSpec) -> tuple[str, str, tuple[str, ...]]:
    """Name of a run's configuration file, its text, and the overrides on the command line."""
    place = next(index for index, word in enumerate(spec.command) if word.startswith("--config-name="))
    assert spec.command[place - 1] == "--config-path=/nemo_run/configs"
    name = spec.command[place].partition("=")[2]
    return name, dict(spec.files)[f"configs/{name}"], spec.command[place + 1 :]
