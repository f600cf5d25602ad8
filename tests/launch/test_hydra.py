"""The configuration that a Hydra recipe's run contains, and the overrides in its command."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from llmb_tui.catalog.catalog import Catalog
from llmb_tui.errors import LlmbError
from llmb_tui.launch.files import base_configuration
from llmb_tui.launch.spec import LaunchSpec
from llmb_tui.plan.selection import Overrides, RunOptions
from tests.launch.hydra_cases import (
    ALLOWED,
    differing,
    flat,
    given,
    golden,
    overlaps_of_virtual_stages,
    without_virtual_stages,
)
from tests.launch.launch_cases import MakeSpec

GOLDEN = golden()
LLAMA_32 = ("llama3.1@24.11", "405b", "h100", "fp8", 32)
GROK_64 = ("grok1@25.02", "314b", "h100", "bf16", 64)


def resolved(spec: LaunchSpec) -> dict[str, Any]:
    """Configuration as OmegaConf reads both. Hydra, which reads an empty value as text, is tested in tests/nemo."""
    _, text, overrides = given(spec)
    plain = [override.lstrip("+") + ("''" if override.endswith("=") else "") for override in overrides]
    config = OmegaConf.merge(OmegaConf.create(text), OmegaConf.from_dotlist(plain))
    return flat(OmegaConf.to_container(config, resolve=True))


@pytest.mark.parametrize("name", GOLDEN)
def test_a_published_row_is_configured_as_published(catalog: Catalog, name: str) -> None:
    row, published = GOLDEN[name]
    assert differing(resolved(row.spec(catalog)), published) == set(ALLOWED[row.preset])


def test_every_row_is_checked() -> None:
    plain = [name for name in GOLDEN if len(name.split()) == 3]
    assert (len(plain), len(GOLDEN)) == (2 * 6 + 2 * 9, 34)


@pytest.mark.parametrize("name", GOLDEN)
def test_the_vocabulary_has_the_padded_size_of_the_recipes_tokenizer(catalog: Catalog, name: str) -> None:
    tokens = {"llama3.1-24.11": 50257, "grok1-25.02": 128256}  # attributes of GPT-2's and of Llama 3's tokenizer
    row, _ = GOLDEN[name]
    fields = resolved(row.spec(catalog))
    multiple = fields["model.make_vocab_size_divisible_by"] * fields["model.tensor_model_parallel_size"]
    assert fields["model.override_vocab_size"] == -(-tokens[row.preset] // multiple) * multiple


def test_the_recipes_tokenizer_is_not_a_deviation(catalog: Catalog) -> None:
    row, published = GOLDEN["grok1-25.02 64 bf16"]
    spec = row._replace(options=RunOptions(hub_tokenizer=True)).spec(catalog)
    assert differing(resolved(spec), published) == set()
    assert dict(spec.env)["TRANSFORMERS_OFFLINE"] == "0"
    assert "HUGGINGFACE_HUB_CACHE" not in dict(spec.env)


def test_a_pipeline_without_virtual_stages_disables_the_overlaps_that_need_them(catalog: Catalog) -> None:
    for spec in without_virtual_stages(catalog):
        assert overlaps_of_virtual_stages(resolved(spec)) == [False, False, True]


def test_overrides_of_llama_on_32_gpus(make_spec: MakeSpec) -> None:
    assert given(make_spec(*LLAMA_32))[2] == (
        "model.data.data_impl=mock",
        "model.data.data_prefix=",
        "model.ub_tp_comm_overlap_cfg.proj_fprop.fp8_buf=True",
        "model.ub_tp_comm_overlap_cfg.fc2_fprop.fp8_buf=True",
        "model.defer_embedding_wgrad_compute=False",
        "run.results_dir=/nemo_run/results",
        "model.data.index_mapping_dir=/nemo_run/results/index_mapping",
        "trainer.num_nodes=4",
        "trainer.devices=8",
        "trainer.max_steps=50",
        "trainer.val_check_interval=50",
        "model.global_batch_size=126",
        "model.micro_batch_size=1",
        "model.fp8=True",
        "model.fp8_hybrid=True",
        "+model.fp8_params=True",
        "model.tensor_model_parallel_size=8",
        "model.pipeline_model_parallel_size=1",
        "model.virtual_pipeline_model_parallel_size=null",
        "model.context_parallel_size=2",
        "model.encoder_seq_length=8192",
        "model.max_position_embeddings=8192",
        "model.data.seq_length=8192",
        "model.num_layers=7",
        "model.nsys_profile.enabled=False",
    )


def test_overrides_of_grok_with_a_profile(make_spec: MakeSpec) -> None:
    overrides = given(make_spec(*GROK_64, options=RunOptions(profile=True, profile_start=5, profile_stop=9)))[2]
    assert overrides[:3] == ("model.global_batch_size=1024", "trainer.num_nodes=8", "trainer.max_steps=50")
    assert overrides[-6:] == (
        "model.nsys_profile.enabled=True",
        "model.fp8_params=False",
        "model.gc_interval=40",
        "model.nsys_profile.start_step=5",
        "model.nsys_profile.end_step=9",
        "model.nsys_profile.ranks=[0,1,2,3,4,5,6,7]",
    )


def test_groks_nccl_trace_has_ten_steps(make_spec: MakeSpec) -> None:
    spec = make_spec(*GROK_64, options=RunOptions(nccl_trace=True))
    assert "trainer.max_steps=10" in given(spec)[2]
    env = dict(spec.env)
    assert (env["NCCL_DEBUG"], env["NCCL_DEBUG_SUBSYS"]) == ("INFO", "COLL,P2P,NET")


def test_manual_changes_reach_the_training(make_spec: MakeSpec) -> None:
    changed = Overrides(mbs=2, gbs=504, layers=42)
    overrides = given(make_spec("llama3.1@24.11", "405b", "h100", "bf16", 96, overrides=changed, steps=7))[2]
    assert {"model.micro_batch_size=2", "model.global_batch_size=504", "model.num_layers=42"} <= set(overrides)
    assert "trainer.max_steps=7" in overrides


@pytest.mark.parametrize(("image_has", "expected"), [("", "/opt/NeMo"), ("/opt/mcore:/x", "/opt/NeMo:/opt/mcore:/x")])
def test_nemo_precedes_the_pythonpath_of_the_image(
    make_spec: MakeSpec, tmp_path: Path, image_has: str, expected: str
) -> None:
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\necho "$PYTHONPATH"\nprintf "%s\\n" "$@"\n')
    python.chmod(0o755)
    command = make_spec(*LLAMA_32).command
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"} | ({"PYTHONPATH": image_has} if image_has else {})
    result = subprocess.run(
        ["sh", "-c", shlex.join(command)], env=environment, capture_output=True, text=True, check=True
    )
    program = command.index("/opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py")
    assert result.stdout.splitlines() == [expected, "-u", *command[program:]]


def test_a_configuration_is_yaml_that_keeps_values_and_their_types() -> None:
    fields = {
        "trainer": {"max_epochs": None, "max_time": "05:23:30:00", "logger": False, "devices": 8},
        "model": {"lr": 1e-05, "min_lr": 2.9999999999999997e-05, "ranks": [0, 1], "empty": {}, "data": {"prefix": []}},
        "model.filename": "a--{val_loss:.2f}: #1 'é\"\\",
        "model.data.impl": "null",
    }
    read = OmegaConf.to_container(OmegaConf.create(base_configuration(fields, [])))
    model = fields["model"] | {"filename": fields["model.filename"], "data": {"prefix": [], "impl": "null"}}  # type: ignore[operator]
    assert differing(flat(read), flat({"trainer": fields["trainer"], "model": model})) == set()
    assert "data" not in fields, "the arguments are unchanged"
    assert fields["model"]["data"] == {"prefix": []}  # type: ignore[index]


def test_a_later_field_replaces_the_value_of_an_earlier_field() -> None:
    text = base_configuration({"a": {"b": 1, "c": 2}, "a.b": {"d": 3}, "a.b.e": 4}, [])
    assert OmegaConf.create(text) == {"a": {"b": {"d": 3, "e": 4}, "c": 2}}


@pytest.mark.parametrize("override", ["a.b=2", "+a.c=2", "++a.b=2", "++x.y=2", "a={b: 1}", "a.b="])
def test_an_override_that_hydra_accepts_does_not_change_the_base_configuration(override: str) -> None:
    assert base_configuration({"a.b": 1}, [override]) == "a:\n  b: 1\n"


@pytest.mark.parametrize(
    ("fields", "override", "why"),
    [
        ({"a": 1, "a.b": 2}, "a=1", "a.b is below a, which is a value and not a table."),
        ({"a.b": 1}, "a.c=2", "the override 'a.c=2' names a field that the base configuration lacks."),
        ({"a.b": 1}, "a.b.c=2", "the override 'a.b.c=2' names a field that the base configuration lacks."),
        ({"a.b": 1}, "+a.b=2", "the override '+a.b=2' names a field that the base configuration already has."),
        ({"a.b": 1}, "a.b", "the override 'a.b' does not have the form FIELD=VALUE."),
        ({"a.b": 1}, "=2", "the override '=2' does not have the form FIELD=VALUE."),
    ],
)
def test_contradicting_fields_and_overrides_are_reported(fields: dict[str, object], override: str, why: str) -> None:
    with pytest.raises(LlmbError) as caught:
        base_configuration(fields, [override])
    assert caught.value.why == f"In the settings of the recipe's preset, {why}"
    assert caught.value.exit_code == 1
