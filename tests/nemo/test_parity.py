"""A run sets the same values on NeMo's recipe and in its environment as NVIDIA's scripts, field by field.

`upstream/*.json` has the values that the scripts set; its README describes how they were recorded.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import ANY

import pytest

from llmb_tui.catalog.recipe import Recipe
from llmb_tui.catalog.rows import rows
from llmb_tui.launch.settings import resolve_settings
from llmb_tui.plan.selection import RunOptions
from llmb_tui.request import RunRequest
from tests.launch.launch_cases import PROFILE
from tests.nemo.checked import ABSENT, RECIPES, Build, Facts, build, checked, first_rows, strayed

UPSTREAM = Path(__file__).with_name("upstream")
OPTIONS = {
    "": RunOptions(),
    "profile": RunOptions(profile=True),
    "save": RunOptions(save_checkpoint=True),
    "load": RunOptions(load_checkpoint="/checkpoints/one"),
    "trace": RunOptions(nccl_trace=True),
}


GB300_AS = "gb200"
"""GPU type whose rows stand for GB300: the public scripts do not accept GB300."""


class Difference(NamedTuple):
    """A field for which our value differs from the scripts' value, with the reason."""

    name: str
    """Name of the field; with `*` at its end, all fields that start with it."""
    ours: Any
    theirs: Any
    why: str
    where: tuple[str, ...] = ("h100", "b200", "gb200", "gb300")
    """Recipes or GPU types."""


DIFFERENCES = (
    Difference(
        "recipe model.config.seq_length", ANY, ABSENT, "said, as a person may change it; test_rows.py checks it"
    ),
    Difference("env NEMORUN_HOME", ABSENT, ANY, "where NeMo-Run keeps its files; nothing in the container reads it"),
    Difference("env NEMO_HOME", ABSENT, ANY, "a cache of models that the run does not use", ("llama3.1@25.04",)),
    Difference("env HF_TOKEN", ABSENT, "a-token", "the launch hands the token over, no preset", ("llama3.1@25.04",)),
    Difference(
        "recipe trainer.strategy.ddp.keep_fp8_transpose_cache",
        False,
        ABSENT,
        "the newer name of the next one, in container 25.09.00",
        ("h100", "gb300"),
    ),
    Difference(
        "recipe trainer.strategy.ddp.keep_fp8_transpose_cache_when_using_custom_fsdp",
        ABSENT,
        False,
        "see above",
        ("h100", "gb300"),
    ),
    Difference(
        "recipe trainer.callbacks[MegatronCommOverlapCallback].tp_comm_overlap_cfg*",
        ABSENT,
        ANY,
        "no source gives GB300 one",
        ("gb300",),
    ),
    Difference("env NCCL_NET_GDR_*", ABSENT, ANY, "for GB200 only", ("gb300",)),
    *(
        Difference(
            f"recipe trainer.callbacks[ModelCheckpoint].{name}",
            False,
            True,
            "NeMo cannot write the context of a run with a NullTokenizer, and ends with an error",
            ("nemotron4-340b@25.12",),
        )
        for name in ("always_save_context", "save_context_on_train_end")
    ),
)


def upstream(recipe: Recipe) -> dict[str, Facts]:
    """Values that the scripts set, by row and run option."""
    tree = json.loads((UPSTREAM / f"{recipe.id}.json").read_text(encoding="utf-8"))
    groups = tree["groups"].values()
    return {key: tree["all"] | group["all"] | own for group in groups for key, own in group["cases"].items()}


def theirs(each: Build) -> Facts | None:
    """Values that the scripts set for the same row; None if they were not recorded."""
    return UPSTREAMS[each.recipe.id].get(each.key.replace("gb300", GB300_AS))


def builds(recipe: Recipe) -> Iterator[Build]:
    """Every row without options, and the recorded rows with each run option."""
    # Llama's own procedure takes the tokenizer from the model hub.
    hub = recipe.id == "llama3.1@25.04"
    for row in rows(recipe):
        for name, options in OPTIONS.items():
            each = build(recipe, row, name, dataclasses.replace(options, hub_tokenizer=hub))
            if not name or theirs(each) is not None:
                yield each


