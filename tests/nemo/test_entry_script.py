"""The entry script on real NeMo: every form of a value takes effect, and names unknown to NeMo are refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.remote_text import remote_text
from tests.nemo.environment import VERSIONS, command
from tests.nemo.launches import Checked, check, start

RECIPES = "nemo.collections.llm.recipes"
PRECISION = f"{RECIPES}.precision.mixed_precision"
CALLBACKS = "nemo.lightning.pytorch.callbacks"
OVERLAP = "trainer.callbacks[MegatronCommOverlapCallback]"
BUFFERS = f"{RECIPES}.tp_overlap_configs.userbuffers:userbuffers_bf16_h100_h8192_tp4_mbs1_seqlen8192"
PROFILE = {"config": f"{CALLBACKS}:NsysCallback", "with": {"start_step": 20, "end_step": 25, "ranks": [0, 1]}}
FP8 = {"trainer.plugins": {"call": f"{PRECISION}:bf16_with_fp8_mixed"}}
REDUCE = {"trainer.plugins.grad_reduce_in_fp32": False}

EVERYTHING: dict[str, Any] = {
    "trainer.max_steps": 50,
    "model.config.num_layers": 8,
    "trainer.strategy.virtual_pipeline_model_parallel_size": None,
    "trainer.strategy.gradient_as_bucket_view": False,
    "optim.config.params_dtype": {"object": "torch:bfloat16"},
    "log.tensorboard": None,
    "data.tokenizer": {
        "config": "nemo.collections.nlp.modules.common.tokenizer_utils:get_nmt_tokenizer",
        "with": {"library": "null", "model_name": "NullTokenizer", "vocab_size": 256000},
    },
    "model.tokenizer": {"part": "data.tokenizer"},
    OVERLAP: {"config": f"{CALLBACKS}.megatron_comm_overlap:MegatronCommOverlapCallback"},
    f"{OVERLAP}.tp_comm_overlap_cfg": {"object": BUFFERS},
    f"{OVERLAP}.tp_comm_overlap_cfg.qkv_fprop.aggregate": True,
    "trainer.callbacks[TimingCallback]": None,
    "trainer.callbacks[NsysCallback]": PROFILE,
    "trainer.callbacks[ModelCheckpoint]": {
        "config": f"{CALLBACKS}:ModelCheckpoint",
        "with": {"every_n_train_steps": 50, "dirpath": None, "save_top_k": 1, "save_optim_on_train_end": True},
    },
    "trainer.callbacks[FLOPsMeasurementCallback]": {
        "config": f"{CALLBACKS}.flops_callback:FLOPsMeasurementCallback",
        "with": {"model_config": {"part": "model.config"}, "data_config": {"part": "data"}, "model_name": "nemotron"},
    },
    "resume": {
        "config": "nemo.lightning:AutoResume",
        "with": {
            "resume_if_exists": True,
            "restore_config": {"config": "nemo.lightning:RestoreConfig", "with": {"path": "/checkpoints/1"}},
        },
    },
}

REFUSED: dict[str, dict[str, Any]] = {
    "Nemotron4Config15B has no field layers": {"model.config.layers": 8},
    "Trainer has no field steps": {"trainer.steps": 50},
    "MegatronStrategy has no field tensor_parallel": {"trainer.strategy.tensor_parallel": 2},
    "DistributedDataParallelConfig has no field nccl": {"trainer.strategy.ddp.nccl": True},
    "MockDataModule has no field batch": {"data.batch": 1},
    "OptimizerConfig has no field rate": {"optim.config.rate": 1},
    "CosineAnnealingScheduler has no field warmup": {"optim.lr_scheduler.warmup": 1},
    "MegatronMixedPrecision has no field fp4": {"trainer.plugins.fp4": "hybrid"},
    "MegatronCommOverlapCallback has no field overlap": {f"{OVERLAP}.overlap": True},
    "ModelCheckpoint has no field every": {"log.ckpt.every": 1},
    "pretrain has no field optimizer": {"optimizer.lr": 1},
    '"default" has no field x': {"log.name.x": 1},
    "null has no field save_last": {"log.ckpt": None, "log.ckpt.save_last": True},
    "there is no NsysCallback": {"trainer.callbacks[NsysCallback].start_step": 1},
    "there is no OtherCallback": {"trainer.callbacks[OtherCallback]": None},
    "callbacks.nsys:NsysCallback is no OtherCallback": {"trainer.callbacks[OtherCallback]": PROFILE},
    "NsysCallback has no argument steps": {
        "trainer.callbacks[NsysCallback]": {"config": f"{CALLBACKS}:NsysCallback", "with": {"steps": 20}}
    },
    "callbacks has no NsightCallback": {"trainer.callbacks[N]": {"config": f"{CALLBACKS}:NsightCallback"}},
    "mixed_precision has no bf16_with_fp4": {"trainer.plugins": {"call": f"{PRECISION}:bf16_with_fp4"}},
    "there is no module nemo.collections.llm.recipes.fp4": {"trainer.plugins": {"call": f"{RECIPES}.fp4:mixed"}},
    "Trainer is no list": {"trainer[A]": {"config": f"{CALLBACKS}:NsysCallback"}},
    "MockDataModule has no field vocabulary": {"model.tokenizer": {"part": "data.vocabulary"}},
}


def launch(settings: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    """A file for Nemotron4 15b on two nodes."""
    recipe = {"num_nodes": 2, "num_gpus_per_node": 8, "performance_mode": True}
    return {
        "factory": f"{RECIPES}.nemotron4_15b:pretrain_recipe",
        "arguments": recipe | arguments,
        "settings": settings,
    }


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def checked(version: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Checked]:
    """Answers to all checks of this module for one NeMo, from one process, because importing NeMo takes seconds."""
    launches = {words: launch(settings) for words, settings in REFUSED.items()}
    launches |= {
        "as it comes": launch({}),
        "everything": launch(EVERYTHING),
        "fp8 then reduce": launch(FP8 | REDUCE),
        "reduce then fp8": launch(REDUCE | FP8),
        "no such argument": launch({}, gpus=8),
        "no such recipe": launch({}) | {"factory": f"{RECIPES}.nemotron4_16b:pretrain_recipe"},
    }
    return check(version, launches, tmp_path_factory.mktemp("launches"))


@pytest.mark.parametrize("words", REFUSED)
def test_a_field_that_nemo_does_not_have_is_refused(version: str, checked: dict[str, Checked], words: str) -> None:
    *_, (path, _) = REFUSED[words].items()
    refusal = checked[words].refusal or ""
    assert refusal.startswith(f"{path}: ")
    assert f"{words}. This container has NeMo {version}: " in refusal


def test_a_missing_recipe_or_argument_is_refused(checked: dict[str, Checked]) -> None:
    assert "there is no module nemo.collections.llm.recipes.nemotron4_16b" in str(checked["no such recipe"].refusal)
    assert "nemotron4_15b:pretrain_recipe has no argument gpus" in str(checked["no such argument"].refusal)


def test_every_form_of_a_value_takes_effect(checked: dict[str, Checked]) -> None:
    fields = checked["everything"].fields
    expected = {
        "trainer.max_steps": "50",
        "model.config.num_layers": "8",
        "trainer.strategy.virtual_pipeline_model_parallel_size": "null",
        "trainer.strategy.gradient_as_bucket_view": "false",
        "optim.config.params_dtype": "torch.bfloat16",
        "log.tensorboard": "null",
        "model.tokenizer.vocab_size": "256000",
        "data.tokenizer": "the same object as model.tokenizer",
        f"{OVERLAP}.tp_comm_overlap_cfg.qkv_fprop.aggregate": "true",
        f"{OVERLAP}.tp_comm_overlap_cfg.proj_dgrad.method": '"ring_exchange"',
        "trainer.callbacks[NsysCallback].ranks": "[0, 1]",
        "trainer.callbacks[ModelCheckpoint].dirpath": "null",
        "trainer.callbacks[FLOPsMeasurementCallback].model_config": "the same object as model.config",
        "resume.restore_config.path": '"/checkpoints/1"',
    }
    assert {path: fields.get(path) for path in expected} == expected


def test_only_the_overridden_fields_differ_from_the_recipe(checked: dict[str, Checked]) -> None:
    before, after = checked["as it comes"].fields, checked["everything"].fields
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    parts = tuple(EVERYTHING)
    assert [path for path in changed if not path.startswith(parts)] == []
    assert before["trainer.num_nodes"] == "2"


def test_a_callback_is_replaced_in_its_place_and_new_ones_come_last(checked: dict[str, Checked]) -> None:
    def names(which: str) -> list[str]:
        return [path for path in checked[which].fields if path.startswith("trainer.callbacks") and path.endswith("]")]

    texts = [path for path in names("as it comes") if "Timing" not in path]
    new = ["NsysCallback", "ModelCheckpoint", "FLOPsMeasurementCallback"]
    assert OVERLAP in texts
    assert names("everything") == texts + [f"trainer.callbacks[{name}]" for name in new]


def test_settings_are_applied_in_the_order_of_the_file(checked: dict[str, Checked]) -> None:
    field = "trainer.plugins.grad_reduce_in_fp32"
    assert checked["as it comes"].fields[field] == "false"
    assert checked["fp8 then reduce"].fields[field] == "false"
    assert checked["reduce then fp8"].fields[field] != "false"
    assert checked["reduce then fp8"].fields["trainer.plugins.fp8"] == '"hybrid"'


def test_nemo_builds_the_recipe_as_it_was_set(version: str, tmp_path: Path) -> None:
    """With the settings that a CPU needs: no rotary fusion, no GPU, one process."""
    cpu = {
        "model.config.apply_rope_fusion": False,
        "trainer.accelerator": "cpu",
        "trainer.devices": 1,
        "trainer.num_nodes": 1,
        "trainer.plugins": {"call": f"{PRECISION}:bf16_mixed"},
        "trainer.plugins.grad_reduce_in_fp32": False,
    }
    (tmp_path / "pretrain.py").write_text(remote_text("pretrain.py"))
    (tmp_path / "launch.json").write_text(json.dumps(launch(EVERYTHING | cpu)))
    python, environment = command(version)
    program = str(Path(__file__).with_name("building.py"))
    done = subprocess.run(
        [*python, program, "pretrain.py", "launch.json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts == {
        "buffers are NeMo's": True,
        "aggregate": [True, False],
        "flops of the model": True,
        "flops of the data": True,
        "one tokenizer": True,
        "vocabulary": 256001,
        "plugin": ["bf16-mixed", False],
        "resume": "/checkpoints/1",
        "profile": [0, 1],
        "checkpoints": 50,
    }


def test_an_error_in_nemo_is_printed_after_the_configuration(tmp_path: Path) -> None:
    """The recipe fuses rotary embeddings by Transformer Engine, which is not installed here."""
    (tmp_path / "launch.json").write_text(json.dumps(launch({})))
    done = start(VERSIONS[0], tmp_path, "launch.json")
    assert done.returncode == 1
    assert f"NeMo {VERSIONS[0]}\n" in done.stdout
    assert "trainer.num_nodes = 2\n" in done.stdout
    assert "Traceback" in done.stderr
    assert "Please install TE" in done.stderr


def test_a_file_that_cannot_be_read_ends_it_before_nemo_is_imported(tmp_path: Path) -> None:
    (tmp_path / "launch.json").write_text(json.dumps(launch({"trainer..max_steps": 1})))
    done = start(VERSIONS[0], tmp_path, "--check", "launch.json", PYTHONPROFILEIMPORTTIME="1")
    assert (done.returncode, done.stdout) == (2, "")
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "json" in imported
    assert imported.isdisjoint({"nemo", "nemo_run", "fiddle", "torch"})
