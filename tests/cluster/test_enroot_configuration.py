"""Enroot's configuration on a login node, read by real shells and compared with NVIDIA's own program."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from llmb_tui.cluster.remote_text import remote_text

NVIDIA = (Path(__file__).parents[1] / "rig" / "bin" / "enroot.in").read_text()
"""First lines of NVIDIA's `enroot` 3.5.0, which read its configuration."""
HYPERPOD = """\
ENROOT_RUNTIME_PATH        {root}/nvme/enroot/user-$(id -u)
ENROOT_CONFIG_PATH         ${{HOME}}/enroot
ENROOT_CACHE_PATH          {root}/fsx/enroot
ENROOT_DATA_PATH           {root}/nvme/enroot/data/user-$(id -u)
# these count as well
https_proxy                http://proxy.example:3128
SSL_CERT_FILE              /etc/ssl/site.pem
"""
"""A site's configuration, after awslabs/awsome-distributed-ai#127 and the names that NVIDIA's program accepts."""


class Site:
    """A login node with Enroot, whose shell this machine's is."""

    def __init__(self, root: Path, shell: list[str]) -> None:
        self.root, self.shell, self.home = root, shell, root / "home"
        self.folder, self.conf = root / "etc", root / "etc" / "enroot.conf"
        self.variables: dict[str, str] = {}
        for folder in (root / "bin", self.folder / "enroot.conf.d", self.home):
            folder.mkdir(parents=True)
        self.program(
            NVIDIA.replace("@sysconfdir@", str(self.folder)) + 'case $1 in version) echo 3.5.0 ;; *) "$@" ;; esac\n'
        )
        self.conf.write_text(f"ENROOT_RUNTIME_PATH {root}/run\n")

    def program(self, text: str) -> None:
        path = self.root / "bin" / "enroot"
        path.write_text(text)
        path.chmod(0o755)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.root / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin"
        variables = {"HOME": str(self.home), "PATH": path, **self.variables}
        return subprocess.run(command, env=variables, cwd=self.home, capture_output=True, text=True, check=False)

    def batch(self, script: str) -> subprocess.CompletedProcess[str]:
        limited = 'limited() { shift; "$@"; }\n'
        return self.run(*self.shell, "-c", f"{limited}{remote_text('enroot_environment.sh')}\n{script}")

    def environment(self) -> dict[str, str]:
        """The environment that the checks see."""
        return _variables(self.batch("enroot_environment 2>/dev/null && env").stdout)

    def settings(self) -> list[str]:
        """Lines of the settings, as the preflight reads them."""
        return self.batch(f"( {remote_text('enroot_settings.sh')} ) 2>&1").stdout.splitlines()


def _variables(text: str) -> dict[str, str]:
    pairs = dict(line.partition("=")[::2] for line in text.splitlines())
    return {
        name: value
        for name, value in pairs.items()
        if name.startswith(("ENROOT_", "SSL_", "XDG_", "NVIDIA_")) or "proxy" in name
    }


@pytest.fixture(params=["sh", "bash", "bash --posix"])
def site(tmp_path: Path, request: pytest.FixtureRequest) -> Site:
    return Site(tmp_path, request.param.split())


@pytest.mark.parametrize(
    "lines",
    [
        "ENROOT_TEMP_PATH /raid/tmp\n",
        "ENROOT_TEMP_PATH=/raid/tmp\n  ENROOT_CACHE_PATH\t=  /raid/cache\n",
        "#ENROOT_TEMP_PATH /no\nENROOT_TEMP_PATH /raid/tmp # on the local disk\n",
        "ENROOT_TEMP_PATH /first\nENROOT_TEMP_PATH /second\n",
        "ENROOT_DATA_PATH /raid/data\nENROOT_TEMP_PATH ${ENROOT_DATA_PATH}/tmp\n",
        "ENROOT_TEMP_PATH '/raid/a  b'\nENROOT_SQUASH_OPTIONS -comp lz4   -noD\n",
        """ENROOT_TEMP_PATH "/it's/$HOME"\n""",
        "ENROOT_TEMP_PATH /raid/tmp",
        "ENROOT_CONFIG_PATH ${XDG_CONFIG_HOME}/enroot\n",
        "ENROOT_CONFIG_PATH ${HOME}/enroot\nENROOT_TEMP_PATH $(echo /raid)/$(id -u)\n",
        "ENROOT_REMAP_ROOT yes\nENROOT_ROOTFS_WRITABLE no\nENROOT_LOGIN_SHELL False\n",
        "http_proxy http://a:1\nhttps_proxy=http://b:2\nno_proxy .site\nHTTPS_PROXY http://c:3\nall_proxy x\n",
        "SSL_CERT_FILE /a.pem\nMELLANOX_VISIBLE_DEVICES all\nNVIDIA_VISIBLE_DEVICES all\nPATH /no\nLD_PRELOAD /no\n",
        "export ENROOT_TEMP_PATH=/no\nENROOT_TEMP_PATH:=/no\n",
        "ENROOT_TEMP_PATH\n",
        "",
    ],
)
def test_a_configuration_is_read_as_nvidias_program_reads_it(site: Site, lines: str) -> None:
    with site.conf.open("a") as conf:
        conf.write(lines)
    for variables in ({}, {"ENROOT_TEMP_PATH": "/mine", "https_proxy": "http://me:9", "ENROOT_REMAP_ROOT": "no"}):
        site.variables = variables
        assert site.environment() == _variables(site.run("enroot", "env").stdout) != {}


