from __future__ import annotations

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from llmb_tui.cluster.profile import ClusterProfile
from llmb_tui.cluster.profiles import load_profiles, save_profile
from llmb_tui.errors import Trouble

EOS = ClusterProfile("eos", "login.eos.example", "acct", "batch", "/lustre/llmb")
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


def test_no_directory_is_no_clusters(tmp_path: Path) -> None:
    assert load_profiles(tmp_path / "absent") == ()


def test_saved_clusters_come_back_by_name(tmp_path: Path) -> None:
    save_profile(tmp_path / "clusters", SIM)
    save_profile(tmp_path / "clusters", EOS)
    assert load_profiles(tmp_path / "clusters") == (EOS, SIM)
    assert stat.S_IMODE((tmp_path / "clusters" / "eos.toml").stat().st_mode) == 0o600


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
        ("partition", ""),
        ("install_dir", "relative"),
        ("install_dir", "/a\nb"),
        ("user", "a\x1bb"),
        ("port", 0),
        ("port", 65536),
    ],
)
def test_a_value_that_cannot_be_right_is_refused_by_field(tmp_path: Path, field: str, value: object) -> None:
    with pytest.raises(Trouble, match=field) as caught:
        save_profile(tmp_path, replace(EOS, **{field: value}))  # type: ignore[arg-type]
    assert caught.value.exit_code == 1
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
    ],
)
def test_a_file_that_does_not_fit_is_named_with_its_field(tmp_path: Path, content: str, field: str) -> None:
    (tmp_path / "eos.toml").write_text(content)
    with pytest.raises(Trouble) as caught:
        load_profiles(tmp_path)
    assert str(tmp_path / "eos.toml") in caught.value.what
    assert field in caught.value.why
    assert "secret" not in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "eos.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(Trouble, match=r"eos\.toml"):
        load_profiles(tmp_path)
