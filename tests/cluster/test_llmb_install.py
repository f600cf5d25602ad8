"""The configuration that NVIDIA's llmb-install writes: both forms, the offers from it, and values never stored."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from llmb_tui.cluster.llmb.install import LlmbInstall, LlmbWorkload, install_of, request_of, settings_of
from llmb_tui.errors import LlmbError

SECRET = "hf_abcdefghijklmnopqrstuvwxyz"

# As `create_cluster_config` of v25.05 writes it.
FIRST = f"""\
launcher:
  llmb_repo: /lustre/me/dgxc-benchmarking
  llmb_install: /lustre/me/llmb
  gpu_type: h100
environment:
  HF_TOKEN: {SECRET}
slurm:
  account: research
  gpu_partition: batch
  gpu_gres: 8
  cpu_partition: cpu
  cpu_gres: null
workloads:
  installed:
  - pretraining_nemotron
  config:
    pretraining_nemotron:
      venv_path: /lustre/me/llmb/venvs/pretraining_nemotron_venv
      venv_type: venv
"""

# As v25.12 writes it: a section `install`, the architecture in both sections, a venv that workloads share.
LAST_OF_V1 = f"""\
launcher:
  llmb_repo: /lustre/me/llmb/llmb_repo
  llmb_install: /lustre/me/llmb
  gpu_type: gb200
  node_architecture: aarch64
  cluster_name: eos
install:
  venv_type: uv
  method: slurm
  node_architecture: aarch64
  image_folder: /lustre/shared/images
environment:
  HF_TOKEN: {SECRET}
  NCCL_IB_HCA: mlx5
slurm:
  account: research
  gpu_partition: batch,batch_long
  gpu_gres: null
  cpu_partition: batch,batch_long
  cpu_gres: null
workloads:
  installed:
  - pretrain_nemotron4-340b
  - microbenchmark_cpu_overhead
  config:
    pretrain_nemotron4-340b:
      venv_path: /lustre/me/llmb/venvs/venv_1
      venv_type: uv
      environment:
        NCCL_DEBUG: INFO
"""

# As v26.06.01 writes and documents it: bare keys, explicit variables, and null that removes a common key.
SECOND = f"""\
schema_version: 2
llmb_repo: /lustre/me/llmb/llmb_repo
llmb_install: /lustre/me/llmb
gpu_type: gb300
install:
  venv_type: uv
  method: local
  node_architecture: aarch64
environment:
  HF_TOKEN: {SECRET}
slurm:
  account: research
  qos: gold
  reservation: bench
  exclude: n[1-2]
  comment: first week
  SBATCH_NETWORK: sharp
  SLURM_MPI_TYPE: pmix
  timelimit: 60
  gpu:
    partition: gpu
    gres: 4
  cpu:
    partition: cpu
    gres: null
    qos: null
workloads:
  installed: [pretrain_llama3.1]
  config:
    pretrain_llama3.1: {{venv_path: null, venv_type: null}}