def test_the_first_file_with_a_setting_decides(site: Site) -> None:
    (site.folder / "enroot.conf.d" / "10-a.conf").write_text("ENROOT_TEMP_PATH /a\nENROOT_CACHE_PATH /a\n")
    (site.folder / "enroot.conf.d" / "20-b.conf").write_text("ENROOT_CACHE_PATH /b\nENROOT_REMAP_ROOT yes\n")
    (site.folder / "enroot.conf.d" / "30-c.txt").write_text("ENROOT_ROOTFS_WRITABLE yes\n")
    with site.conf.open("a") as conf:
        conf.write("ENROOT_TEMP_PATH /main\n")
    read = site.environment()
    assert [read.get(f"ENROOT_{name}") for name in ("TEMP_PATH", "CACHE_PATH", "REMAP_ROOT", "ROOTFS_WRITABLE")] == [
        "/main",
        "/a",
        "yes",
        None,
    ]
    site.variables["ENROOT_TEMP_PATH"] = "/mine"
    assert site.environment()["ENROOT_TEMP_PATH"] == "/mine"


def test_reading_makes_no_directory(site: Site) -> None:
    site.conf.write_text(HYPERPOD.format(root=site.root))
    read = site.environment()
    assert read["ENROOT_DATA_PATH"] == f"{site.root}/nvme/enroot/data/user-{os.getuid()}"
    assert (read["https_proxy"], read["SSL_CERT_FILE"]) == ("http://proxy.example:3128", "/etc/ssl/site.pem")
    assert not (site.root / "nvme").exists()
    assert not (site.root / "fsx").exists()


def test_adapters_and_hooks_are_found_where_the_configuration_says(site: Site) -> None:
    site.conf.write_text(HYPERPOD.format(root=site.root))
    assert not {"hook", "adapters NCCL_IB_HCA"} & set(site.settings())
    folder = site.home / "enroot"
    for name in ("environ.d", "hooks.d"):
        (folder / name).mkdir(parents=True)
    (folder / "environ.d" / "50-net.env").write_text("# NCCL_IB_HCA=x\nNCCL_IB_HCA = x\n")
    (folder / "hooks.d" / "50-slurm-pytorch.sh").write_text("#!/bin/bash\n")
    assert not {"hook", "adapters NCCL_IB_HCA"} & set(site.settings())
    (folder / "environ.d" / "60-net.env").write_text("  NCCL_IB_HCA='mlx5'\n")
    (folder / "hooks.d" / "50-slurm-pytorch.sh").chmod(0o755)
    lines = site.settings()
    assert {"hook", "adapters NCCL_IB_HCA", f"ENROOT_CONFIG_PATH {folder}", f"site {site.folder}"} <= set(lines)
    assert lines[0] == "3.5.0"


def test_a_message_of_the_configuration_is_not_taken_for_the_version(site: Site) -> None:
    with site.conf.open("a") as conf:
        conf.write("ENROOT_CONFIG_PATH ${XDG_CONFIG_HOME}/enroot\n")
    assert "unbound variable" in site.run("enroot", "version").stderr
    assert site.settings()[0] == "3.5.0"


def test_a_directory_that_enroot_cannot_make_is_reported_in_its_words(site: Site) -> None:
    site.conf.write_text("ENROOT_RUNTIME_PATH /proc/enroot/user-$(id -u)\n")
    answer = site.batch(f"( {remote_text('enroot_settings.sh')} )")
    assert answer.returncode == 1
    assert answer.stdout.startswith("mkdir: cannot create directory")


def test_an_invalid_configuration_is_reported_in_enroots_words(site: Site) -> None:
    site.conf.write_text("ENROOT_TEMP_PATH $(\n")
    answer = site.batch(f"( {remote_text('enroot_settings.sh')} )")
    assert (answer.returncode, answer.stdout) == (1, f"Invalid configuration file: {site.conf}\n")


def test_a_temporary_directory_that_is_missing_is_reported(site: Site) -> None:
    with site.conf.open("a") as conf:
        conf.write("ENROOT_TEMP_PATH /nowhere/tmp\n")
    assert "no_temp /nowhere/tmp" in site.settings()


def test_another_program_of_that_name_is_not_guessed_about(site: Site) -> None:
    site.program("#!/bin/sh\necho 3.5.0\n")
    assert site.settings() == ["3.5.0", "unread"]
    (site.root / "bin" / "enroot").unlink()
    assert site.batch(f"( {remote_text('enroot_settings.sh')} )").returncode == 127
