"""The entry script without NeMo: its file, its arguments, and its steps on a stand-in for NeMo's recipes."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmb_tui.cluster.remote_text import remote_text
from llmb_tui.launch.direct.install import entry_path
from llmb_tui.remote import pretrain
from llmb_tui.watch.log_reader import read_log
from tests.kit.warm import Warm

RECIPE = "nemo.recipes:pretrain_recipe"

# Replaces NeMo, with nemo-run's own configuration objects. Proves no statement about NeMo itself.
STAND_IN = """
import nemo_run as run

class TimingCallback:
    def __init__(self, log_tokens_per_sec=False):
        pass

class Trainer:
    def __init__(self, max_steps=1, plugins=None, callbacks=None):
        self.max_steps = max_steps

class Plugin:
    def __init__(self, precision="bf16", grad_reduce_in_fp32=True):
        self.words = (precision, grad_reduce_in_fp32)
        print("BUILT", *self.words)

def fp8():
    return run.Config(Plugin, precision="fp8")

def train(trainer):
    if trainer.max_steps < 0:
        raise RuntimeError("negative steps")
    print("TRAINED", trainer.max_steps)

def pretrain_recipe(num_nodes):
    plugin, callbacks = run.Config(Plugin, grad_reduce_in_fp32=False), [run.Config(TimingCallback)]
    return run.Partial(train, trainer=run.Config(Trainer, plugins=plugin, callbacks=callbacks))
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    files = {
        "nemo/__init__.py": "__version__ = '2.2.1'",
        "nemo/recipes.py": STAND_IN,
        "megatron/core/__init__.py": "__version__ = '0.11.0'",
    }
    for name, text in files.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "site"


def run(
    site: Path, settings: dict[str, Any], *options: str, rank: int = 0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the installed script as a container would: from a folder without any other file of the project."""
    script, launch = site.parent / "pretrain.py", site.parent / "launch.json"
    script.write_text(remote_text("pretrain.py"))
    launch.write_text(json.dumps({"factory": RECIPE, "arguments": {"num_nodes": 2}, "settings": settings}))
    environment = {
        "PYTHONPATH": str(site),
        "SLURM_PROCID": str(rank),
        "PATH": f"{site / 'bin'}:/usr/bin:/bin",
        "PYTHONWARNINGS": "ignore",
        **variables,
    }
    command = [*Warm.python(), str(script), *options, str(launch)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=site.parent, check=False)


def test_it_prints_the_versions_and_the_configuration_then_trains(site: Path) -> None:
    result = run(site, {"trainer.max_steps": 50})
    assert (result.returncode, result.stderr) == (0, "")
    assert [line for line in result.stdout.splitlines() if not line.startswith("NVIDIA driver ")] == [
        "NeMo 2.2.1",
        "Megatron Core 0.11.0",
        "trainer = nemo.recipes:Trainer",
        "trainer.max_steps = 50",
        "trainer.plugins = nemo.recipes:Plugin",
        "trainer.plugins.grad_reduce_in_fp32 = false",
        "trainer.callbacks[TimingCallback] = nemo.recipes:TimingCallback",
        "BUILT bf16 False",
        "TRAINED 50",
    ]


def test_it_prints_the_versions_of_imported_libraries(site: Path) -> None:
    """PyTorch's answers; a PyTorch without NCCL reports no version, and the training starts."""
    torch = site / "torch.py"
    torch.write_text(
        "from types import SimpleNamespace as N\n"
        "__version__ = '2.6.0a0+ecf3bae40a.nv25.01'\n"
        "version = N(cuda='12.8')\n"
        "cuda = N(nccl=N(version=lambda: (2, 25, 1)))\n"
    )
    (site / "transformer_engine.py").write_text("__version__ = '2.1.0'\n")
    with (site / "nemo" / "recipes.py").open("a") as file:
        file.write("import torch, transformer_engine\n")
    result = run(site, {"trainer.max_steps": 50})
    head = result.stdout.partition("trainer = ")[0].splitlines()
    assert [line for line in head if not line.startswith("NVIDIA driver ")] == [
        "NeMo 2.2.1",
        "Megatron Core 0.11.0",
        "PyTorch 2.6.0a0+ecf3bae40a.nv25.01",
        "CUDA 12.8",
        "NCCL 2.25.1",
        "Transformer Engine 2.1.0",
    ]
    (site.parent / "log").write_text(result.stdout)
    assert ("NCCL", "2.25.1") in read_log(site.parent / "log").versions
    torch.write_text("version = 0\n")
    assert run(site, {"trainer.max_steps": 50}).stdout.endswith("TRAINED 50\n")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  440.33.01  Wed Nov 13 00:00:22 UTC 2019\n"
            "GCC version:  gcc version 4.8.5 20150623 (EulerOS 4.8.5-28) (GCC) \n",
            "440.33.01",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build  (dvs-builder@U16)\n",
            "570.124.06",
        ),
        ("something else\n", None),
    ],
)
def test_the_driver_is_the_kernel_modules(text: str, version: str | None, tmp_path: Path) -> None:
    (tmp_path / "version").write_text(text)
    assert pretrain.driver(str(tmp_path / "version")) == version


