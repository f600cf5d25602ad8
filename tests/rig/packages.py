"""What must be installed for the rig, and installing it where that is possible: Debian, as root."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

NEEDED = {
    "openssh-server": "/usr/sbin/sshd",
    "openssh-client": "/usr/bin/ssh-keygen",
    "slurmctld": "/usr/sbin/slurmctld",
    "slurmd": "/usr/sbin/slurmd",
    "slurmdbd": "/usr/sbin/slurmdbd",
    "slurm-client": "/usr/bin/srun",
    "slurm-wlm-basic-plugins": "/usr/lib/*/slurm-wlm/gpu_generic.so",
    "slurm-wlm-mysql-plugin": "/usr/lib/*/slurm-wlm/accounting_storage_mysql.so",
    "libslurm-dev": "/usr/include/slurm/spank.h",
    "libpmix-dev": "/usr/lib/*/pmix2/lib/libpmix.so",
    "munge": "/usr/sbin/munged",
    "mariadb-server": "/usr/sbin/mariadbd",
    "libpam-google-authenticator": "/usr/lib/*/security/pam_google_authenticator.so",
    "gcc": "/usr/bin/gcc",
    "libc6-dev": "/usr/include/stdlib.h",
    "python3": "/usr/bin/python3",
    "python3-venv": "/usr/lib/python3*/ensurepip",
    "util-linux": "/usr/bin/nsenter",
    "procps": "/usr/bin/ps",
    "oathtool": "/usr/bin/oathtool",
    "git": "/usr/bin/git",
    "curl": "/usr/bin/curl",
    "wget": "/usr/bin/wget",
}
"""Packages of Debian, and a file that shows that one is there."""
EXTRA_FIELDS = {"fish": "/usr/bin/fish", "ksh": "/usr/bin/ksh", "tcsh": "/usr/bin/tcsh", "zsh": "/usr/bin/zsh"}
"""Login shells that people have. The rig does without; a test of one that is not here is listed as not run."""
NO_RIG = "LLMB_TUI_NO_RIG"
"""Environment variable: behave as on a machine that cannot have a rig."""
_POLICY = Path("/usr/sbin/policy-rc.d")


def missing(packages: Mapping[str, str] = NEEDED) -> list[str]:
    """Packages that are not installed."""
    return [name for name, shows in packages.items() if not any(Path("/").glob(shows.lstrip("/")))]


def unavailable() -> str:
    """Why no rig can start on this machine; empty when it can."""
    if os.environ.get(NO_RIG):
        return f"{NO_RIG} is set"
    if sys.platform != "linux":
        return "the rig needs Linux"
    if os.geteuid() != 0:
        return "the rig needs root"
    lacking = missing()
    if lacking:
        return f"not installed: {', '.join(lacking)}"
    trial = subprocess.run(
        ["unshare", "--fork", "--pid", "--mount-proc", "--mount", "--uts", "mount", "-t", "tmpfs", "rig", "/mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return f"no namespaces: {trial.stderr.strip()}" if trial.returncode else ""


def install() -> str:
    """Install what is missing. Why that could not be done, empty when everything is there."""
    lacking = missing() if sys.platform == "linux" else list(NEEDED)
    if not lacking and not missing(EXTRA_FIELDS):
        return ""
    if sys.platform != "linux" or os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"only root on Debian or Ubuntu can install {', '.join(lacking)}" if lacking else ""
    with _no_daemons():
        output = _install(lacking) if lacking else ""
        if output:
            _apt("update")
            output = _install(lacking)
        _install(missing(EXTRA_FIELDS))
    return output


def _install(names: list[str]) -> str:
    return _apt("install", "--no-install-recommends", "-y", *names)


def _apt(*words: str) -> str:
    """Run apt-get; its last line of complaint, empty when it went well."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        ["apt-get", "-q", *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (done.stderr or done.stdout).strip().splitlines()
    return "" if done.returncode == 0 else f"apt-get {words[0]}: {lines[-1] if lines else 'failed'}"


@contextmanager
def _no_daemons() -> Iterator[None]:
    """Keep apt from starting what it installs, unless the machine has a rule of its own."""
    ours = not _POLICY.exists()
    if ours:
        _POLICY.write_text("#!/bin/sh\nexit 101\n")
        _POLICY.chmod(_POLICY.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    try:
        yield
    finally:
        if ours:
            _POLICY.unlink()
