from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmb_tui.cluster.profile_check import InvalidFieldError
from llmb_tui.cluster.profiles import ProfileError, load_profiles, save_profile
from llmb_tui.cluster.slurm.profile import SlurmProfile
from llmb_tui.errors import LlmbError
from tests.kit.runs import slurm

EOS = SlurmProfile("eos", "login.eos.example", "acct", "batch", "/lustre/llmb")
SIM = replace(
    EOS,
    name="sim-2.a_b",
    port=2222,
    user="operator",
    identity_file="~/.ssh/k",
    known_hosts="/k h",
    gpu_request="gres",
    notice="simulated, clock x30",
)
FULL = replace(
    EOS,
    name="full",
    cpu_partition="cpu,cpu_long",
    reservation="bench",
    qos="gold",
    constraint="gpu&memory|[rack1*2&rack2*2]",
    segment=16,
    exclude="cn[003,007-009],gn1",
    memory="1900G",
    cpus_per_task=14,
    numa_binding=False,
    vboost=True,
    slurm_params="nodelist=n1,n2;comment=mine and yours;hold",
    mounts=("/data:/data:ro+rprivate", "/lustre/x:/x"),
    env=(("NCCL_DEBUG", "INFO"), ("NCCL_IB_PKEY", "0x8001"), ("TOKENIZERS_PARALLELISM", "a b = 'c'")),
)


def test_without_a_directory_there_are_no_clusters(tmp_path: Path) -> None:
    assert load_profiles(tmp_path / "absent") == ()


def test_saved_clusters_come_back_by_name(tmp_path: Path) -> None:
    for profile in (SIM, FULL, EOS):
        save_profile(tmp_path / "clusters", profile)
    assert load_profiles(tmp_path / "clusters") == (EOS, FULL, SIM)
    assert stat.S_IMODE((tmp_path / "clusters" / "eos.toml").stat().st_mode) == 0o600


def test_a_profile_file_that_is_a_link_stays_a_link(tmp_path: Path) -> None:
    path, file = tmp_path / "kept.toml", tmp_path / "clusters" / "eos.toml"
    save_profile(file.parent, EOS)
    file.replace(path)
    file.symlink_to(path)
    save_profile(file.parent, replace(EOS, partition="debug"))
    assert file.is_symlink()
    assert load_profiles(file.parent) == (replace(EOS, partition="debug"),)


@pytest.mark.parametrize("memory", "0 00 0G 500 020G 20G 20g 20GB 500k 500Mb 1T 1tb".split())
def test_every_amount_of_memory_that_slurm_accepts_can_be_saved(tmp_path: Path, memory: str) -> None:
    """`test_sbatch_accepts_the_amounts` tries the same with a real sbatch."""
    save_profile(tmp_path, replace(EOS, memory=memory))
    assert load_profiles(tmp_path) == (replace(EOS, memory=memory),)


@pytest.mark.parametrize(
    "fields",
    [
        {"gpu_type": "nvidia_h100_80gb_hbm3_1g.10gb"},
        {"gpu_request": "gpus-per-node", "gpu_type": "h100"},
        {"mpi": "pmi2"},
        {"partition": ""},
        {"constraint": "gpu&hbm80g"},
        {"slurm_params": 'comment={"OccupiedIdleGPUsJobReaper":{"exemptIdleTimeMins":"90","reason":"model_loading"}}'},
    ],
)
def test_what_sites_require_is_saved(tmp_path: Path, fields: dict[str, Any]) -> None:
    save_profile(tmp_path, replace(EOS, **fields))
    assert load_profiles(tmp_path) == (replace(EOS, **fields),)


def test_a_gpu_type_needs_a_request_for_gpus(tmp_path: Path) -> None:
    with pytest.raises(InvalidFieldError, match="gpu_type") as caught:
        save_profile(tmp_path, replace(EOS, gpu_request="none", gpu_type="h100"))
    assert "request GPUs with gres or gpus-per-node" in caught.value.fix


