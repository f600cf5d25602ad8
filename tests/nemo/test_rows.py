"""Every published row of the NeMo 2 recipes, built by real NeMo from the files of a run, equals its plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from llmb_tui.catalog.load import read_preset
from llmb_tui.catalog.rows import rows
from llmb_tui.plan.selection import RunOptions
from tests.nemo.checked import RECIPES, Build, Facts, build, check, checked, first_rows, launch_file, nemo_of

PRESETS = Path(__file__).parents[2] / "presets"
ROWS = [build(recipe, row) for recipe in RECIPES for row in rows(recipe)]
OPTIONS = {
    "profile": RunOptions(profile=True),
    "profile of other steps": RunOptions(profile=True, profile_start=3, profile_stop=7),
    "NCCL trace": RunOptions(nccl_trace=True),
    "save": RunOptions(save_checkpoint=True),
    "load": RunOptions(load_checkpoint="/checkpoints/one"),
    "hub tokenizer": RunOptions(hub_tokenizer=True),
}
OPTED = [build(recipe, first_rows(recipe)[0], name, options) for recipe in RECIPES for name, options in OPTIONS.items()]
LAUNCHED = [each for each in OPTED if all(problem.severity != "error" for problem in each.plan.problems)]

CONFIGS = {
    "15b": "nemo.collections.llm.gpt.model.nemotron:Nemotron4Config15B",
    "340b": "nemo.collections.llm.gpt.model.nemotron:Nemotron4Config340B",
    "8b": "nemo.collections.llm.gpt.model.llama:Llama3Config8B",
    "70b": "nemo.collections.llm.gpt.model.llama:Llama3Config70B",
    "405b": "nemo.collections.llm.gpt.model.llama:Llama31Config405B",
}
STRATEGY, OVERLAP = "trainer.strategy", "trainer.callbacks[MegatronCommOverlapCallback]"
USERBUFFERS = f"{OVERLAP}.tp_comm_overlap_cfg"


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Facts]:
    return checked([*ROWS, *LAUNCHED], tmp_path_factory.mktemp("launches"))


def of(each: Build) -> str:
    return f"{each.recipe.id} {each.key}"


def test_every_row_is_there() -> None:
    assert [sum(each.recipe is recipe for each in ROWS) for recipe in RECIPES] == [34, 24, 48]


@pytest.mark.parametrize("each", ROWS, ids=of)
def test_nemo_builds_the_layout_of_the_plan(each: Build, printed: dict[tuple[str, str], Facts]) -> None:
    plan, layout, model = each.plan, each.plan.parallelism, each.recipe.models[each.row.size]
    wanted = {
        "trainer.num_nodes": plan.nodes,
        "trainer.devices": plan.gpus_per_node,
        "trainer.max_steps": 50,
        "trainer.val_check_interval": 50,
        "trainer.limit_val_batches": 0,
        "trainer.log_every_n_steps": 1,
        "trainer.logger": False,
        "trainer.enable_checkpointing": False,
        "log.ckpt": None,
        "log.tensorboard": None,
        f"{STRATEGY}.tensor_model_parallel_size": layout.tp,
        f"{STRATEGY}.pipeline_model_parallel_size": layout.pp,
        f"{STRATEGY}.context_parallel_size": layout.cp,
        f"{STRATEGY}.virtual_pipeline_model_parallel_size": layout.vp,
        f"{STRATEGY}.expert_model_parallel_size": layout.ep,
        f"{STRATEGY}.sequence_parallel": layout.tp > 1,
        f"{OVERLAP}.overlap_param_gather_with_optimizer_step": bool(
            (layout.dp or 0) > 1 and layout.pp > 1 and layout.vp
        ),
        f"{OVERLAP}.tp_comm_overlap": layout.tp > 1,
        "data": "nemo.collections.llm.gpt.data.mock:MockDataModule",
        "data.micro_batch_size": layout.mbs,
        "data.global_batch_size": layout.gbs,
        "data.seq_length": layout.seq_len,
        "model.config": CONFIGS[each.row.size],
        "model.config.seq_length": layout.seq_len,
        "model.config.num_layers": layout.layers,
        "model.config.hidden_size": model.hidden,
    }
    document = printed[each.recipe.id, each.key]
    assert {name: document.get(name) for name in wanted} == wanted
    split = [document.get(f"{STRATEGY}.account_for_{end}_in_pipeline_split", False) for end in ("embedding", "loss")]
    assert sum(split) == model.stage_extra_layers
    assert plan.steps == 50
    assert plan.nodes * plan.gpus_per_node == each.row.gpus
    assert document["data.num_train_samples"] >= 50 * layout.gbs


@pytest.mark.parametrize("each", ROWS, ids=of)
def test_nemo_builds_the_precision_of_the_plan(each: Build, printed: dict[tuple[str, str], Facts]) -> None:
    document = printed[each.recipe.id, each.key]
    plugin = {name.rpartition(".")[2]: value for name, value in document.items() if name.startswith("trainer.plugins.")}
    assert document["trainer.plugins"] == "nemo.lightning.pytorch.plugins.mixed_precision:MegatronMixedPrecision"
    assert (plugin["precision"], plugin["grad_reduce_in_fp32"]) == ("bf16-mixed", False)
    scaling = {name: value for name, value in plugin.items() if "fp8" in name or "bf16" in name}
    if each.row.dtype == "bf16":
        assert scaling == {}
    elif nemo_of(each) == "2.2.1":
        delayed = {"fp8_margin": 0, "fp8_amax_history_len": 1024, "fp8_amax_compute_algo": "max", "fp8_params": True}
        assert scaling == delayed | {"fp8": "hybrid"}
    else:
        layers = {"num_layers_at_start_in_bf16": 1, "num_layers_at_end_in_bf16": 1, "first_last_layers_bf16": False}
        assert scaling == layers | {"fp8": "hybrid", "fp8_recipe": "tensorwise", "fp8_param_gather": True}


@pytest.mark.parametrize("each", ROWS, ids=of)
def test_nemo_gets_the_settings_of_the_gpu_type(each: Build, printed: dict[tuple[str, str], Facts]) -> None:
    document = printed[each.recipe.id, each.key]
    graphs = each.row.gpu != "h100"
    assert (document["model.config.enable_cuda_graph"], document[f"{STRATEGY}.use_te_rng_tracker"]) == (graphs, graphs)
    configured = each.row.size in ("70b", "405b") or each.row.gpu in ("b200", "gb200")
    assert (USERBUFFERS in document) == configured
    if configured:
        assert f"{USERBUFFERS}.fc1_dgrad.method" in document


def test_the_padded_vocabulary_equals_the_published_value(printed: dict[tuple[str, str], Facts]) -> None:
    for each in ROWS:
        document, model = printed[each.recipe.id, each.key], each.recipe.models[each.row.size]
        tokenizer = "model.tokenizer" if each.row.size == "340b" else "data.tokenizer"
        told, multiple = document[f"{tokenizer}.vocab_size"], 128 * each.plan.parallelism.tp
        # A tokenizer without words has one word more than its configured size.
        padded = -(-(told + 1) // multiple) * multiple
        if each.row.size in ("15b", "340b"):
            assert (told, padded) == (model.vocab, {2: 256256, 8: 257024}[each.plan.parallelism.tp])
        else:
            assert padded == -(-model.vocab // multiple) * multiple


def test_an_option_that_the_recipe_has_can_be_launched() -> None:
    missing = {
        (each.recipe.id, name) for each, name in zip(OPTED, 3 * list(OPTIONS), strict=True) if each not in LAUNCHED
    }
    assert missing == {
        ("nemotron4@25.04", "NCCL trace"),
        ("nemotron4@25.04", "hub tokenizer"),
        ("nemotron4-340b@25.12", "NCCL trace"),
    }


@pytest.mark.parametrize("each", LAUNCHED, ids=of)
def test_nemo_builds_the_callbacks_of_the_run_options(each: Build, printed: dict[tuple[str, str], Facts]) -> None:
    document, options = printed[each.recipe.id, each.key], each.plan.options
    assert document["trainer.max_steps"] == each.plan.steps
    profiler = "trainer.callbacks[NsysCallback]"
    assert (profiler in document) == options.profile
    if options.profile:
        assert document[f"{profiler}.start_step"] == options.profile_start
        assert document[f"{profiler}.end_step"] == options.profile_stop == each.plan.steps
        every = nemo_of(each) != "2.2.1"
        assert document[f"{profiler}.ranks"] == list(range(each.row.gpus if every else 8))
    assert document["trainer.enable_checkpointing"] == options.save_checkpoint
    assert document.get("resume.restore_config.path") == options.load_checkpoint
    hub = f"{'model' if each.row.size == '340b' else 'data'}.tokenizer.pretrained_model_name"
    assert document.get(hub) == (each.recipe.models[each.row.size].hub_tokenizer if options.hub_tokenizer else None)


def test_a_field_that_nemo_does_not_have_is_refused(tmp_path: Path) -> None:
    text = (PRESETS / "nemotron4-25.04.toml").read_text(encoding="utf-8")
    right = '"trainer.strategy.sequence_parallel" = true'
    assert right in text
    (tmp_path / "wrong.toml").write_text(
        text.replace(right, '"trainer.strategy.sequence_paralel" = true'), encoding="utf-8"
    )
    (tmp_path / "constraints").symlink_to(PRESETS / "constraints")
    recipe = read_preset(tmp_path / "wrong.toml")
    wrong = build(recipe, rows(recipe)[0])

    result = check("2.2.1", [launch_file(wrong, tmp_path / "run")])

    assert result.returncode == 3
    assert "trainer.strategy.sequence_paralel" in result.stderr
    assert "NeMo 2.2.1" in result.stderr


def test_each_nemo_version_builds_its_number_of_rows(print_at_end: Callable[[str], None]) -> None:
    counts = {version: sum(nemo_of(each) == version for each in ROWS) for version in ("2.2.1", "2.4.0", "2.5.0")}
    assert counts == {"2.2.1": 58, "2.4.0": 28, "2.5.0": 20}
    print_at_end("Rows built by real NeMo: " + ", ".join(f"{count} by {version}" for version, count in counts.items()))