UPSTREAMS = {recipe.id: upstream(recipe) for recipe in RECIPES}
BUILDS = [each for recipe in RECIPES for each in builds(recipe)]
(LLAMA,) = (recipe for recipe in RECIPES if recipe.id == "llama3.1@25.04")
WITHOUT_HUB = [build(LLAMA, row, "without hub") for row in first_rows(LLAMA)]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Facts]:
    return checked([*BUILDS, *WITHOUT_HUB], tmp_path_factory.mktemp("launches"))


def of(each: Build) -> str:
    return f"{each.recipe.id} {each.key}"


def ours(each: Build, printed: dict[tuple[str, str], Facts]) -> Facts:
    """Values that our run sets."""
    env = {
        f"env {name}": value
        for name, value in resolve_settings(RunRequest(each.recipe, each.plan, PROFILE)).env.items()
    }
    return env | {f"recipe {name}": value for name, value in printed[each.recipe.id, each.key].items()}


def allowed(each: Build, name: str, pair: tuple[Any, Any]) -> list[Difference]:
    """The known differences that explain this pair."""
    return [
        known
        for known in DIFFERENCES
        if (known.ours, known.theirs) == pair
        and (name == known.name or (known.name.endswith("*") and name.startswith(known.name[:-1])))
        and {each.recipe.id, each.row.gpu} & set(known.where)
    ]


def test_every_row_is_compared(print_at_end: Callable[[str], None]) -> None:
    plain = [each for each in BUILDS if each.key.endswith(("weak", "strong"))]
    assert len(plain) == 106
    recorded = {(each.recipe.id, each.key) for each in BUILDS if each.row.gpu != "gb300"}
    assert recorded == {(recipe, key) for recipe, cases in UPSTREAMS.items() for key in cases}
    count = sum(each.row.gpu == "gb300" for each in plain)
    print_at_end(f"Compared with NVIDIA's scripts: {len(plain)} rows, of which {count} of GB300 with those of GB200")


@pytest.mark.parametrize("each", BUILDS, ids=of)
def test_our_script_sets_the_same_values_as_nvidias_scripts(each: Build, printed: dict[tuple[str, str], Facts]) -> None:
    result = strayed(ours(each, printed), theirs(each) or {})
    assert {name: pair for name, pair in result.items() if not allowed(each, name, pair)} == {}


def test_every_difference_that_is_allowed_is_there(printed: dict[tuple[str, str], Facts]) -> None:
    met = {
        known.name
        for each in BUILDS
        for name, pair in strayed(ours(each, printed), theirs(each) or {}).items()
        for known in allowed(each, name, pair)
    }
    assert met == {known.name for known in DIFFERENCES}


@pytest.mark.parametrize("each", WITHOUT_HUB, ids=of)
def test_without_the_hub_only_the_tokenizer_is_another(each: Build, printed: dict[tuple[str, str], Facts]) -> None:
    key = each.key.removesuffix(" without hub")
    (hub,) = (known for known in BUILDS if (known.recipe, known.key) == (LLAMA, key))
    assert set(strayed(ours(each, printed), ours(hub, printed))) == {
        "env TRANSFORMERS_OFFLINE",
        "recipe data.tokenizer",
        *(f"recipe data.tokenizer.{name}" for name in ("library", "model_name", "vocab_size")),
        *(f"recipe data.tokenizer.{name}" for name in ("pretrained_model_name", "use_fast")),
    }


def test_a_setting_that_is_lost_is_seen(tmp_path: Path) -> None:
    (whole,) = (recipe for recipe in RECIPES if recipe.id == "nemotron4-340b@25.12")
    settings_groups = tuple(group for group in whole.settings if not any("FLOPs" in name for name in group.recipe))
    assert len(settings_groups) == len(whole.settings) - 1
    each = build(dataclasses.replace(whole, settings=settings_groups), rows(whole)[0])

    result = strayed(ours(each, checked([each], tmp_path)), theirs(each) or {})

    lost = {name for name, pair in result.items() if not allowed(each, name, pair)}
    assert "recipe trainer.callbacks" in lost
    assert "recipe trainer.callbacks[FLOPsMeasurementCallback].model_name" in lost
