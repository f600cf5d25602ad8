"""`check_profile`: may every value of a profile be used in commands, scripts and files? Pure."""

from __future__ import annotations

import re
from typing import get_args

from llmb_tui.cluster.login_profile import NO_SSH_CONFIG, Transport
from llmb_tui.cluster.profile_check import NAME_RULES, OWN_TARGETS, Rules, WrongField, check_env, check_texts
from llmb_tui.cluster.slurm.params import sbatch_options
from llmb_tui.cluster.slurm.profile import GpuRequest, SlurmProfile
from llmb_tui.cluster.validation import FEATURES, HOSTS, MEMORY, MOUNT_FLAGS, NAME, NAMES, PATH, matches
from llmb_tui.errors import Trouble

_WORD = re.compile(r"[^\s-]\S*")
_MOST_CPUS = 1024
_ONE_NAME = "It takes letters, digits and . _ + @ = -, and does not begin with a dash."
_ABSOLUTE = "Give an absolute path on the cluster's shared file system, of letters, digits and . _ + @ = - only."
_SEVERAL = "It is the name of a partition, or several separated by commas."
_ONE_WORD = "It is one word that does not begin with a dash."
_RULES: Rules = {
    **NAME_RULES,
    "host": (_WORD, _ONE_WORD),
    "user": (_WORD, _ONE_WORD),
    "account": (NAME, _ONE_NAME),
    "partition": (NAMES, _SEVERAL),
    "cpu_partition": (NAMES, _SEVERAL),
    "install_dir": (PATH, _ABSOLUTE),
    "gpu_request": (re.compile("|".join(get_args(GpuRequest))), f"It is one of {', '.join(get_args(GpuRequest))}."),
    "transport": (re.compile("|".join(get_args(Transport))), f"It is one of {', '.join(get_args(Transport))}."),
    "reservation": (NAMES, _ONE_NAME),
    "qos": (NAME, _ONE_NAME),
    "constraint": (FEATURES, "It is made of node features and & | ! [ ] ( ) * such as gpu&memory."),
    "exclude": (HOSTS, "It is a Slurm host list such as cn[003,007]."),
    "memory": (MEMORY, "It is 0 for a whole node's, or an amount such as 500G."),
}
_NOT_EMPTY = {
    "identity_file": "Give the path of a private key, or leave the field out.",
    "known_hosts": "Give the path of a file, or leave the field out.",
    "ssh_config": f"Give the path of a file, or {NO_SSH_CONFIG!r} for none at all.",
}


def check_profile(profile: SlurmProfile) -> None:
    """Raise `WrongField`, naming the first field that cannot be right."""
    check_texts(profile, _RULES, _NOT_EMPTY)
    if profile.port is not None and not 1 <= profile.port <= 65535:
        raise WrongField("port", str(profile.port), "Ports go from 1 to 65535; SSH's own is 22.")
    if profile.segment is not None and profile.segment < 1:
        raise WrongField("segment", str(profile.segment), "It is a number of nodes, 1 or more.")
    if not 0 <= profile.cpus_per_task <= _MOST_CPUS:
        fix = f"It is a number of CPUs, at most {_MOST_CPUS}; 0 pins no task."
        raise WrongField("cpus_per_task", str(profile.cpus_per_task), fix)
    _check_mounts(profile.mounts)
    check_env(profile.env)
    try:
        sbatch_options(profile)
    except Trouble as trouble:
        raise WrongField("slurm_params", profile.slurm_params or "", trouble.fix, trouble.why) from trouble


def split_mount(mount: str) -> tuple[str, str, str]:
    """Source, target and flags (empty for none) of a container mount. Raises `WrongField`."""
    source, _, rest = mount.partition(":")
    target, colon, flags = rest.partition(":")
    if not (matches(PATH, source) and matches(PATH, target)) or (colon and not MOUNT_FLAGS.fullmatch(flags)):
        fix = "Give SOURCE:TARGET or SOURCE:TARGET:FLAGS with absolute paths, such as /data:/data:ro."
        raise WrongField("mounts", mount, fix)
    return source, target, flags


def _check_mounts(mounts: tuple[str, ...]) -> None:
    targets: set[str] = set()
    for mount in mounts:
        target = split_mount(mount)[1].rstrip("/") or "/"
        if target in OWN_TARGETS:
            raise WrongField("mounts", mount, "Choose another target.", f"{target} is the run's own in the container.")
        if target in targets:
            raise WrongField("mounts", mount, "Leave one of them out.", f"{target} is the target of two mounts.")
        targets.add(target)
