"""`check_profile`: may every value of a profile be used in commands, scripts and files? Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import get_args

from llmb_tui.cluster.quoting import one_line
from llmb_tui.cluster.runai.profile import RunaiProfile
from llmb_tui.cluster.slurm.params import sbatch_options
from llmb_tui.cluster.slurm.profile import NO_SSH_CONFIG, GpuRequest, SlurmProfile, Transport
from llmb_tui.cluster.validation import ENV_NAME, FEATURES, HOSTS, MEMORY, MOUNT_FLAGS, NAME, NAMES, PATH, matches
from llmb_tui.errors import Trouble
from llmb_tui.language.text import clean_line

_PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORD = re.compile(r"[^\s-]\S*")
_MOST_CPUS = 1024
_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|PASSWD|CREDENTIALS?)(?:_|$)|(?:TOKEN|PASSWORD|SECRET|APIKEY)(?:_|$)")
_SECRET_VALUE = re.compile(r"\b(?:hf_|nvapi-)[A-Za-z0-9_-]{16,}")
# What the batch script itself runs by.
_RESERVED_ENV = frozenset(
    "PATH HOME IFS ENV BASH_ENV TORCHX_MAX_RETRIES SLURM_JOB_ID SLURM_JOB_NODELIST SLURM_RESTART_COUNT".split()
)
OWN_TARGETS = ("/", "/nemo_run")
"""Where no further mount may go in the container: every run has its own there."""

_ONE_NAME = "It takes letters, digits and . _ + @ = -, and does not begin with a dash."
_ABSOLUTE = "Give an absolute path on the cluster's shared file system, of letters, digits and . _ + @ = - only."
_SEVERAL = "It is the name of a partition, or several separated by commas."
_ONE_WORD = "It is one word that does not begin with a dash."
Rules = Mapping[str, tuple[re.Pattern[str], str]]
"""Of fields by their names: what a text has to match, and what to do about one that does not."""
NAME_RULES: Rules = {"name": (_PROFILE_NAME, "Use at most 64 letters, digits, dots, dashes and underscores.")}
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


class WrongField(Trouble):
    """A value that a profile cannot have. Exit code 1."""

    def __init__(self, field: str, value: str, fix: str, why: str = "") -> None:
        self.field = field
        """Its name; of an environment variable `env.NAME`."""
        text = repr(clean_line(value)) if value else "empty"
        super().__init__(f"The cluster's {clean_line(field)} cannot be {text}.", why, fix, exit_code=1)


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


def check_texts(profile: SlurmProfile | RunaiProfile, rules: Rules, not_empty: Mapping[str, str]) -> None:
    """Raise `WrongField`, naming the first text that cannot be right by the rules, or that must not be empty and is."""
    for field in fields(profile):
        name, value = field.name, getattr(profile, field.name)
        if not isinstance(value, str):
            continue
        _check_text(name, value)
        if name in rules and not matches(rules[name][0], value):
            raise WrongField(name, value, rules[name][1])
        if name in not_empty and not value:
            raise WrongField(name, value, not_empty[name])


def _check_text(name: str, value: str) -> None:
    """Raise `WrongField` for what does not print, or looks like a secret."""
    try:
        one_line(value, name)
    except Trouble as trouble:
        raise WrongField(name, value, trouble.fix, trouble.why) from trouble
    if _SECRET_VALUE.search(value):
        raise _secret(name)


def _check_mounts(mounts: tuple[str, ...]) -> None:
    targets: set[str] = set()
    for mount in mounts:
        target = split_mount(mount)[1].rstrip("/") or "/"
        if target in OWN_TARGETS:
            raise WrongField("mounts", mount, "Choose another target.", f"{target} is the run's own in the container.")
        if target in targets:
            raise WrongField("mounts", mount, "Leave one of them out.", f"{target} is the target of two mounts.")
        targets.add(target)


def check_env(env: tuple[tuple[str, str], ...]) -> None:
    """Raise `WrongField` for an environment variable that a run cannot be given."""
    for name, value in env:
        field = f"env.{name}"
        if not ENV_NAME.fullmatch(name):
            fix = "Use capital letters, digits and underscores: NeMo-Run writes names in capitals."
            raise WrongField("env", name, fix, "It is no name of an environment variable.")
        if name in _RESERVED_ENV:
            raise WrongField(field, value, "Leave it out.", "The batch script itself runs by this variable.")
        if _SECRET_NAME.search(name) or _SECRET_VALUE.search(value):
            raise _secret(field)
        _check_text(field, value)


def _secret(field: str) -> WrongField:
    return WrongField(
        field,
        "a secret",
        "Leave it out: secrets are asked for when they are needed, and kept elsewhere.",
        "It looks like a token, key or password, and a profile is a file that people copy.",
    )
