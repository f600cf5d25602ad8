from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.launch.entry import entry_path, entry_script
from llmb_tui.remote import pretrain

LAUNCH: dict[str, object] = {
    "module": "standin",
    "dtype": "bf16",
    "fp8_scaling": "delayed",
    "nodes": 2,
    "gpus_per_node": 8,
    "steps": 50,
    "vocab": 256000,
    "tp": 2,
    "pp": 2,
    "cp": 1,
    "ep": 1,
    "vp": 4,
    "mbs": 1,
    "gbs": 32,
    "seq_len": 4096,
    "layers": 32,
    "embedding_in_pipeline": False,
}

# Stands where NeMo would, with nemo-run's own strict configuration objects. It says nothing about NeMo itself.
STAND_IN = """
import json, types
import nemo_run as run

class Strategy:
    def __init__(self, tensor_model_parallel_size=1, pipeline_model_parallel_size=1, context_parallel_size=1,
                 expert_model_parallel_size=1, virtual_pipeline_model_parallel_size=9, sequence_parallel=True):
        self.__dict__.update(locals())

class Trainer:
    def __init__(self, strategy, plugins, callbacks, devices, num_nodes, max_steps=1, val_check_interval=1,
                 limit_val_batches=9, log_every_n_steps=9, enable_checkpointing=True, logger=True):
        self.__dict__.update(locals())

class Plugin:
    def __init__(self, name="bf16", grad_reduce_in_fp32=True, first_last_layers_bf16=True):
        self.__dict__.update(locals())

class MegatronCommOverlapCallback:
    def __init__(self, overlap_param_gather_with_optimizer_step=None):
        self.__dict__.update(locals())

class Log:
    def __init__(self, ckpt=1, tensorboard=1):
        self.__dict__.update(locals())

class Data:
    def __init__(self, micro_batch_size=0, global_batch_size=0, num_train_samples=0, seq_length=0, tokenizer=None):
        self.__dict__.update(locals())

class ModelConfig:
    def __init__(self, num_layers=0, seq_length=0, account_for_embedding_in_pipeline_split=False,
                 account_for_loss_in_pipeline_split=False):
        self.__dict__.update(locals())

class Model:
    def __init__(self, config, tokenizer=None):
        self.__dict__.update(locals())

def plain(value):
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not hasattr(value, "__dict__"):
        return value
    return {name: plain(each) for name, each in vars(value).items() if name != "self"}

def train(model, trainer, data, log):
    print("TRAINED " + json.dumps([plain(each) for each in (model, trainer, data, log)]))

def pretrain_recipe(num_nodes, num_gpus_per_node, performance_mode):
    assert performance_mode
    return run.Partial(
        train,
        model=run.Config(Model, config=run.Config(ModelConfig)),
        trainer=run.Config(
            Trainer, strategy=run.Config(Strategy), plugins=run.Config(Plugin),
            callbacks=[run.Config(MegatronCommOverlapCallback)], devices=num_gpus_per_node, num_nodes=num_nodes,
        ),
        data=run.Config(Data), log=run.Config(Log),
    )
"""
PRECISION = """
import nemo_run as run
from nemo.collections.llm.recipes.standin import Plugin
def bf16_with_fp8_mixed():
    return run.Config(Plugin, name="delayed")
def bf16_with_fp8_current_scaling_mixed():
    return run.Config(Plugin, name="current")
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    files = {
        "nemo/__init__.py": "__version__ = '2.2.1'",
        "nemo/collections/llm/recipes/standin.py": STAND_IN,
        "nemo/collections/llm/recipes/precision/mixed_precision.py": PRECISION,
        "nemo/collections/nlp/modules/common/tokenizer_utils.py": (
            "def get_nmt_tokenizer(library, model_name, vocab_size):\n    return [library, model_name, vocab_size]\n"
        ),
    }
    for name, text in files.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "site"


def _train(site: Path, rank: int = 0, **changes: object) -> subprocess.CompletedProcess[str]:
    """Run the installed script as a container would: alone, from a folder that holds nothing else of the project."""
    script, launch = site.parent / "pretrain.py", site.parent / "launch.json"
    script.write_text(entry_script())
    launch.write_text(json.dumps(LAUNCH | changes))
    environment = {
        "PYTHONPATH": str(site),
        "SLURM_PROCID": str(rank),
        "PATH": "/usr/bin:/bin",
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, str(script), str(launch)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=site.parent, check=False)


def test_it_prints_the_version_and_the_configuration_then_trains(site: Path) -> None:
    done = _train(site)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("NeMo 2.2.1\nLaunch(module='standin'")
    assert done.stdout.index("tensor_model_parallel_size=2") < done.stdout.index("TRAINED")
    model, trainer, data, log = json.loads(done.stdout.rpartition("TRAINED ")[2])
    assert trainer["strategy"] == {
        "tensor_model_parallel_size": 2,
        "pipeline_model_parallel_size": 2,
        "context_parallel_size": 1,
        "expert_model_parallel_size": 1,
        "virtual_pipeline_model_parallel_size": 4,
        "sequence_parallel": True,
    }
    assert (trainer["devices"], trainer["num_nodes"]) == (8, 2)
    assert (trainer["max_steps"], trainer["val_check_interval"], trainer["limit_val_batches"]) == (50, 50, 0)
    assert trainer["plugins"] == {"name": "bf16", "grad_reduce_in_fp32": False, "first_last_layers_bf16": True}
    assert trainer["callbacks"] == [{"overlap_param_gather_with_optimizer_step": True}]
    assert data["tokenizer"] == model["tokenizer"] == ["null", "NullTokenizer", 256000]
    assert (data["micro_batch_size"], data["global_batch_size"], data["num_train_samples"]) == (1, 32, 1600)
    assert data["seq_length"] == model["config"]["seq_length"] == 4096
    assert model["config"]["num_layers"] == 32
    assert not model["config"]["account_for_loss_in_pipeline_split"]
    assert log == {"ckpt": None, "tensorboard": None}


def test_fp8_replaces_the_precision_and_keeps_the_reduction(site: Path) -> None:
    done = _train(site, dtype="fp8", fp8_scaling="current", embedding_in_pipeline=True, tp=1, pp=1, vp=None)
    model, trainer, _, _ = json.loads(done.stdout.rpartition("TRAINED ")[2])
    assert trainer["plugins"] == {"name": "current", "grad_reduce_in_fp32": False, "first_last_layers_bf16": False}
    assert trainer["callbacks"] == [{"overlap_param_gather_with_optimizer_step": False}]
    assert not trainer["strategy"]["sequence_parallel"]
    assert model["config"]["account_for_embedding_in_pipeline_split"]


def test_only_rank_0_prints(site: Path) -> None:
    assert _train(site, rank=3).stdout.startswith("TRAINED ")


def test_a_wrong_file_ends_it_before_anything_is_imported(site: Path) -> None:
    (site / "nemo/__init__.py").write_text("raise SystemExit('imported')")
    done = _train(site, tensor_parallel=2)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "unknown keys ['tensor_parallel'], missing keys []" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["/nonexistent/launch.json"], ["a", "b"]])
def test_wrong_arguments_are_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert pretrain.main(arguments) == 2
    assert capsys.readouterr().err.startswith("pretrain.py")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tp": None}, "tp is None"),
        ({"tp": "2"}, "tp is '2'"),
        ({"tp": 0}, "tp is 0"),
        ({"tp": True}, "tp is True"),
        ({"vp": 1.5}, "vp is 1.5"),
        ({"embedding_in_pipeline": 1}, "embedding_in_pipeline is 1"),
        ({"module": "os; evil"}, "module is 'os; evil'"),
        ({"dtype": "fp4"}, "dtype 'fp4'"),
        ({"fp8_scaling": "none"}, "'none' scaling"),
    ],
)
def test_values_of_a_wrong_kind_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pretrain.read_launch(json.dumps(LAUNCH | change))


@pytest.mark.parametrize("name", LAUNCH)
def test_a_missing_key_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        pretrain.read_launch(json.dumps({key: value for key, value in LAUNCH.items() if key != name}))


JSON = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers())


@given(JSON | st.dictionaries(st.text(), st.none()))
def test_other_json_is_refused_in_words(value: object) -> None:
    with pytest.raises(ValueError, match=r"not a JSON object|unknown keys"):
        pretrain.read_launch(json.dumps(value))


def test_the_installed_name_changes_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    before = entry_path("/lustre/llmb/")
    assert before.startswith("/lustre/llmb/.llmb-tui/code/pretrain-")
    monkeypatch.setattr("llmb_tui.launch.entry.entry_script", lambda: entry_script() + "\n")
    assert entry_path("/lustre/llmb/") != before