def test_saving_again_replaces(tmp_path: Path) -> None:
    save_profile(tmp_path, EOS)
    save_profile(tmp_path, replace(EOS, partition="long"))
    assert load_profiles(tmp_path) == (replace(EOS, partition="long"),)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "../eos"),
        ("name", ".hidden"),
        ("host", ""),
        ("host", "-oProxyCommand=x"),
        ("host", "a b"),
        ("account", "a\n#SBATCH --x"),
        ("install_dir", "relative"),
        ("install_dir", "/a\nb"),
        ("user", "a\x1bb"),
        ("user", "-l"),
        ("port", 0),
        ("port", 65536),
        ("account", "a;b"),
        ("partition", "a,,b"),
        ("cpu_partition", "a b"),
        ("install_dir", "/with blank"),
        ("install_dir", "/a/../b"),
        ("identity_file", ""),
        ("gpu_request", "gpus"),
        ("transport", "rsh"),
        ("reservation", "a b"),
        ("qos", "--x"),
        ("constraint", "a b"),
        ("constraint", "$(id)"),
        ("exclude", "cn 1"),
        ("segment", 0),
        ("memory", ""),
        ("memory", "-1"),
        ("memory", "all"),
        ("memory", "500 G"),
        ("memory", "500G\n#SBATCH --uid=0"),
        ("memory", "1.5G"),
        ("memory", "500GiB"),
        ("memory", "1P"),
        ("gpu_type", "gpu:h100"),
        ("gpu_type", ""),
        ("mpi", "pmi2 --uid=0"),
        ("cpus_per_task", -1),
        ("cpus_per_task", 100000),
        ("slurm_params", "nodes=4"),
        ("slurm_params", "cpus-per-task=4"),
        ("mounts", ("/data",)),
        ("mounts", ("data:/data",)),
        ("mounts", ("/data:/data:Ro,x",)),
        ("mounts", ("/a,b:/c",)),
        ("mounts", ("/data:/nemo_run",)),
        ("mounts", ("/data:/x", "/more:/x/")),
        ("env", (("lower", "x"),)),
        ("env", (("A-B", "x"),)),
        ("env.PATH", (("PATH", "/x"),)),
        ("env.A", (("A", "two\nlines"),)),
    ],
)
def test_a_value_that_cannot_be_right_is_refused_by_field(tmp_path: Path, field: str, value: object) -> None:
    with pytest.raises(InvalidFieldError, match=field) as caught:
        save_profile(tmp_path, replace(EOS, **{field.partition(".")[0]: value}))  # type: ignore[arg-type]
    assert (caught.value.field, caught.value.exit_code) == (field, 1)
    assert caught.value.fix
    assert list(tmp_path.iterdir()) == []


