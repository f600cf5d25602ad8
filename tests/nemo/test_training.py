"""The entry script trains on a CPU with all settings of the presets, but small sizes, on two ranks."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.catalog.load import load_presets, read_preset
from llmb_tui.plan.selection import Overrides, RunOptions, Selection
from llmb_tui.watch.parse import StepParser
from llmb_tui.watch.state import Step
from tests.nemo.shrunken import PRESET, PRETRAIN, RANKS, Ended, in_a_pod, launch_file, shrunken_launch, train

STEPS = 4
SMALL = Overrides(tp=1, pp=1, cp=1, ep=1, vp=1, mbs=1, gbs=16, seq_len=64, layers=2)
NEMOTRON_15B = Selection("nemotron4", "25.04", "15b", "h100", "fp8", 16, overrides=SMALL, steps=STEPS)
LLAMA_8B = Selection("llama3.1", "25.04", "8b", "h100", "bf16", 8, overrides=SMALL, steps=STEPS)
NEMOTRON_340B = Selection("nemotron4-340b", "25.12", "340b", "gb200", "fp8", 128, overrides=SMALL, steps=STEPS)
GUESSING = log(512)
"""Loss of a model that has learned nothing about its 512 words, as random data does not allow it."""


def small_launch(selection: Selection) -> dict[str, Any]:
    """`launch.json` of a built-in preset, on one node of two GPUs, with the sizes of the shrunken one and on a CPU."""
    launch = launch_file(
        load_presets().recipe(selection.workload, selection.release),
        selection,
        **{name: value for name, value in shrunken_launch()["settings"].items() if name in shrinking()},
    )
    return launch | {"arguments": launch["arguments"] | {"num_nodes": 1, "num_gpus_per_node": RANKS}}


def shrinking() -> set[str]:
    """Settings that only the shrunken preset has."""
    _, *others = read_preset(PRESET).settings
    return {name for group in others for name in group.recipe}


def steps_of(rank: Ended) -> list[Step]:
    parser = StepParser("nemo2")
    return parser.feed(rank.log.encode()) + parser.close()


def trained(version: str, folder: Path, selection: Selection) -> str:
    """Train, check the properties of every training, and return the log of rank 0."""
    folder.mkdir(exist_ok=True)
    first, second = train(version, folder, small_launch(selection))
    assert (first.code, second.code) == (0, 0), first.log + second.log
    head, _, _ = first.log.partition("Training epoch")
    assert f"\nNeMo {version}\n" in f"\n{head}"
    assert "\ntrainer.num_nodes = 1\n" in head
    assert "NeMo 2" not in second.log
    assert [step.index for step in steps_of(first)] == list(range(selection.steps or 0))
    assert steps_of(second) == []
    for step in steps_of(first):
        assert step.step_time_s
        assert step.loss == pytest.approx(GUESSING, abs=0.05)
    return first.log


@pytest.mark.parametrize(
    ("version", "selection"), [("2.2.1", NEMOTRON_15B), ("2.4.0", NEMOTRON_340B)], ids=["15b", "340b"]
)
def test_a_recipe_trains_with_its_presets_settings(version: str, selection: Selection, tmp_path: Path) -> None:
    trained(version, tmp_path, selection)


@pytest.mark.parametrize(("version", "selection"), [("2.2.1", LLAMA_8B), ("2.4.0", NEMOTRON_340B)], ids=["8b", "340b"])
def test_a_checkpoint_is_saved_and_loaded(version: str, selection: Selection, tmp_path: Path) -> None:
    saved = trained(version, tmp_path / "save", replace(selection, options=RunOptions(save_checkpoint=True)))
    assert "Successfully saved checkpoint" in saved
    (weights,) = (tmp_path / "save").rglob("weights")
    options = RunOptions(load_checkpoint=str(weights.parent))
    loaded = trained(version, tmp_path / "load", replace(selection, steps=1, options=options))
    assert "Global Checkpoint Load" in loaded
    # The rate grows from zero by the same amount with each step: the optimizer continues from its old state.
    assert learning_rates(loaded) == pytest.approx([learning_rates(saved)[0] * (STEPS + 1)], rel=0.001)


def learning_rates(text: str) -> list[float]:
    return [float(word) for word in re.findall(r"\| lr: (\S+) \|", text)]


def test_a_setting_that_nemo_cannot_use_ends_it_with_nemos_reason(tmp_path: Path) -> None:
    launch = small_launch(LLAMA_8B)
    launch["settings"]["model.config.num_query_groups"] = 3
    ended = next(rank for rank in train("2.2.1", tmp_path, launch) if rank.code > 0)
    assert ended.code == 1
    parser = StepParser("nemo2")
    assert parser.feed(ended.log.encode()) == []
    assert parser.failure is not None
    assert ended.log.splitlines()[-1] == f"[rank{parser.failure.rank}]: {parser.failure.line}"
    assert "Error: " in parser.failure.line


def test_torchrun_in_a_pod_starts_the_same_script(tmp_path: Path) -> None:
    launch = json.dumps(small_launch(NEMOTRON_340B))
    files = (
        ("code/pretrain.py", PRETRAIN.read_text()),
        ("code/start.sh", 'exec "$@"\n'),
        ("configs/launch.json", launch),
    )
    printed = in_a_pod("2.4.0", tmp_path, files)
    parser = StepParser("nemo2")
    steps = parser.feed(printed.encode()) + parser.close()
    assert [step.index for step in steps] == list(range(STEPS)), printed
    assert printed.count("\nNeMo 2.4.0\n") == 1, "only rank 0 prints the configuration"
