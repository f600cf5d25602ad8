"""Words of Enroot, Pyxis and NVIDIA's container hook after public reports, and the nearest other cases."""

from __future__ import annotations

import pytest

from llmb_tui.launch.step_state import explain
from llmb_tui.watch.failure import worst

PYXIS = "slurmstepd: error: pyxis:     "
HOOK = f"{PYXIS}nvidia-container-cli: "
NAMESPACE = "enroot-nsenter: failed to create user namespace: "
CASES = {
    "NVIDIA/pyxis#93": (f"{PYXIS}{NAMESPACE}No space left on device", "user namespaces", "max_user_namespaces"),
    "NVIDIA/enroot#247": (f"{NAMESPACE}Permission denied", "user namespaces", "AppArmor"),
    "awslabs/awsome-distributed-ai#184": (
        "mkdir: cannot create directory \u2018/opt/dlami/nvme/tmp/enroot/data\u2019: Permission denied",
        "its own directory /opt/dlami/nvme/tmp/enroot/data",
        "enroot.conf",
    ),
    "NVIDIA/enroot#13": (
        "mkdir: cannot create directory \u2018/run/user/140196\u2019: Permission denied",
        "its own directory /run/user/140196",
        "enroot.conf",
    ),
    "NVIDIA/pyxis#12": (
        f"{PYXIS}mkdir: cannot create directory '/raid/9011': Permission denied",
        "its own directory /raid/9011",
        "enroot.conf",
    ),
    "NVIDIA/pyxis#87": (
        "enroot-aufs2ovlfs: failed to create opaque ovlfs whiteout: /home/enroot/1/opt: Operation not supported",
        "extended attributes",
        "ENROOT_TEMP_PATH",
    ),
    "NVIDIA/enroot#265": (
        f"{HOOK}mount error: mount operation failed: /run/nvidia-persistenced/socket: operation not permitted",
        "mount /run/nvidia-persistenced/socket",
        "bind mount",
    ),
    "NVIDIA/enroot#238": (
        f"{HOOK}initialization error: open failed: /proc/self/ns/mnt: permission denied",
        "lacks a permission",
        "AppArmor",
    ),
    "NVIDIA/enroot#234": (
        f"{HOOK}container error: file lookup failed: /proc/4/root/fsx/enroot/x/etc/debian_version: permission denied",
        "lacks a permission",
        "file system",
    ),
    "NVIDIA/enroot#88": (
        f"{HOOK}permission error: capability change failed: operation not permitted",
        "lacks a permission",
        "SELinux",
    ),
    "NVIDIA/pyxis#110": (
        f"{PYXIS}[ERROR] Command not found: nvidia-container-cli, see https://github.com/NVIDIA/libnvidia-container",
        "lacks nvidia-container-cli",
        "install it",
    ),
    "NVIDIA/enroot#141": (
        "enroot-aufs2ovlfs: failed to set capabilities: Operation not permitted",
        "lack their capabilities",
        "enroot+caps",
    ),
    "mehta-lab/recOrder#482": (
        "srun: fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive.",
        "Memory is requested in two ways",
        "SLURM_MEM_PER_NODE",
    ),
    "another missing program": (
        f"{PYXIS}[ERROR] Command not found: squashfuse",
        "lacks the program squashfuse",
        "install it",
    ),
    "NVIDIA/pyxis#95": (
        "srun: error: spank: pyxis.conf:1: Failed to load plugin spank_pyxis.so: Incompatible Slurm plugin version",
        "spank_pyxis.so was built for another version of Slurm",
        "build it",
    ),
}


@pytest.mark.parametrize(("line", "what", "fix"), CASES.values(), ids=CASES)
def test_the_words_have_the_same_cause_in_a_run_and_in_an_install(line: str, what: str, fix: str) -> None:
    run = worst(f"before\n{line}\nslurmstepd: error: pyxis: couldn't start container\nafter\n".encode())
    assert run is not None
    install = explain(["[INFO] Extracting image layers...", line, "enroot made no image."])
    for found in (run, install):
        assert what in found.reason
        assert fix in found.fix


@pytest.mark.parametrize(
    ("line", "not_this"),
    [
        (f"{NAMESPACE}Permission denied", "max_user_namespaces"),
        (f"{NAMESPACE}No space left on device", "disk"),
        ("mkdir: cannot create directory '/lustre/llmb': Permission denied", "enroot.conf"),
        ("mkdir: cannot create directory '/lustre/enroot/images/x': Permission denied", "enroot.conf"),
        ("mkdir: cannot create directory '/opt/enroot/data': File exists", "enroot.conf"),
        ("enroot-aufs2ovlfs: failed to create ovlfs whiteout: /tmp/39/x: Operation not permitted", "extended"),
        (f"{HOOK}mount error: mount operation failed: /proc/driver: no such file or directory", "bind mount"),
        (f"{HOOK}mount error: mount operation failed: /a/b: operation not permitted", "ENROOT_DATA_PATH"),
        (f"{HOOK}initialization error: nvml error: driver not loaded", "AppArmor"),
        (f"{HOOK}initialization error: open failed: /proc/self/ns/mnt: permission denied", "driver's version"),
        (f"{HOOK}ldcache error: process /usr/sbin/ldconfig failed with error code: 1", "driver's version"),
        (f"{PYXIS}[ERROR] Command not found: squashfuse", "mounted path"),
        (f"{PYXIS}enroot-switchroot: failed to execute: /bin/sh: Permission denied", "mounted path"),
        ("enroot-mount: failed to mount: /x at /y: Operation not permitted", "user namespaces"),
        ("git@github.com: Permission denied (publickey).", "writable install directory"),
        ("cp: failed to preserve ownership for 'x': Operation not permitted", "Enroot needs"),
        ("bash: ./setup.sh: Permission denied", "writable install directory"),
    ],
)
def test_the_nearest_other_case_does_not_get_the_remedy(line: str, not_this: str) -> None:
    run, install = worst(f"{line}\n".encode()), explain([line])
    assert run is None or not_this not in run.fix
    assert not_this not in install.fix


def test_a_container_hook_that_fails_for_another_reason_is_named_without_a_remedy() -> None:
    run = worst(f"{HOOK}ldcache error: process /usr/sbin/ldconfig failed with error code: 1\n".encode())
    assert run is not None
    assert ("container hook failed" in run.reason, run.fix) == (True, "")


@pytest.mark.parametrize(
    ("line", "in_a_run", "in_an_install"),
    [
        # NVIDIA/enroot#161
        (
            "[ERROR] URL https://nvcr.io/proxy_auth returned error code: 401 Unauthorized",
            "registry refused the login",
            "registry denied access",
        ),
        # after awslabs/awsome-distributed-ai#427
        (f"{PYXIS}Write failed because No space left on device", "A file system is full", "is full"),
    ],
)
def test_words_whose_remedy_depends_on_the_stage(line: str, in_a_run: str, in_an_install: str) -> None:
    run = worst(f"before\n{line}\nslurmstepd: error: pyxis: couldn't start container\nafter\n".encode())
    assert run is not None
    assert in_a_run in run.reason
    assert in_an_install in explain(["[INFO] Extracting image layers...", line]).reason
