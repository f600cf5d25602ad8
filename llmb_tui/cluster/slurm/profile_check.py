"""`check_profile`: checks of a Slurm profile's values for commands, scripts and files. Pure."""

from __future__ import annotations

import re
from typing import get_args

from llmb_tui.cluster.login_profile import NO_SSH_CONFIG, Transport
from llmb_tui.cluster.profile_check import NAME_RULES, OWN_TARGETS, InvalidFieldError, Rules, check_env, check_texts
from llmb_tui.cluster.slurm.params import sbatch_options
from llmb_tui.cluster.slurm.profile import GpuRequest, SlurmProfile
from llmb_tui.cluster.validation import FEATURES, GPU_TYPE, HOSTS, MEMORY, MOUNT_FLAGS, NAME, NAMES, PATH, matches
from llmb_tui.errors import LlmbError

_WORD = re.compile(r"[^\s-]\S*")
_MOST_CPUS = 1024
_ONE_NAME = "Use letters, digits and . _ + @ = -, with no dash at the beginning."
_ABSOLUTE = "Enter an absolute path on the cluster's shared file system, of letters, digits and . _ + @ = - only."
_SEVERAL = "Enter the name of a partition, or several names separated by commas."
_ONE_WORD = "Enter one word that does not begin with a dash."
_RULES: Rules = {
    **NAME_RULES,
    "host": (_WORD, _ONE_WORD),
    "user": (_WORD, _ONE_WORD),
    "account": (NAME, _ONE_NAME),
    "partition": (re.compile(f"({NAMES.pattern})?"), _SEVERAL),
    "cpu_partition": (NAMES, _SEVERAL),
    "install_dir": (PATH, _ABSOLUTE),
    "gpu_request": (re.compile("|".join(get_args(GpuRequest))), f"Enter one of {', '.join(get_args(GpuRequest))}."),
    "gpu_type": (GPU_TYPE, "Enter the type as `sinfo -o %G` prints it, such as h100 of gpu:h100:8."),
    "mpi": (re.compile(r"\w+", re.ASCII), "Enter a type that `srun --mpi=list` prints, such as pmi2."),
    "transport": (re.compile("|".join(get_args(Transport))), f"Enter one of {', '.join(get_args(Transport))}."),
    "reservation": (NAMES, _ONE_NAME),
    "qos": (NAME, _ONE_NAME),
    "constraint": (FEATURES, "Use node features and & | ! [ ] ( ) * such as gpu&memory."),
    "exclude": (HOSTS, "Enter a Slurm host list such as cn[003,007]."),
    "memory": (MEMORY, "Enter 0 for all memory of a node, or a whole number with K, M, G or T, such as 500G."),
}
_NOT_EMPTY = {
    "identity_file": "Enter the path of a private key, or remove the field.",
    "known_hosts": "Enter the path of a file, or remove the field.",
    "ssh_config": f"Enter the path of a file, or {NO_SSH_CONFIG!r} to read no configuration.",
}


def check_profile(profile: SlurmProfile) -> None:
    """Raise `InvalidFieldError` for the first invalid field."""
    check_texts(profile, _RULES, _NOT_EMPTY)
    if profile.port is not None and not 1 <= profile.port <= 65535:
        raise InvalidFieldError("port", str(profile.port), "Enter a port from 1 to 65535; the default of SSH is 22.")
    if profile.segment is not None and profile.segment < 1:
        raise InvalidFieldError("segment", str(profile.segment), "Enter a number of nodes, 1 or more.")
    if not 0 <= profile.cpus_per_task <= _MOST_CPUS:
        fix = f"Enter a number of CPUs, at most {_MOST_CPUS}; 0 pins no task."
        raise InvalidFieldError("cpus_per_task", str(profile.cpus_per_task), fix)
    if profile.gpu_type is not None and profile.gpu_request == "none":
        raise InvalidFieldError(
            "gpu_type",
            profile.gpu_type,
            "Remove the GPU type, or request GPUs with gres or gpus-per-node.",
            "A job that requests no GPUs requests no type.",
        )
    _check_mounts(profile.mounts)
    check_env(profile.env)
    try:
        sbatch_options(profile)
    except LlmbError as error:
        raise InvalidFieldError("slurm_params", profile.slurm_params or "", error.fix, error.why) from error


def split_mount(mount: str) -> tuple[str, str, str]:
    """Split a container mount to source, target and flags (empty if there are none). Raises `InvalidFieldError`."""
    source, _, rest = mount.partition(":")
    target, colon, flags = rest.partition(":")
    if not (matches(PATH, source) and matches(PATH, target)) or (colon and not MOUNT_FLAGS.fullmatch(flags)):
        fix = "Write SOURCE:TARGET or SOURCE:TARGET:FLAGS with absolute paths, such as /data:/data:ro."
        raise InvalidFieldError("mounts", mount, fix)
    return source, target, flags


def _check_mounts(mounts: tuple[str, ...]) -> None:
    targets: set[str] = set()
    for mount in mounts:
        target = split_mount(mount)[1].rstrip("/") or "/"
        if target in OWN_TARGETS:
            raise InvalidFieldError(
                "mounts", mount, "Choose another target.", f"Every run mounts its own files at {target}."
            )
        if target in targets:
            raise InvalidFieldError("mounts", mount, "Remove one of them.", f"{target} is the target of two mounts.")
        targets.add(target)