def test_settings_are_applied_in_the_order_of_the_file(site: Path) -> None:
    replace, keep = {"trainer.plugins": {"call": "nemo.recipes:fp8"}}, {"trainer.plugins.grad_reduce_in_fp32": False}
    assert "BUILT fp8 False" in run(site, replace | keep).stdout
    assert "BUILT fp8 True" in run(site, keep | replace).stdout


def test_only_rank_0_prints(site: Path) -> None:
    assert run(site, {"trainer.max_steps": 50}, rank=3).stdout == "BUILT bf16 False\nTRAINED 50\n"


EIGHT = "".join(f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: GPU-0a1b2c3d-{n})\n" for n in range(8))


def nvidia_smi(site: Path, text: str, *further: str) -> None:
    """Put a program of that name on the container's PATH that answers `-L` with a text."""
    (site / "bin").mkdir(exist_ok=True)
    program = site / "bin" / "nvidia-smi"
    commands = ("#!/bin/sh", f"[ \"$*\" = -L ] && printf '%s' '{text}'", *further)
    program.write_text("\n".join(commands) + "\n")
    program.chmod(0o755)


@pytest.mark.parametrize(
    ("listing", "kinds"),
    [
        (EIGHT, "8 × NVIDIA H100 80GB HBM3"),
        (
            "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\nGPU 1: NVIDIA H100 PCIe (UUID: GPU-2)\n"
            "GPU 2: NVIDIA H100 80GB HBM3 (UUID: GPU-3)\n",
            "2 × NVIDIA H100 80GB HBM3, 1 × NVIDIA H100 PCIe",
        ),
        (
            "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"
            "  MIG 1g.10gb     Device  0: (UUID: MIG-1)\n  MIG 1g.10gb     Device  1: (UUID: MIG-2)\n"
            "  MIG 3g.40gb     Device  2: (UUID: MIG-3)\n"
            "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)\n",
            "2 × NVIDIA H100 80GB HBM3 MIG 1g.10gb, 1 × NVIDIA H100 80GB HBM3 MIG 3g.40gb, 1 × NVIDIA H100 80GB HBM3",
        ),
    ],
)
def test_the_gpu_line_of_a_node_counts_each_type(listing: str, kinds: str) -> None:
    assert pretrain.gpu_line(listing, "cn001.cluster.example") == f"GPUs of node cn001: {kinds}"


@pytest.mark.parametrize("listing", ["", "No devices found.\n", "  MIG 1g.10gb     Device  0: (UUID: MIG-1)\n"])
def test_a_list_without_gpus_makes_no_line(listing: str) -> None:
    assert pretrain.gpu_line(listing, "cn001") is None


