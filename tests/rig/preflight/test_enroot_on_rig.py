"""Enroot's configuration on a real login node, whose `enroot` begins with the lines of NVIDIA's own program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llmb_tui.cluster.slurm.cluster import SlurmCluster
from llmb_tui.preflight.access import secret_states
from llmb_tui.preflight.registry import ask_registry
from tests.rig.cluster import Rig
from tests.rig.preflight.conftest import Look

IMAGE = "nvidia/nemo:25.02.01"
NOBODYS = "http://registry.llmb.internal"
"""Address of a registry that only a proxy can reach."""


@contextmanager
def configuration(rig: Rig, text: str) -> Iterator[Path]:
    """Replace enroot.conf; yields its folder."""
    folder = rig.directory / "etc" / "enroot"
    before = (folder / "enroot.conf").read_text()
    (folder / "enroot.conf").write_text(text)
    try:
        yield folder
    finally:
        (folder / "enroot.conf").write_text(before)


def test_settings_of_enroot_are_shown_as_enroot_reads_them(rig: Rig, look: Look) -> None:
    lines = (
        "#ENROOT_DATA_PATH /no\nENROOT_RUNTIME_PATH ${HOME}/run/$(id -u)\nENROOT_REMAP_ROOT=no\nENROOT_TEMP_PATH /tmp\n"
    )
    with configuration(rig, f"{lines}ENROOT_TEMP_PATH /second\n") as folder:
        (folder / "hooks.d").rename(folder / "aside")
        try:
            checks = look()
        finally:
            (folder / "aside").rename(folder / "hooks.d")
    home = "/home/operator"
    assert checks["enroot"].found.split("; ") == [
        "enroot 3.5.0",
        "TEMP_PATH /tmp",
        f"CACHE_PATH {home}/.cache/enroot",
        f"DATA_PATH {home}/.local/share/enroot",
        f"RUNTIME_PATH {home}/run/4100",
        f"CONFIG_PATH {home}/.config/enroot",
    ]
    settings = checks["enroot-settings"]
    lacking = "no hook 50-slurm-pytorch.sh, no ENROOT_REMAP_ROOT, no ENROOT_ROOTFS_WRITABLE"
    assert (settings.status, settings.found) == ("warning", f"{lacking} in {folder} of the login node")


def test_adapters_are_found_in_the_folder_that_the_configuration_names(rig: Rig, look: Look) -> None:
    rig.as_operator("mkdir -p enroot/environ.d && echo NCCL_IB_HCA=mlx5 >enroot/environ.d/50-net.env", check=True)
    lines = "ENROOT_RUNTIME_PATH /tmp/enroot-$(id -u)\nENROOT_REMAP_ROOT yes\nENROOT_ROOTFS_WRITABLE yes\n"
    try:
        with configuration(rig, lines) as folder:
            (folder / "environ.d").rename(folder / "aside")
            try:
                without = look()["enroot-settings"]
                (folder / "enroot.conf").write_text(f"{lines}ENROOT_CONFIG_PATH ${{HOME}}/enroot\n")
                with_folder = look()["enroot-settings"]
            finally:
                (folder / "aside").rename(folder / "environ.d")
    finally:
        rig.as_operator("rm -r enroot", check=True)
    assert (without.status, "no network adapters" in without.found) == ("warning", True)
    assert (with_folder.status, "network adapters" in with_folder.found) == ("ok", True)


def test_the_registry_is_reached_through_the_proxy_of_enroots_configuration(
    rig: Rig, look: Look, session: SlurmCluster, servers: str
) -> None:
    """The proxy is a server that answers each request with 401."""
    lines = "ENROOT_RUNTIME_PATH /tmp/enroot-$(id -u)\n"
    without = look(address=NOBODYS)
    with configuration(rig, f"{lines}http_proxy {servers.replace('://', '://me:secret@')}\n"):
        checks = look(address=NOBODYS, name="upstream")
        answer = ask_registry(session, IMAGE, None, NOBODYS)
    assert without["registry"].status == "failed"
    assert (checks["registry"].status, checks["registry"].found) == (
        "ok",
        f"reached (HTTP 401) through Enroot's proxy {servers}",
    )
    assert checks["git"].found != "reached (git ls-remote)"
    assert (answer.granted, answer.words) == ("unknown", "The registry requests a login in an unknown way.")
    assert "resolve" in ask_registry(session, IMAGE, None, NOBODYS).words


def test_a_proxy_of_enroots_configuration_that_fails_is_named(rig: Rig, look: Look, unused_port: int) -> None:
    proxy = f"http://127.0.0.1:{unused_port}"
    with configuration(rig, f"ENROOT_RUNTIME_PATH /tmp/enroot-$(id -u)\nhttp_proxy {proxy}\n"):
        check = look(address=NOBODYS)["registry"]
    assert check.status == "failed"
    assert f"names the proxy {proxy}" in check.fix


def test_an_enroot_that_does_not_start_on_the_login_node_imports_in_a_job(rig: Rig, look: Look) -> None:
    """A directory of the configuration exists on the nodes only, as on HyperPod."""
    case = Path(__file__).with_name("hyperpod-enroot.conf").read_text()
    with configuration(rig, case):
        checks = look(cpu_partition="cpu")
    assert (checks["enroot"].status, "in partition cpu" in checks["enroot"].fix) == ("warning", True)
    assert "mkdir: cannot create directory" in checks["enroot"].found
    assert "/opt/dlami" in checks["enroot"].found
    assert not {"enroot-settings", "enroot-space"} & set(checks)


def test_a_missing_directory_for_unpacking_fails(rig: Rig, look: Look) -> None:
    with configuration(rig, "ENROOT_RUNTIME_PATH /tmp/enroot-$(id -u)\nENROOT_TEMP_PATH ${HOME}/tmp/$(id -u)\n"):
        check = look()["enroot-space"]
    assert (check.status, "/home/operator/tmp/4100 does not exist" in check.found) == ("failed", True)
    assert "ENROOT_TEMP_PATH" in check.fix


def test_the_users_own_credentials_are_where_the_configuration_says(rig: Rig, session: SlurmCluster) -> None:
    line = "machine nvcr.io login $oauthtoken password x"
    rig.as_operator(f"mkdir -p enroot && echo '{line}' >enroot/.credentials", check=True)
    try:
        with configuration(rig, "ENROOT_CONFIG_PATH ${HOME}/enroot\n"):
            named = secret_states(session)[0]
        unnamed = secret_states(session)[0]
    finally:
        rig.as_operator("rm -r enroot", check=True)
    assert (named.own, unnamed.own) == (True, False)