"""


def test_the_first_form_is_read() -> None:
    install = install_of("/lustre/me/llmb", FIRST, release="25.05\n", images=["a.sqsh"], venvs=["b"])
    assert (install.version, install.root, install.repository) == (1, "/lustre/me/llmb", "/lustre/me/dgxc-benchmarking")
    assert (install.gpu_type, install.architecture, install.cluster_name) == ("h100", None, None)
    venv = "/lustre/me/llmb/venvs/pretraining_nemotron_venv"
    assert install.workloads == (LlmbWorkload("pretraining_nemotron", venv),)
    assert (install.release, install.images, install.venvs) == ("25.05", ("a.sqsh",), ("b",))
    assert install.name == "llmb-run 25.05 installation"


def test_the_first_form_grew() -> None:
    install = install_of("/lustre/me/llmb", LAST_OF_V1)
    assert (install.version, install.architecture, install.cluster_name) == (1, "aarch64", "eos")
    assert [workload.name for workload in install.workloads] == [
        "pretrain_nemotron4-340b",
        "microbenchmark_cpu_overhead",
    ]
    assert install.workloads[0].environment == ("NCCL_DEBUG",)
    assert install.workloads[1].venv is None
    assert install.name == "llmb-run installation"


def test_the_second_form_is_read() -> None:
    install = install_of("/lustre/me/llmb", SECOND)
    assert (install.version, install.gpu_type, install.architecture) == (2, "gb300", "aarch64")
    assert dict(install.gpu) == {
        "account": "research",
        "qos": "gold",
        "reservation": "bench",
        "exclude": "n[1-2]",
        "comment": "first week",
        "network": "sharp",
        "time": "60",
        "partition": "gpu",
        "gpus-per-node": "4",
    }
    assert dict(install.cpu)["partition"] == "cpu"
    assert dict(install.cpu).keys().isdisjoint({"qos", "gpus-per-node"})


def test_the_first_form_with_the_slurm_section_of_the_second_is_read_as_llmb_run_does() -> None:
    text = FIRST.replace(
        "  gpu_partition: batch\n  gpu_gres: 8\n  cpu_partition: cpu\n  cpu_gres: null\n", "  gpu: {partition: new}\n"
    )
    assert dict(install_of("/x", text).gpu) == {"account": "research", "partition": "new"}
    assert install_of("/x", text).cpu == install_of("/x", text).gpu


@pytest.mark.parametrize("text", [FIRST, LAST_OF_V1, SECOND])
def test_no_value_of_a_variable_is_kept(text: str) -> None:
    install = install_of("/lustre/me/llmb", text)
    assert "HF_TOKEN" in install.environment
    assert SECRET not in repr(asdict(install))
    assert "mlx5" not in repr(asdict(install))


def test_valid_values_are_offered_to_a_profile() -> None:
    install = install_of("/lustre/me/llmb", SECOND)
    assert settings_of(install) == {
        "account": "research",
        "partition": "gpu",
        "cpu_partition": "cpu",
        "install_dir": "/lustre/me/llmb",
        "qos": "gold",
        "reservation": "bench",
        "exclude": "n[1-2]",
        # Without the time limit: every run has its own.
        "slurm_params": "comment=first week;network=sharp;",
    }
    assert request_of(install) == ("gpus-per-node", "4")


@pytest.mark.parametrize(
    ("line", "request_", "gpu_type"),
    [
        ("gpu_gres: h100:8", ("gpus-per-node", "8"), "h100"),
        ("gpu_gres: null\n  SBATCH_GRES: gpu:h100:8", ("gres", "8"), "h100"),
        ("gpu_gres: null\n  SBATCH_GRES: gpu:8", ("gres", "8"), None),
        ("gpu_gres: null\n  SBATCH_GRES: 'nvme:1'", ("none", ""), None),
    ],
)
def test_a_request_by_type_is_offered_to_a_profile(line: str, request_: tuple[str, str], gpu_type: str | None) -> None:
    install = install_of("/lustre/me/llmb", FIRST.replace("gpu_gres: 8", line))
    assert request_of(install) == request_
    assert settings_of(install).get("gpu_type") == gpu_type


def test_a_comment_in_json_is_offered_to_a_profile() -> None:
    comment = '{"OccupiedIdleGPUsJobReaper":{"reason":"model_loading"}}'
    install = install_of("/lustre/me/llmb", FIRST.replace("gpu_gres: 8", f"gpu_gres: 8\n  comment: '{comment}'"))
    assert settings_of(install)["slurm_params"] == f"comment={comment};"


def test_the_default_partition_is_not_offered_as_a_separate_cpu_partition() -> None:
    install = install_of("/lustre/me/llmb", LAST_OF_V1)
    assert "cpu_partition" not in settings_of(install)
    assert settings_of(install)["partition"] == "batch,batch_long"
    assert request_of(install) == ("none", "")


def test_invalid_values_are_not_offered_to_a_profile() -> None:
    text = (
        FIRST.replace("research", "$(reboot)").replace("/lustre/me/llmb\n", "/lustre/$HOME\n").replace("batch", "a b")
    )
    assert settings_of(install_of("/x", text)) == {"cpu_partition": "cpu"}


def test_a_terminal_is_safe_from_its_texts() -> None:
    install = install_of("/x\x1b[2J", FIRST.replace("pretraining_nemotron\n", '"evil\\e]52;c;AAAA\\a"\n', 1))
    assert "\x1b" not in repr(install)
    assert "\\x1b" not in repr(install)


BROKEN = {
    "no YAML": (f"HF_TOKEN: {SECRET}: x", "line 1"),
    "a list": ("- 1\n", "no keys and values"),
    "empty": ("", "no keys and values"),
    "none of its": ("a: 1\n", "neither a section"),
    "a later form": (
        SECOND.replace("schema_version: 2", "schema_version: 3"),
        "3; this llmb-tui knows versions 1 and 2",
    ),
    "a form that is not a number": (
        SECOND.replace("schema_version: 2", f"schema_version: {SECRET}"),
        "knows versions 1 and 2",
    ),
    "a later form of the first": (f"schema_version: 3\n{FIRST}", "3; this llmb-tui knows versions 1 and 2"),
    "the first form without its part": ("schema_version: 1\nslurm: {}\n", "`llmb_repo`"),
    "a missing key": (SECOND.replace("gpu_type: gb300\n", ""), "`gpu_type`"),
    "a key of another kind": (SECOND.replace("gpu_type: gb300", f"gpu_type: [{SECRET}]"), "`gpu_type`"),
    "no Slurm": (FIRST.replace("slurm:", "slrum:"), "`slurm`"),
    "both kinds of Slurm": (FIRST.replace("  gpu_gres: 8", "  gpu: {partition: x}"), "both forms"),
    "no part for GPUs": (SECOND.replace("  gpu:\n", "  gpus:\n", 1), "part `gpu`"),
    "an object of Python's": (f"a: !!python/object/apply:os.system [{SECRET}]", "not YAML"),
    "an unknown alias": ("launcher: *token", "not YAML"),
    "without end": ("[" * 20_000, "not YAML"),
    "a date that is none": ("a: 2025-99-99", "not YAML"),
    "a moment that is none": ("a: !!timestamp x", "not YAML"),
    "a switch that is none": ("a: !!bool maybe", "not YAML"),
    "a number that is none": ("a: !!int ''", "not YAML"),
    "too long": ("#" * 70_000, "64 KiB"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_an_invalid_configuration_is_explained_without_a_quotation(name: str) -> None:
    text, words = BROKEN[name]
    with pytest.raises(LlmbError) as caught:
        install_of("/lustre/me/llmb", text)
    assert words in caught.value.why
    assert caught.value.what.startswith("/lustre/me/llmb/cluster_config.yaml")
    assert caught.value.fix
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_installation_without_workloads_is_recognised() -> None:
    text = SECOND.replace("installed: [pretrain_llama3.1]", "installed: null").replace(
        "environment:\n  HF_TOKEN", "environment:\nHF_TOKEN"
    )
    install: LlmbInstall = install_of("/x", text)
    assert (install.workloads, install.environment) == ((), ())