GOOD = 'name = "eos"\nhost = "h"\naccount = "a"\npartition = "p"\ninstall_dir = "/i"\n'


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (GOOD + 'port = "22"\n', "port"),
        (GOOD + "port = 0\n", "port"),
        (GOOD + 'gpu_request = "some"\n', "gpu_request"),
        (GOOD + 'password = "secret"\n', "password"),
        (GOOD.replace('host = "h"\n', ""), "host"),
        (GOOD.replace('"eos"', '"other"'), "name"),
        (GOOD.replace('"/i"', '"i"'), "install_dir"),
        (GOOD + "port = = 1\n", "line 6"),
        ("\x00", "line 1"),
        (GOOD + 'mounts = "/a:/b"\n', "mounts"),
        (GOOD + 'segment = "4"\n', "segment"),
        (GOOD + "memory = 500\n", "memory"),
        (GOOD + 'cpus_per_task = "4"\n', "cpus_per_task"),
        (GOOD + "cpus_per_task = -1\n", "cpus_per_task"),
        (GOOD + 'vboost = "yes"\n', "vboost"),
        (GOOD + "numa_binding = 1\n", "numa_binding"),
        (GOOD + "env = 1\n", "env"),
        (GOOD + "[env]\nA = 1\n", "env.A"),
    ],
)
def test_a_file_that_does_not_fit_is_named_with_its_field(tmp_path: Path, content: str, field: str) -> None:
    (tmp_path / "eos.toml").write_text(content)
    with pytest.raises(LlmbError) as caught:
        load_profiles(tmp_path)
    assert str(tmp_path / "eos.toml") in caught.value.what
    assert field in caught.value.what
    assert "secret" not in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "eos.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(LlmbError, match=r"eos\.toml"):
        load_profiles(tmp_path)


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "WANDB_API_KEY", "MY_SECRET", "DB_PASSWORD", "NGC_APIKEY", "HFTOKEN", "KEY"]
)
def test_a_secret_is_refused_with_the_reason_and_not_repeated(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidFieldError, match="asks for a secret") as caught:
        save_profile(tmp_path, replace(EOS, env=((name, "hunter22"),)))
    assert "hunter22" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "changes", [{"env": (("X", "hf_abcdefghijklmnopqrstuvwx"),)}, {"notice": "nvapi-" + "x1" * 20}]
)
def test_an_obvious_secret_is_refused_in_any_field(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidFieldError, match="asks for a secret") as caught:
        save_profile(tmp_path, replace(EOS, **changes))
    assert "abcdef" not in str(caught.value)
    assert "x1x1" not in str(caught.value)


def test_a_file_as_it_was_written_before_there_were_these_fields(tmp_path: Path) -> None:
    (tmp_path / "eos.toml").write_text(GOOD + 'port = 22\ngpu_request = "gres"\n')
    profile = slurm(*load_profiles(tmp_path))
    assert (profile.port, profile.gpu_request, profile.env, profile.mounts) == (22, "gres", (), ())
    assert (profile.memory, profile.cpus_per_task, profile.numa_binding, profile.vboost) == ("0", 0, True, False)


def test_the_file_is_made_for_people(tmp_path: Path) -> None:
    save_profile(tmp_path, FULL)
    text = (tmp_path / "full.toml").read_text()
    assert '[env]\nNCCL_DEBUG = "INFO"\n' in text
    assert "notice" not in text


@pytest.mark.parametrize(
    ("content", "line", "field"),
    [
        (GOOD + "\n# remark\nport = 0\n", 8, "port"),
        (GOOD + 'mounts = ["/a:/b"]\n\n[env]\nA = "1"\nHF_TOKEN = "x"\n', 10, "env.HF_TOKEN"),
        (GOOD + "port = = 1\n", 6, ""),
        (GOOD + "colour = 1\n", 6, "colour"),
        (GOOD + 'slurm_params = "-N4"\n', 6, "slurm_params"),
    ],
)
def test_a_fault_is_placed_by_line_and_field(tmp_path: Path, content: str, line: int, field: str) -> None:
    (tmp_path / "eos.toml").write_text(content)
    with pytest.raises(ProfileError) as caught:
        load_profiles(tmp_path)
    assert (caught.value.line, caught.value.field) == (line, field)


def test_a_broken_file_can_be_passed_over_with_a_word(tmp_path: Path) -> None:
    save_profile(tmp_path, EOS)
    (tmp_path / "broken.toml").write_text("name = 1\n")
    errors: list[ProfileError] = []
    assert load_profiles(tmp_path, errors.append) == (EOS,)
    assert [problem.file.name for problem in errors] == ["broken.toml"]


def test_a_route_decides_the_host_of_a_connection() -> None:
    assert replace(EOS, account="x", partition="y", install_dir="/z", name="n", env=(("A", "1"),)).route == EOS.route
    for change in ({"host": "h"}, {"port": 2}, {"user": "u"}, {"identity_file": "k"}, {"transport": "local"}):
        assert replace(EOS, **change).route != EOS.route