def test_the_first_rank_of_each_node_prints_its_gpus_before_the_training(site: Path) -> None:
    nvidia_smi(site, EIGHT)
    host = os.uname().nodename.partition(".")[0]
    line = f"GPUs of node {host}: 8 × NVIDIA H100 80GB HBM3"
    begun = [
        run(site, {}, rank=8, SLURM_LOCALID="0", LOCAL_RANK="5"),
        run(site, {}, rank=8, LOCAL_RANK="0", LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0"),
    ]
    assert [done.stdout.splitlines() for done in begun] == [[line, "BUILT bf16 False", "TRAINED 1"]] * 2
    assert line in run(site, {}).stdout.splitlines()
    others = [run(site, {}, rank=9, SLURM_LOCALID="1", LOCAL_RANK="0"), run(site, {}, "--check")]
    assert all("GPUs of node" not in done.stdout for done in others)


@pytest.mark.parametrize("further", [["exit 9"], ["kill -9 $$"]], ids=["error", "killed"])
def test_a_list_that_fails_is_not_printed_and_the_training_starts(site: Path, further: list[str]) -> None:
    nvidia_smi(site, EIGHT, *further)
    assert run(site, {}, rank=8, SLURM_LOCALID="0").stdout == "BUILT bf16 False\nTRAINED 1\n"


def test_a_hanging_nvidia_smi_is_abandoned_after_the_timeout(
    site: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    nvidia_smi(site, EIGHT, "exec sleep 600")
    monkeypatch.setenv("PATH", f"{site / 'bin'}:/usr/bin:/bin")
    began = time.monotonic()
    pretrain.print_gpus(timeout_s=0.5)
    assert time.monotonic() - began < 30
    assert capfd.readouterr().out == ""


def test_check_prints_the_configuration_and_builds_nothing(site: Path) -> None:
    trained, checked = run(site, {"trainer.max_steps": 50}), run(site, {"trainer.max_steps": 50}, "--check")
    assert checked.returncode == 0
    assert trained.stdout == checked.stdout + "BUILT bf16 False\nTRAINED 50\n"


def test_errors_of_the_training_are_shown_unchanged(site: Path) -> None:
    result = run(site, {"trainer.max_steps": -1})
    assert result.returncode == 1
    assert result.stderr.startswith("Traceback")
    assert "RuntimeError: negative steps" in result.stderr


def test_an_unknown_field_ends_the_script_with_a_one_line_error(site: Path) -> None:
    result = run(site, {"trainer.max_stepz": 50})
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.endswith(
        "trainer.max_stepz: nemo.recipes:Trainer has no field max_stepz. "
        "This container has NeMo 2.2.1: use one that the preset names.\n"
    )
    assert result.stderr.count("\n") == 1


def test_a_wrong_file_ends_it_before_nemo_is_imported(site: Path) -> None:
    (site / "nemo/__init__.py").write_text("raise SystemExit('imported')")
    assert "imported" in run(site, {}).stderr
    result = run(site, {"trainer.": 1})
    assert (result.returncode, result.stdout) == (2, "")
    assert "'trainer.' is no path" in result.stderr


def test_a_python_without_nemo_is_reported(site: Path) -> None:
    (site / "nemo/__init__.py").unlink()
    (site / "nemo/recipes.py").unlink()
    (site / "nemo").rmdir()
    result = run(site, {})
    assert (result.returncode, result.stderr.rpartition(": ")[2]) == (3, "there is no module nemo\n")


@pytest.mark.parametrize("arguments", [[], ["--check"], ["/nonexistent/launch.json"], ["a", "b"]])
def test_wrong_arguments_are_reported(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert pretrain.main(arguments) == 2
    assert "pretrain.py" in capsys.readouterr().err


def text(factory: Any = RECIPE, arguments: Any = None, **settings: Any) -> str:
    arguments = {} if arguments is None else arguments
    return json.dumps({"factory": factory, "arguments": arguments, "settings": settings})


def test_a_value_can_have_every_form() -> None:
    config = {"config": "a.b:C", "with": {"x": {"part": "model.config"}, "y": [{"object": "torch:bfloat16"}]}}
    settings = {
        "trainer.callbacks[C]": config,
        "trainer.callbacks[C].x": {"partial": "a.b:c"},
        "plain": {"with": 1, "deep": {"call": "a:b.c"}},
        "null": None,
    }
    assert pretrain.read_launch(text(**settings)) == pretrain.LaunchFile(RECIPE, {}, settings)


@pytest.mark.parametrize(
    "value",
    [
        {"config": "a.b.C"},
        {"config": "a:b", "with": [1]},
        {"config": "a:b", "with": None},
        {"config": "a:b", "other": 1},
        {"config": "a:b", "call": "a:b"},
        {"call": 5},
        {"call": "os:system; evil"},
        {"object": "a:b", "with": {}},
        {"part": "a:b"},
        {"part": ""},
        {"config": "a:b", "with": {"x": {"part": "model..config"}}},
        [{"object": "a"}],
        {"plain": [{"object": "a"}]},
    ],
)
def test_an_object_in_an_unknown_form_is_refused_with_its_path(value: object) -> None:
    with pytest.raises(ValueError, match=r"^model\.config: .* is none of the objects"):
        pretrain.read_launch(text(**{"model.config": value}))


@pytest.mark.parametrize("path", ["", ".", "a..b", "a.", "a[", "a[]", "[A]", "a[A]b", "a b", "a.1", "a[A][B]", "ä"])
def test_a_setting_with_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is no path such as"):
        pretrain.read_launch(text(**{path: 1}))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (text(factory="os"), "factory: "),
        (text(factory=5), "factory: "),
        (text(arguments=[1]), "factory: "),
        (json.dumps({"factory": RECIPE, "arguments": {}, "settings": []}), "settings are no JSON object"),
        (json.dumps({"factory": RECIPE, "arguments": {}}), "unknown or missing: settings"),
        (json.dumps({**json.loads(text()), "tp": 2}), "unknown or missing: tp"),
        ("{", "Expecting"),
    ],
)
def test_a_file_of_another_shape_is_refused(wrong: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pretrain.read_launch(wrong)


JSON = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers())


@given(JSON | st.dictionaries(st.text(), st.none()))
def test_other_json_is_refused_in_words(value: object) -> None:
    with pytest.raises(ValueError, match=r"not a JSON object|unknown or missing"):
        pretrain.read_launch(json.dumps(value))


def test_the_installed_name_changes_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    before = entry_path("/lustre/llmb/")
    assert before.startswith("/lustre/llmb/.llmb-tui/code/pretrain-")
    monkeypatch.setattr("llmb_tui.launch.direct.install.remote_text", lambda name: remote_text(name) + "\n")
    assert entry_path("/lustre/llmb/") != before
